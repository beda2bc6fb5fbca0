"""The array types that all modules share, and the rounding of what they compute in."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

#: What solvers compute in: float64, whatever the data are stored in. L-BFGS alone computes in
#: float32 where X is sparse and float32 itself (`vector_dtype` in solvers/lbfgs.py).
Array: TypeAlias = NDArray[np.float64]

#: Class codes (n,) for hard labels, or rows of the simplex (n, K) for soft ones.
Labels: TypeAlias = NDArray[Any]

#: The rounding of float64: the distance from 1 to the next number.
EPS = float(np.finfo(np.float64).eps)


def inner(A: Array, B: Array) -> float:
    """⟨A, B⟩ of two matrices of one shape, on this thread.

    `np.vdot` gives more than ten thousand entries to all threads of BLAS. They go on spinning after
    their work: on two cores of a Zen 3, the pass over X that follows took 0.16 instead of 0.13 s.

    >>> inner(np.eye(2), np.full((2, 2), 3.0))
    6.0
    """
    if A.dtype == B.dtype == np.float32 and A.flags.c_contiguous and B.flags.c_contiguous:
        return _inner_of_singles(A.reshape(-1), B.reshape(-1))
    return float(np.einsum("ij,ij->", A, B))


def _inner_of_singles(a: Any, b: Any, size: int = 4096) -> float:
    """⟨a, b⟩ of two vectors in single precision, added up in double every few thousand entries.

    >>> found = _inner_of_singles(np.full(10**6, 0.1, np.float32), np.ones(10**6, np.float32))
    >>> abs(found - 1e5) < 1.0
    True
    """
    whole = len(a) - len(a) % size
    parts = np.matmul(a[:whole].reshape(-1, 1, size), b[:whole].reshape(-1, size, 1))
    return float(parts.sum(dtype=np.float64)) + float(a[whole:] @ b[whole:])


def add_multiple(total: Array, factor: float, term: Array) -> None:
    """Add factor · term to an array in place, without the temporary that NumPy would make.

    Both have one shape and one precision.

    >>> total = np.ones((2, 2))
    >>> add_multiple(total, 2.0, np.eye(2))
    >>> total
    array([[3., 1.],
           [1., 3.]])
    """
    # BLAS's wrapper would add to a copy of what is not aligned, as arrays from a network may be.
    if not (total.flags.carray and term.flags.c_contiguous):
        total += total.dtype.type(factor) * term
        return
    axpy = blas.daxpy if total.dtype == np.float64 else blas.saxpy
    axpy(term.reshape(-1), total.reshape(-1), a=factor)
