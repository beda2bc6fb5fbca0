"""Fits in threads and processes, as scripts that the tests start and give a limited time.

`python -m tests.trust.concurrent CASE` prints "same" if all fits agree with the one alone, and if
no process had more threads than it may have.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV
from admm_softmax._parallel import cpu_count
from tests.problems import make


def own_threads():
    """The threads of the library in this process, and the most that it should have."""
    names = [thread.name for thread in threading.enumerate()]
    return sum(name.startswith("admm-softmax") for name in names), cpu_count()


def large(number=0):
    """A fit whose passes are compiled; `number` decides which kind. Its threads are counted."""
    X, y = make(12_000, 30, 12, dtype=[np.float32, np.float64][number % 2])
    solver = ["lbfgs", "admm"][number // 2 % 2]
    clf = SoftmaxRegression(1e-3, solver=solver, max_iter=4, tol=0.1).fit(X, y)
    return clf.coef_, *own_threads()


def chosen(number=0):
    """A cross-validation, which is parallel itself."""
    X, y = make(600, 10, 3, seed=number)
    clf = SoftmaxRegressionCV([0.1, 1e-2], cv=3, tol=1e-6).fit(X, y)
    return clf.coef_, *own_threads()


def agree(found, expected):
    """Whether all are the same, but for what other numbers of BLAS threads change."""
    pairs = list(zip(found, expected, strict=True))
    alike = all(np.allclose(a[0], b[0], rtol=1e-3, atol=1e-4) for a, b in pairs)
    return alike and all(threads <= most for _, threads, most in found)


def processes(method):
    """Four processes, after this one has fitted (and has threads of its own)."""
    expected = large()
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        return agree(list(pool.map(large, [0] * 4)), [expected] * 4)


def threads():
    """Eight threads that fit at once, each its own data, whose passes share one pool."""
    kinds = [0, 1, 2, 3] * 2
    expected = [large(kind) for kind in kinds]
    with ThreadPoolExecutor(len(kinds)) as pool:
        return agree(list(pool.map(large, kinds)), expected)


def loky():
    """joblib's processes, which are told how many cores each has."""
    from joblib import Parallel, delayed

    expected = large()
    found = Parallel(n_jobs=2, backend="loky")(delayed(large)() for _ in range(4))
    return agree(found, [expected] * 4)


def nested():
    """Cross-validations in threads in joblib's processes, and a search around a search."""
    from joblib import Parallel, delayed
    from sklearn.model_selection import GridSearchCV

    expected = [chosen(number) for number in range(4)]
    found = Parallel(n_jobs=2)(delayed(in_threads)() for _ in range(2))
    same = all(agree(part, expected) for part in found)
    X, y = make(300, 8, 3)
    grid = {"C": [0.1, 1.0]}
    alone, inside = (
        GridSearchCV(SoftmaxRegression(tol=1e-6), grid, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
    )
    scores = [search.cv_results_["mean_test_score"] for search in (alone, inside)]
    return same and np.array_equal(*scores)


def in_threads():
    """Four cross-validations in four threads."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(chosen, range(4)))


def dask():
    """Fits as tasks of Dask's workers: of two processes, and of two threads of one."""
    from distributed import Client, LocalCluster

    expected = [large(kind) for kind in (0, 1, 2, 3)]
    same = True
    for workers, each in ((2, 1), (1, 2)):
        settings = {"n_workers": workers, "threads_per_worker": each, "processes": True}
        with LocalCluster(**settings, dashboard_address=None) as cluster, Client(cluster) as client:
            found = client.gather(client.map(large, [0, 1, 2, 3], pure=False))
        same = same and agree(found, expected)
    return same


def counted():
    """Threads of this process after fits with one, two and any number of threads."""
    before = threading.active_count()
    X, y = make(12_000, 30, 12)
    SoftmaxRegression(1e-2, n_threads=1, max_iter=3, tol=0.1).fit(X, y)
    alone = threading.active_count()
    for _ in range(5):
        SoftmaxRegression(1e-2, n_threads=3, max_iter=3, tol=0.1).fit(X, y)
    return alone == before and threading.active_count() <= before + 3


CASES = {
    "fork": lambda: processes("fork"),
    "spawn": lambda: processes("spawn"),
    "forkserver": lambda: processes("forkserver"),
    "loky": loky,
    "threads": threads,
    "nested": nested,
    "dask": dask,
    "counted": counted,
}

if __name__ == "__main__":
    print("same" if CASES[sys.argv[1]]() else "different", flush=True)
