"""L Lᵀ W = B for few columns of B: each thread reads the triangle once.

The rows of L are taken in panels; see `substitution`. Threads share the columns of B and need not
wait for each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._cpu import measured
from admm_softmax._parallel import ordered_map
from admm_softmax.kernels.compiled import passes
from admm_softmax.kernels.compiled.arrays import plain
from admm_softmax.kernels.compiled.layout import PANEL, aligned, panel, panels, product_room

#: Columns that one thread takes at a time, if there are as many: fewer cost a read of the triangle
#: for little work, more do not fit into the cache. Solves with 3,000 × 3,000 and 10 columns take
#: 9.6, 9.3 and 7.1 ms with 2, 5 and 10 of them as the least on an Emerald Rapids with AVX-512; held
#: to AVX2 8.3, 9.0 and 10.5 ms, on Zen 3 7.4, 6.9 and 7.6 ms. With 200 columns they take 105, 88,
#: 78 and 67 ms with at most 16, 32, 64 and 128; 160, 147, 119 and 99 ms; 74, 65, 59 and 45 ms.
LEAST_COLUMNS, MOST_COLUMNS = measured(wide=10, narrow=5), 128


def columns_together(K: int) -> int:
    """How many of K columns one thread takes at a time: an even number of parts of one size.

    By K alone, not by the threads at hand.

    >>> [columns_together(K) for K in (50, 200, 300)]
    [25, 100, 75]
    """
    n_parts = 2 * -(-K // (2 * MOST_COLUMNS))
    return max(LEAST_COLUMNS, -(-K // n_parts))


def solve(L: Any, B: Array) -> Array:
    """(L Lᵀ)⁻¹ B for a C-ordered lower triangular L; entries above its diagonal are ignored."""
    d, K = B.shape
    L = plain(L, L.dtype)
    down, up = passes.substitutions(L.dtype)
    W = np.empty((d, K))
    size = columns_together(K)

    def work(first: int) -> None:
        columns = slice(first, first + size)
        part = np.array(B[:, columns], dtype=np.float64, order="C")
        k = part.shape[1]
        sums, S = product_room(PANEL, k, L.dtype, False, False), np.zeros((k, PANEL))
        down(L, part, aligned(k, d, L.dtype), sums, np.zeros(k), S)
        copied = np.zeros((PANEL, panel(L.itemsize)), L.dtype)
        R_data = np.zeros(k * PANEL, L.dtype)
        up(L, part, panels(k, d, L.dtype), S, R_data, copied, np.zeros(0))
        W[:, columns] = part

    ordered_map(work, range(0, K, size), operations=float(d) * d * K)
    return W
