"""Side by side with dask-ml's LogisticRegression on a cluster, and scikit-learn's on one machine.

::

    python benchmarks/dask_peers.py [--rows 400000] [--features 100]

Needs dask-ml. Two classes, as dask-ml has no multinomial; float64; C = 1; the intercept is
penalised, as dask-glm does. Two local processes with one thread each; the data are persisted
before the clock starts. Every fit is judged by the same objective: its gap to that of ours in
memory with tol = 1e-10. Ours runs before and after the peers; the median counts. Writes
benchmarks/results/dask_peers.md.
"""

import argparse
import time
import warnings

import dask.array as da
import numpy as np
from benchmark_utils.tables import RESULTS, heading, publish
from dask_ml.linear_model import LogisticRegression as DaskLogisticRegression
from distributed import Client, LocalCluster
from sklearn.linear_model import LogisticRegression

from admm_softmax import SoftmaxRegression


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


def fitted(make, X, y):
    begin = time.perf_counter()
    model = make().fit(X, y)
    return model, time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--features", type=int, default=100)
    given = parser.parse_args()
    words = f"{given.rows:,} × {given.features}, two classes, float64, 8 partitions, 2 workers"
    title = heading("dask_peers.py", words)  # before a nanny limits the threads of this process
    X, y = data(given.rows, given.features)
    found = {}

    def note(name, make, X_given, y_given):
        try:
            model, seconds = fitted(make, X_given, y_given)
        except Exception as error:
            found.setdefault(name, []).append((np.nan, np.nan, type(error).__name__))
            return
        value = objective(X, y, np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))
        steps = getattr(model, "n_iter_", "")
        found.setdefault(name, []).append(
            (seconds, value, str(np.max(steps)) if steps != "" else "")
        )
        print(name, found[name][-1], flush=True)

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        chunks = -(-given.rows // 8)
        dX, dy = client.persist(
            [da.from_array(X, chunks=(chunks, -1)), da.from_array(y, chunks=chunks)]
        )
        for make in (ours, *peers().values()):  # loads libraries on the workers
            try:
                make().fit(dX[: chunks // 8], dy[: chunks // 8])
            except Exception as error:
                print("warm-up:", type(error).__name__, error)
        ours(solver="lbfgs").fit(dX, dy)
        for _ in range(2):
            note("ours on the cluster, tol 1e-4", ours, dX, dy)
            note("ours on the cluster, tol 1e-8", lambda: ours(tol=1e-8), dX, dy)
            note("ours in memory, tol 1e-4", lambda: ours(n_threads=2), X, y)
            for name, make in peers().items():
                if name not in found:
                    note(name, make, dX, dy)
            if "scikit-learn lbfgs in memory" not in found:
                note(
                    "scikit-learn lbfgs in memory",
                    lambda: LogisticRegression(C=1.0, max_iter=1000),
                    X,
                    y,
                )
    best = objective(X, y, *_solution(X, y))
    lines = [
        "| solver | seconds | iterations | relative gap of the objective |",
        "|---|---|---|---|",
    ]
    for name, runs in found.items():
        seconds, value = (float(np.median([run[i] for run in runs])) for i in (0, 1))
        lines.append(f"| {name} | {seconds:.2f} | {runs[0][2]} | {value / best - 1:.1e} |")
    publish(RESULTS / "dask_peers.md", title, lines)


def _solution(X, y):
    model = ours(tol=1e-10).fit(X, y)
    return np.ravel(model.coef_), float(model.intercept_[0])


if __name__ == "__main__":
    main()
