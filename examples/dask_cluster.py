"""Softmax regression on a Dask cluster: any scheduler's, or a local one.

::

    python examples/dask_cluster.py                          # two processes on this machine
    python examples/dask_cluster.py tcp://scheduler:8786     # a cluster that is running

The workers make the data, so that nothing is sent: embedding-like rows, with labels from a
known model. Workers need admm-softmax installed.
"""

import argparse
import time
from contextlib import ExitStack

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from admm_softmax import SoftmaxRegression


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("scheduler", nargs="?", help="address; none starts a local cluster")
    parser.add_argument("--workers", type=int, default=2, help="of a local cluster")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--tol", type=float, default=1e-4)
    return parser.parse_args()


def connect(stack, given):
    """A client of the given scheduler, or of a local cluster that ends with the script."""
    if given.scheduler is not None:
        return stack.enter_context(Client(given.scheduler))
    local = LocalCluster(
        n_workers=given.workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    )
    return stack.enter_context(Client(stack.enter_context(local)))


def data(given):
    """Rows and labels, lazily."""
    random = da.random.default_rng(0)
    shape, chunks = (given.rows, given.features), (-(-given.rows // given.partitions), -1)
    X = random.standard_normal(shape, chunks=chunks, dtype=np.float32)
    truth = np.random.default_rng(1).standard_normal((given.features, given.classes))
    noise = random.gumbel(size=(given.rows, given.classes), chunks=chunks)
    return X, (X @ truth.astype(np.float32) + noise).argmax(axis=1)


def main():
    """Fit, score, and say what happened."""
    given = arguments()
    with ExitStack() as stack:
        client = connect(stack, given)
        threads = client.nthreads()
        print(
            f"{len(threads)} workers, {sum(threads.values())} threads: {client.scheduler.address}"
        )
        X, y = client.persist(data(given))
        test, train = slice(0, given.rows // 10), slice(given.rows // 10, None)
        size = 8 * (given.features + 1) * given.classes
        print(
            f"{given.rows:,} × {given.features} float32 ({X.nbytes / 1e6:.0f} MB) in "
            f"{X.numblocks[0]} partitions, {given.classes} classes: a pass sends "
            f"{size / 1e3:.1f} KB to every worker and adds up as much per partition"
        )
        iterations = []

        def show(iterate):
            iterations.append(iterate)
            print(
                f"  iteration {len(iterations):3d}: objective {iterate.objective:.6f}, "
                f"accuracy {iterate.accuracy:.2%}, max|gradient| {iterate.gradient_norm:.1e}"
            )

        clf = SoftmaxRegression(alpha=1e-5, solver=given.solver, tol=given.tol, callbacks=show)
        began = time.perf_counter()
        clf.fit(X[train], y[train])
        seconds = time.perf_counter() - began
        passes = clf.history_["passes"][-1]
        print(f"{clf.status_} after {clf.n_iter_} iterations, {passes:.1f} passes, {seconds:.1f} s")
        print(f"solver: {clf.history_.solver} ({clf.history_.reason})")
        score = clf.score(X[test], y[test])  # lazy: float() computes it, on the workers
        print(f"accuracy on {given.rows // 10:,} rows held out: {float(score):.2%}")


if __name__ == "__main__":
    main()
