"""L Lᵀ W = B for few columns of B: each thread reads the triangle once.

The rows of L are taken in panels; see `substitution`. Threads share the columns of B and need not
wait for each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import ordered_map
from admm_softmax.kernels.compiled import passes
from admm_softmax.kernels.compiled.arrays import plain
from admm_softmax.kernels.compiled.layout import PANEL, aligned, panel, panels, product_room

#: Columns that one thread takes: half of them, within these bounds.
LEAST_COLUMNS, MOST_COLUMNS = 5, 64


def solve(L: Any, B: Array) -> Array:
    """(L Lᵀ)⁻¹ B for a C-ordered lower triangular L; entries above its diagonal are ignored."""
    d, K = B.shape
    L = plain(L, L.dtype)
    down, up = passes.substitutions(L.dtype)
    W = np.empty((d, K))
    size = int(np.clip(-(-K // 2), LEAST_COLUMNS, MOST_COLUMNS))

    def work(first: int) -> None:
        columns = slice(first, first + size)
        part = np.array(B[:, columns], dtype=np.float64, order="C")
        k = part.shape[1]
        sums, S = product_room(PANEL, k, L.dtype, False, False), np.zeros((k, PANEL))
        down(L, part, aligned(k, d, L.dtype), sums, np.zeros(k), S)
        copied = np.zeros((PANEL, panel(L.itemsize)), L.dtype)
        up(L, part, panels(k, d, L.dtype), S, np.zeros(k * PANEL, L.dtype), copied)
        W[:, columns] = part

    ordered_map(work, range(0, K, size), operations=float(d) * d * K)
    return W
