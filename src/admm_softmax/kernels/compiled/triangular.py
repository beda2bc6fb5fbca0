"""L Lᵀ W = B for few columns of B: each thread reads the triangle once.

The rows of L are taken in panels. Left of a panel's diagonal block stand thin products,
L[J, :J] Y on the way down and L[J, :J]ᵀ W_J on the way up; the block itself is small and
solved by substitution. Threads share the columns of B and need not wait for each other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import ordered_map
from admm_softmax.kernels.compiled.arrays import plain
from admm_softmax.kernels.compiled.jit import ready, specialised
from admm_softmax.kernels.compiled.thin import PRODUCTS, aligned, panel, product_room
from admm_softmax.kernels.compiled.tiles import address_of

#: Rows in a panel: a multiple of the columns in a tile, whatever the vectors and the precision.
PANEL = 64
#: Columns that one thread takes: half of them, within these bounds.
LEAST_COLUMNS, MOST_COLUMNS = 5, 64

#: Stand for functions of one precision in the templates below; `specialised` puts them in.
product: Any = None
take_scores: Any = None
pack_results: Any = None
add_transpose_product: Any = None


def solve(L: Any, B: Array) -> Array:
    """(L Lᵀ)⁻¹ B for a C-ordered lower triangular L; entries above its diagonal are ignored."""
    d, K = B.shape
    L = plain(L, L.dtype)
    down, up = _steps(L.dtype)
    W = np.empty((d, K))
    size = int(np.clip(-(-K // 2), LEAST_COLUMNS, MOST_COLUMNS))

    def work(first: int) -> None:
        columns = slice(first, first + size)
        part = np.array(B[:, columns], dtype=np.float64, order="C")
        k = part.shape[1]
        sums, S = product_room(PANEL, k, L.dtype, False, False), np.zeros((k, PANEL))
        down(L, part, aligned(k, d, L.dtype), sums, np.zeros(k), S)
        copied = np.zeros((PANEL, panel(L.itemsize)), L.dtype)
        up(L, part, aligned(k, d, L.dtype), S, np.zeros(k * PANEL, L.dtype), copied)
        W[:, columns] = part

    ordered_map(work, range(0, K, size), operations=float(d) * d * K)
    return W


@cache
def _steps(dtype: Any) -> tuple[Any, Any]:
    """`_down` and `_up` for a triangle of one precision."""
    p = PRODUCTS[np.dtype(dtype)]
    forward = p.with_few
    down = specialised(_down, p.name, product=forward.product, take_scores=forward.take)
    up = specialised(
        _up, p.name, pack_results=p.pack_results, add_transpose_product=p.add_transpose_product
    )
    return ready(down), ready(up)


def _down(L: Any, B: Any, Yt: Any, sums: Any, nothing: Any, S: Any) -> None:
    """B ← L⁻¹ B; `Yt` is zero and will hold the result in L's precision, as `product` wants.

    S and `nothing` are zero at first; the former holds what the columns before take away.
    """
    d, K = B.shape
    for i in range(0, d, PANEL):
        size = min(PANEL, d - i)
        if i:
            here = address_of(L) + i * L.strides[0]
            product(here, L.strides[0], size, 0, i, Yt, False, sums)
            take_scores(sums, 0, nothing, S)
        for t in range(size):
            row, left = B[i + t], L[i + t]
            for k in range(K):
                row[k] -= S[k, t]
            for u in range(t):
                for k in range(K):
                    row[k] -= left[i + u] * B[i + u, k]
            for k in range(K):
                row[k] /= left[i + t]
                Yt[k, i + t] = row[k]


def _up(L: Any, B: Any, pulled: Any, R: Any, R_data: Any, copied: Any) -> None:
    """B ← L⁻ᵀ B; `pulled` is zero and sums what the rows below take away."""
    d, K = B.shape
    for i in range((d - 1) // PANEL * PANEL, -1, -PANEL):
        size = min(PANEL, d - i)
        for t in range(size - 1, -1, -1):
            row, left = B[i + t], L[i + t]
            for k in range(K):
                row[k] = (row[k] - pulled[k, i + t]) / left[i + t]
                R[k, t] = row[k]
            for u in range(t):
                for k in range(K):
                    B[i + u, k] -= left[i + u] * row[k]
        if i:
            pack_results(R, 0, R_data, R, -1)
            here = address_of(L) + i * L.strides[0]
            add_transpose_product(here, L.strides[0], size, 0, i, R_data, pulled, copied)
