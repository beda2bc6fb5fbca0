"""Thin products over a few rows of X: any number of classes, any number of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax.kernels.compiled.jit import compiled
from admm_softmax.kernels.compiled.tiles import (
    MOST_CLASSES,
    ROWS,
    VECTOR_BYTES,
    product_1,
    product_2,
    product_3,
    product_4,
    product_5,
    transpose_1,
    transpose_2,
    transpose_3,
    transpose_4,
    transpose_5,
)

#: Of a tile's classes of W, or of the sum, so much is worked on at a time: all rows of a block
#: go past it while it stays in the first-level cache.
CHUNK_BYTES = 32 << 10
#: So many products at most are added up in the data's precision before double takes over.
LONGEST_CHUNK = 1024


@compiled
def padded(n_columns: int, itemsize: int) -> int:
    """The number of columns rounded up to whole vectors."""
    lanes = VECTOR_BYTES // itemsize
    return (n_columns + lanes - 1) // lanes * lanes


def aligned(n_rows: int, n_columns: int, dtype: Any) -> Any:
    """Zeros whose rows are whole vectors and begin where vectors do.

    A vector that straddles two cache lines costs two accesses; measured, misaligned sums
    make a pass a fifth slower.
    """
    dtype = np.dtype(dtype)
    width = padded(n_columns, dtype.itemsize)
    spare = VECTOR_BYTES // dtype.itemsize
    memory = np.zeros(n_rows * width + spare, dtype)
    offset = -memory.ctypes.data % VECTOR_BYTES // dtype.itemsize
    return memory[offset : offset + n_rows * width].reshape(n_rows, width)


def lead_of(X: Any) -> int:
    """By how many entries every row of a C-ordered X misses the start of a vector.

    Zero also where rows miss it by different amounts and nothing can be done.
    """
    if X.strides[0] % VECTOR_BYTES:
        return 0
    return int(X.ctypes.data % VECTOR_BYTES // X.itemsize)


def transposed(W: Any, dtype: Any, lead: int = 0) -> Any:
    """Wᵀ in this precision after `lead` columns of zeros, padded to whole vectors."""
    d, K = W.shape
    out = aligned(K, lead + d, dtype)
    out[:, lead : lead + d] = W.T
    return out


@compiled
def _chunk(n_classes: int, itemsize: int) -> int:
    """How many columns to work on at a time, in whole vectors."""
    lanes = VECTOR_BYTES // itemsize
    fitting = CHUNK_BYTES // (min(n_classes, MOST_CLASSES) * itemsize)
    return max(8, min(fitting, LONGEST_CHUNK) // lanes) * lanes


@compiled
def product(X: Any, first: int, count: int, lead: int, end: int, Wt: Any, S: Any) -> None:
    """S[k, t] = Σ_j X[first + t, j] Wt[k, lead + j] for t < count, lead + j < end.

    S is float64, K × T; T must be a multiple of the tile's rows, and entries beyond `count`
    mean nothing.
    """
    K, last = Wt.shape[0], first + count - 1
    n_groups = (K + MOST_CLASSES - 1) // MOST_CLASSES
    for k in range(K):
        for t in range(S.shape[1]):
            S[k, t] = 0.0
    chunk = _chunk(K, X.itemsize)
    for j0 in range(0, end, chunk):
        j1 = min(end, j0 + chunk)
        for g in range(n_groups):
            k = g * K // n_groups
            size = (g + 1) * K // n_groups - k
            for t in range(0, count, ROWS):
                i = first + t
                if size == 5:
                    product_5(X, i, last, lead, Wt, k, j0, j1, S, t)
                elif size == 4:
                    product_4(X, i, last, lead, Wt, k, j0, j1, S, t)
                elif size == 3:
                    product_3(X, i, last, lead, Wt, k, j0, j1, S, t)
                elif size == 2:
                    product_2(X, i, last, lead, Wt, k, j0, j1, S, t)
                else:
                    product_1(X, i, last, lead, Wt, k, j0, j1, S, t)


@compiled
def add_transpose_product(
    X: Any, first: int, count: int, lead: int, start: int, end: int, R: Any, Gt: Any
) -> None:
    """Gt[k, lead + j] += Σ_t R[k, t] X[first + t, j] for start ≤ lead + j < end.

    R, K × T, must be zero beyond `count`, and `start` a multiple of a vector.
    """
    K, last = R.shape[0], first + count - 1
    n_groups = (K + MOST_CLASSES - 1) // MOST_CLASSES
    chunk = _chunk(K, X.itemsize)
    # From the right: `product` went from the left, so there the cache still has X.
    for j0 in range(start + (end - start - 1) // chunk * chunk, start - 1, -chunk):
        j1 = min(end, j0 + chunk)
        for g in range(n_groups):
            k = g * K // n_groups
            size = (g + 1) * K // n_groups - k
            for t in range(0, count, ROWS):
                i = first + t
                if size == 5:
                    transpose_5(X, i, last, lead, R, t, Gt, k, j0, j1)
                elif size == 4:
                    transpose_4(X, i, last, lead, R, t, Gt, k, j0, j1)
                elif size == 3:
                    transpose_3(X, i, last, lead, R, t, Gt, k, j0, j1)
                elif size == 2:
                    transpose_2(X, i, last, lead, R, t, Gt, k, j0, j1)
                else:
                    transpose_1(X, i, last, lead, R, t, Gt, k, j0, j1)
