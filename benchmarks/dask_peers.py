"""Side by side with dask-ml's LogisticRegression on a cluster, and scikit-learn's on one machine.

::

    python benchmarks/dask_peers.py [--rows 400000] [--features 100] [--limit 600]

Needs dask-ml. Two classes, as dask-ml has no multinomial; float64; C = 1; the intercept is
penalised, as dask-glm does. Two local processes with one thread each; the data are persisted
before the clock starts. A fit that takes more than `limit` seconds is given up. Every fit is
judged by the same objective: its gap to that of ours in memory with tol = 1e-10. All take turns,
three times; a peer that took more than a fifth of the limit has one turn. Medians count. Every
peer is warmed up, and scikit-learn runs with one thread and with all. Writes
benchmarks/results/dask_peers.md.
"""

import argparse
import signal
import time
import warnings

import dask.array as da
import numpy as np
from benchmark_utils.tables import RESULTS, heading, publish
from dask_ml.linear_model import LogisticRegression as DaskLogisticRegression
from distributed import Client, LocalCluster
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from admm_softmax import SoftmaxRegression

ROUNDS = 3
SKLEARN = {"C": 1.0, "max_iter": 1000}


def data(n, d):
    """Correlated features on three scales, labels from a model with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)) / np.sqrt(d))
    X *= np.logspace(-1.5, 0, d)
    truth = rng.standard_normal(d) * np.logspace(0.5, 0, d)
    return X, (X @ truth + rng.logistic(size=n) > 0.3).astype(int)


def objective(X, y, w, b):
    """Σ log(1 + exp(−y z)) + ½(‖w‖² + b²), over the number of rows."""
    z = X @ w + b
    return (np.logaddexp(0.0, np.where(y == 1, -z, z)).sum() + (w @ w + b * b) / 2) / len(y)


def ours(**settings):
    return SoftmaxRegression(C=1.0, penalize_intercept=True, **settings)


def peers():
    return {
        "dask-ml admm, defaults": lambda: DaskLogisticRegression(solver="admm", C=1.0),
        "dask-ml lbfgs, defaults": lambda: DaskLogisticRegression(solver="lbfgs", C=1.0),
        "dask-ml lbfgs, tol 1e-8": lambda: DaskLogisticRegression(
            solver="lbfgs", C=1.0, tol=1e-8, max_iter=1000
        ),
    }


class Limited(LogisticRegression):
    """scikit-learn's, held to one thread."""

    def fit(self, X, y):
        with threadpool_limits(1):
            return super().fit(X, y)


def fitted(make, X, y, limit):
    """The model and its seconds; TimeoutError after so many."""

    def give_up(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        begin = time.perf_counter()
        model = make().fit(X, y)
        return model, time.perf_counter() - begin
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Notes:
    """Seconds, objective and iterations of each fit, by name."""

    def __init__(self, X, y, limit):
        self.X, self.y, self.limit, self.found = X, y, limit, {}

    def add(self, name, make, X, y):
        """Fit to X and y, which may be Dask arrays of the same rows, and note how it went."""
        runs = self.found.setdefault(name, [])
        try:
            model, seconds = fitted(make, X, y, self.limit)
        except Exception as error:
            runs.append((np.nan, np.nan, type(error).__name__))
            print(name, runs[-1], flush=True)
            return
        w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
        steps = getattr(model, "n_iter_", "")
        steps = str(np.max(steps)) if steps != "" else ""
        runs.append((seconds, objective(self.X, self.y, w, b), steps))
        print(name, runs[-1], flush=True)

    def is_slow(self, name):
        """Whether it took long, or failed: one turn suffices."""
        return any(not run[0] < self.limit / 5 for run in self.found.get(name, []))

    def table(self):
        """The medians, with the gap to the objective of a fit to rounding."""
        best = objective(self.X, self.y, *_solution(self.X, self.y))
        yield "| solver | seconds | iterations | relative gap of the objective |"
        yield "|---|---|---|---|"
        for name, runs in self.found.items():
            if runs[0][2] == "TimeoutError":
                yield f"| {name} | > {self.limit:g} | | |"
                continue
            seconds, value = (float(np.median([run[i] for run in runs])) for i in (0, 1))
            yield f"| {name} | {seconds:.2f} | {runs[0][2]} | {value / best - 1:.1e} |"


def compare(client, notes):
    """Fit ours and the peers on the cluster and in memory, in turns."""
    X, y = notes.X, notes.y
    chunks = -(-len(y) // 8)
    dX, dy = client.persist(
        [da.from_array(X, chunks=(chunks, -1)), da.from_array(y, chunks=chunks)]
    )
    candidates = {
        "ours on the cluster, tol 1e-4": (ours, dX, dy),
        "ours on the cluster, tol 1e-8": (lambda: ours(tol=1e-8), dX, dy),
        "ours in memory, tol 1e-4": (lambda: ours(n_threads=2), X, y),
        **{name: (make, dX, dy) for name, make in peers().items()},
        "scikit-learn lbfgs in memory, one thread": (lambda: Limited(**SKLEARN), X, y),
        "scikit-learn lbfgs in memory, all threads": (
            lambda: LogisticRegression(**SKLEARN), X, y,
        ),
    }  # fmt: skip
    for make, rows, labels in candidates.values():  # loads libraries, on the workers as well
        try:
            make().fit(rows[: chunks // 8], labels[: chunks // 8])
        except Exception as error:
            print("warm-up:", type(error).__name__, error)
    ours(solver="lbfgs").fit(dX, dy)
    for _ in range(ROUNDS):
        for name, candidate in candidates.items():
            if not notes.is_slow(name):
                notes.add(name, *candidate)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--limit", type=float, default=600.0)
    given = parser.parse_args()
    words = f"{given.rows:,} × {given.features}, two classes, float64, 8 partitions, 2 workers"
    title = heading("dask_peers.py", words)  # before a nanny limits the threads of this process
    notes = Notes(*data(given.rows, given.features), given.limit)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        compare(client, notes)
    publish(RESULTS / "dask_peers.md", title, list(notes.table()))


def _solution(X, y):
    model = ours(tol=1e-10).fit(X, y)
    return np.ravel(model.coef_), float(model.intercept_[0])


if __name__ == "__main__":
    main()
