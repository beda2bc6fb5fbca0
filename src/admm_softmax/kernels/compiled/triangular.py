"""L Lᵀ W = B for few columns of B: both solves read the triangle once, at memory's speed.

The rows of L are taken in panels. With the inverses of the panels' diagonal blocks at
hand, what is left are thin products with the part of the panel left of its diagonal block:
L[J, :J] Y on the way down, and L[J, :J]ᵀ W_J on the way up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads, ordered_map
from admm_softmax.kernels.compiled import thin

#: Rows in a panel.
PANEL = 384


def invert_diagonal_blocks(L: Any) -> list[Array]:
    """The inverses of the diagonal blocks of a lower triangular L, in double."""
    blocks = [L[i : i + PANEL, i : i + PANEL] for i in range(0, len(L), PANEL)]
    return [
        solve_triangular(block.astype(np.float64), np.eye(len(block)), lower=True)
        for block in blocks
    ]


def solve(L: Any, inverses: list[Array], B: Array, n_threads: int) -> Array:
    """(L Lᵀ)⁻¹ B for a C-ordered lower triangular L; entries above its diagonal are ignored."""
    with blas_threads(1):
        return _up(L, inverses, _down(L, inverses, B, n_threads), n_threads)


def _down(L: Any, inverses: list[Array], B: Array, n_threads: int) -> Array:
    """L⁻¹ B."""
    d, K = B.shape
    lead = thin.lead_of(L)
    Y, Yt = np.empty((d, K)), thin.aligned(K, lead + d, L.dtype)
    for i, inverse in zip(range(0, d, PANEL), inverses, strict=True):
        rows = slice(i, i + len(inverse))
        Y[rows] = inverse @ (B[rows] - _product(L, i, len(inverse), lead, Yt, n_threads))
        Yt[:, lead + i : lead + i + len(inverse)] = Y[rows].T
    return Y


def _up(L: Any, inverses: list[Array], Y: Array, n_threads: int) -> Array:
    """L⁻ᵀ Y, written over Y."""
    d, K = Y.shape
    lead = thin.lead_of(L)
    pulled = thin.aligned(K, lead + d, L.dtype)
    for i, inverse in zip(reversed(range(0, d, PANEL)), reversed(inverses), strict=True):
        rows = slice(i, i + len(inverse))
        Y[rows] = inverse.T @ (Y[rows] - pulled[:, lead + i : lead + i + len(inverse)].T)
        _add_transpose_product(L, i, len(inverse), lead, Y[rows], pulled, n_threads)
    return Y


def _product(L: Any, i: int, size: int, lead: int, done: Any, n_threads: int) -> Array:
    """L[i : i + size, :i] times what is done so far, its rows shared among the threads."""
    out = np.zeros((size, done.shape[0]))
    if i == 0:
        return out
    share = max(32, -(-size // (n_threads * 8)) * 8)

    def work(first: int) -> None:
        count = min(share, size - first)
        S = np.empty((done.shape[0], share))
        thin.product(L, i + first, count, lead, lead + i, done, S)
        out[first : first + count] = S[:, :count].T

    ordered_map(work, range(0, size, share), n_threads)
    return out


def _add_transpose_product(
    L: Any, i: int, size: int, lead: int, W: Array, pulled: Any, n_threads: int
) -> None:
    """Add L[i : i + size, :i]ᵀ W to `pulled`, its columns shared among the threads."""
    if i == 0:
        return
    R = np.zeros((W.shape[1], PANEL), L.dtype)
    R[:, :size] = W.T
    end = lead + i
    share = thin.padded(-(-end // n_threads), L.itemsize)

    def work(start: int) -> None:
        thin.add_transpose_product(L, i, size, lead, start, min(start + share, end), R, pulled)

    ordered_map(work, range(0, end, share), n_threads)
