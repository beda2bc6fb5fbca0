"""The steps of a solve with a triangle and few columns.

Left of a panel's diagonal block stand thin products, L[J, :J] Y on the way down and L[J, :J]ᵀ W_J
on the way up; the block itself is small and solved by substitution.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types

from admm_softmax.kernels.compiled.jit import separate, with_globals
from admm_softmax.kernels.compiled.layout import PANEL
from admm_softmax.kernels.compiled.thin import PRODUCTS
from admm_softmax.kernels.compiled.tiles import address_of
from admm_softmax.kernels.compiled.zstep import MATRIX, VECTOR

#: Stand for functions of one precision in the templates below; `with_globals` puts them in.
product: Any = None
take_scores: Any = None
pack_results: Any = None
add_transpose_product: Any = None


@cache
def downward(dtype: str) -> Any:
    """`_down` for a triangle of one precision."""
    p = PRODUCTS[np.dtype(dtype)]
    signature = types.void(p.matrix, MATRIX, p.matrix, p.matrix, VECTOR, MATRIX)
    tiles = p.by_tiles
    copy = with_globals(_down, p.name, product=tiles.product, take_scores=tiles.take)
    return separate(signature)(copy)


@cache
def upward(dtype: str) -> Any:
    """`_up` for a triangle of one precision."""
    p = PRODUCTS[np.dtype(dtype)]
    signature = types.void(p.matrix, MATRIX, p.matrix, MATRIX, p.flat, p.matrix, VECTOR)
    copy = with_globals(
        _up, p.name, pack_results=p.pack_results, add_transpose_product=p.add_transpose_product
    )
    return separate(signature)(copy)


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


def _up(
    L: Any, B: Any, pulled: Any, R: Any, R_data: Any, copied: Any, no_sums: Any
) -> None:  # fmt: skip
    """B ← L⁻ᵀ B; `pulled` is zero and sums what the rows below take away, in panels.

    `no_sums` is empty: those of the columns of R are not needed.
    """
    d, K = B.shape
    width = pulled.shape[1]
    for i in range((d - 1) // PANEL * PANEL, -1, -PANEL):
        size = min(PANEL, d - i)
        for t in range(size - 1, -1, -1):
            row, left = B[i + t], L[i + t]
            panel, place = len(pulled) - ((i + t) // width + 1) * K, (i + t) % width
            for k in range(K):
                row[k] = (row[k] - pulled[panel + k, place]) / left[i + t]
                R[k, t] = row[k]
            for u in range(t):
                for k in range(K):
                    B[i + u, k] -= left[i + u] * row[k]
        if i:
            pack_results(R, 0, R.shape[1], R_data, no_sums)
            here = address_of(L) + i * L.strides[0]
            add_transpose_product(here, L.strides[0], size, 0, i, R_data, pulled, copied)
