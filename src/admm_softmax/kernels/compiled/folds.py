"""One pass over some rows of X: product, row kernel, transposed product, a few rows at a time.

Each function runs on one thread and adds to a `product` of its own; see `Design.fold`. Several
tasks may share the pass: their weights W and results R lie one after the other, and they have
a row each in `settings`, `state`, `new_rows` and `sums`, and the row `which` of `weights`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax.kernels.compiled.gather import multiply
from admm_softmax.kernels.compiled.jit import compiled, use_wide_vectors
from admm_softmax.kernels.compiled.rows import fetch, label_tile, run_tile, scratch, store
from admm_softmax.kernels.compiled.thin import add_transpose_product, product
from admm_softmax.kernels.compiled.zstep import solve_tile

#: Rows added up in the data's precision before they join the sum in double.
FLUSH = 1024
#: Rows in a tile where no product with X asks for another number.
TILE_ROWS = 64


@compiled
def run_tasks(
    kernel: int, settings: Any, S: Any, first: int, count: int, codes: Any, soft: Any,
    weights: Any, which: Any, state: Any, work: Any, lane: Any, R: Any, new_rows: Any, sums: Any,
) -> None:  # fmt: skip
    """The row kernel of every task on its own rows of S and R."""
    n_tasks = len(which)
    K, r = S.shape[0] // n_tasks, R.shape[0] // n_tasks
    for g in range(n_tasks):
        run_tile(kernel, settings[g], S[g * K : (g + 1) * K], first, count, codes, soft,
                 weights[which[g]], state[g], work, lane, R[g * r : (g + 1) * r], new_rows[g],
                 sums[g])  # fmt: skip


@compiled
def fold_dense(
    X: Any, lead: int, start: int, stop: int, width: int, Wt: Any, bias: Any, intercept: bool,
    kernel: int, settings: Any, codes: Any, soft: Any, weights: Any, which: Any, state: Any,
    new_rows: Any, part: Any, total: Any, sums: Any,
) -> None:  # fmt: skip
    """Fold the rows start ≤ i < stop of a C-ordered X into `total` (columns of R × d).

    A block of `width` rows is multiplied by W, put through the row kernel and multiplied
    again while the cache still holds it. `part` is zero before and after: the sum so far
    in the data's precision, a row for each column of R, laid out as Wᵀ is.
    """
    d = X.shape[1]
    K, n_results = Wt.shape[0], total.shape[0]
    S, R = np.zeros((K, width)), np.zeros((n_results, width))
    R_data = np.zeros((n_results, width), X.dtype)
    n_tasks = len(which)
    work, lane = scratch(K // n_tasks, width)
    waiting = 0
    for first in range(start, stop, width):
        count = min(width, stop - first)
        if K:
            product(X, first, count, lead, lead + d, Wt, S)
            for k in range(K):
                for t in range(width):
                    S[k, t] += bias[k]
        run_tasks(kernel, settings, S, first, count, codes, soft, weights, which, state, work,
                  lane, R, new_rows, sums)  # fmt: skip
        if n_results == 0:
            continue
        for k in range(n_results):
            for t in range(width):
                R_data[k, t] = R[k, t]
                if intercept:
                    total[k, d] += R[k, t]
        add_transpose_product(X, first, count, lead, 0, lead + d, R_data, part)
        waiting += count
        if waiting >= FLUSH or first + width >= stop:
            waiting = 0
            for k in range(n_results):
                for j in range(d):
                    total[k, j] += part[k, lead + j]
                    part[k, lead + j] = 0.0


@compiled
def fold_csr(
    data: Any, indices: Any, pointers: Any, start: int, stop: int, width: int, W: Any,
    bias: Any, kernel: int, settings: Any, codes: Any, soft: Any, weights: Any, which: Any,
    state: Any, new_rows: Any, n_results: int, R_rows: Any, sums: Any,
) -> None:  # fmt: skip
    """Scores and row kernel for CSR rows start ≤ i < stop; R goes to its rows of `R_rows`.

    W and `R_rows` are padded as `gather` does. The product with the transpose is left to
    `add_columns`: adding sparse rows up here would scatter them over a dense d × K matrix,
    which no cache holds.
    """
    K = len(bias)
    S, R = np.zeros((K, width)), np.zeros((n_results, width))
    scores = np.zeros((width, W.shape[1]))
    work, lane = scratch(K // len(which), width)
    for first in range(start, stop, width):
        count = min(width, stop - first)
        multiply(data, indices, pointers, first, count, W, scores)
        for t in range(count):
            for k in range(K):
                S[k, t] = scores[t, k] + bias[k]
        run_tasks(kernel, settings, S, first, count, codes, soft, weights, which, state, work,
                  lane, R, new_rows, sums)  # fmt: skip
        store(R, first, count, R_rows)


@compiled
def add_columns(
    data: Any, indices: Any, pointers: Any, start: int, stop: int, R: Any, product: Any
) -> None:
    """product[j] = Σᵢ xᵢⱼ Rᵢ for the columns start ≤ j < stop of X, stored column by column."""
    multiply(data, indices, pointers, start, stop - start, R, product[start:stop])


@compiled
def run_rows(
    kernel: int, settings: Any, scores: Any, codes: Any, soft: Any, weights: Any, which: Any,
    state: Any, R: Any, new_rows: Any, sums: Any,
) -> None:  # fmt: skip
    """The row kernel alone, on a block of scores (b × K) that something else multiplied."""
    b, K = scores.shape
    width = TILE_ROWS
    n_results = R.shape[1]
    S, R_tile = np.zeros((K, width)), np.zeros((n_results, width))
    work, lane = scratch(K // len(which), width)
    for first in range(0, b, width):
        count = min(width, b - first)
        for t in range(count):
            for k in range(K):
                S[k, t] = scores[first + t, k]
        run_tasks(kernel, settings, S, first, count, codes, soft, weights, which, state, work,
                  lane, R_tile, new_rows, sums)  # fmt: skip
        for t in range(count):
            for k in range(n_results):
                R[first + t, k] = R_tile[k, t]


@compiled
def solve_rows(
    V: Any, codes: Any, soft: Any, rho: float, Z: Any, Z_new: Any, P: Any, steps: Any
) -> None:
    """The z-step alone: Z_new solves for V, starting from Z; P is its softmax."""
    use_wide_vectors()
    n, K = V.shape
    width = TILE_ROWS
    work, lane = scratch(K, width)
    C, V_tile, Z_tile, P_tile = work[0], work[1], work[2], work[3]
    for first in range(0, n, width):
        count = min(width, n - first)
        label_tile(C, first, count, codes, soft)
        fetch(V, first, count, V_tile)
        fetch(Z, first, count, Z_tile)
        solve_tile(V_tile, C, rho, Z_tile, P_tile, False, count, work[5:8], lane)
        store(Z_tile, first, count, Z_new)
        store(P_tile, first, count, P)
        for t in range(count):
            steps[first + t] = lane[0, t]
