"""L Lᵀ W = B for few columns of B: each thread reads the triangle once, as fast as it arrives.

The rows of L are taken in panels. Left of a panel's diagonal block stand thin products,
L[J, :J] Y on the way down and L[J, :J]ᵀ W_J on the way up; the block itself is small and
solved by substitution. Threads share the columns of B and need not wait for each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import ordered_map
from admm_softmax.kernels.compiled.jit import compiled
from admm_softmax.kernels.compiled.thin import add_transpose_product, aligned, lead_of, product

#: Rows in a panel.
PANEL = 64
#: Columns that one thread takes: half of them, within these bounds.
FEWEST, MOST = 5, 64


def solve(L: Any, B: Array, n_threads: int) -> Array:
    """(L Lᵀ)⁻¹ B for a C-ordered lower triangular L; entries above its diagonal are ignored."""
    d, K = B.shape
    lead = lead_of(L)
    W = np.empty((d, K))
    size = int(np.clip(-(-K // 2), FEWEST, MOST))

    def work(first: int) -> None:
        columns = slice(first, first + size)
        part = np.array(B[:, columns], dtype=np.float64, order="C")
        for step in (_down, _up):
            step(L, lead, part, aligned(part.shape[1], lead + d, L.dtype))
        W[:, columns] = part

    ordered_map(work, range(0, K, size), n_threads)
    return W


@compiled
def _down(L: Any, lead: int, B: Any, Yt: Any) -> None:
    """B ← L⁻¹ B; `Yt` is zero and will hold the result in L's precision, as `product` wants."""
    d, K = B.shape
    S = np.zeros((K, PANEL))
    for i in range(0, d, PANEL):
        size = min(PANEL, d - i)
        product(L, i, size, lead, lead + i, Yt, S)
        for t in range(size):
            row, left = B[i + t], L[i + t]
            for k in range(K):
                row[k] -= S[k, t]
            for u in range(t):
                for k in range(K):
                    row[k] -= left[i + u] * B[i + u, k]
            for k in range(K):
                row[k] /= left[i + t]
                Yt[k, lead + i + t] = row[k]


@compiled
def _up(L: Any, lead: int, B: Any, pulled: Any) -> None:
    """B ← L⁻ᵀ B; `pulled` is zero and sums what the rows below take away."""
    d, K = B.shape
    R = np.zeros((K, PANEL), L.dtype)
    for i in range((d - 1) // PANEL * PANEL, -1, -PANEL):
        size = min(PANEL, d - i)
        R[:] = 0.0
        for t in range(size - 1, -1, -1):
            row, left = B[i + t], L[i + t]
            for k in range(K):
                row[k] = (row[k] - pulled[k, lead + i + t]) / left[i + t]
                R[k, t] = row[k]
            for u in range(t):
                for k in range(K):
                    B[i + u, k] -= left[i + u] * row[k]
        add_transpose_product(L, i, size, lead, 0, lead + i, R, pulled)
