"""Fits in threads and processes, as scripts that the tests start and give a limited time.

`python -m tests.trust.concurrent CASE` prints "same" if all fits agree with the one alone.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from admm_softmax import SoftmaxRegression
from tests.problems import make


def small(solver="lbfgs"):
    """A fit in NumPy."""
    X, y = make(200, 8, 3)
    return SoftmaxRegression(1e-3, solver=solver, tol=1e-6).fit(X, y).coef_


def large(number=0):
    """A fit whose passes are compiled; `number` decides which kind."""
    X, y = make(12_000, 30, 12, dtype=[np.float32, np.float64][number % 2])
    solver = ["lbfgs", "admm"][number // 2 % 2]
    return SoftmaxRegression(1e-3, solver=solver, max_iter=4, tol=0.1).fit(X, y).coef_


def agree(found, expected):
    """Whether all are the same, but for what other numbers of BLAS threads change."""
    pairs = zip(found, expected, strict=True)
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in pairs)


def processes(method):
    """Four processes, after this one has fitted (and has threads of its own)."""
    expected = large()
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        return agree(list(pool.map(large, [0] * 4)), [expected] * 4)


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
    "counted": counted,
}

if __name__ == "__main__":
    print("same" if CASES[sys.argv[1]]() else "different", flush=True)
