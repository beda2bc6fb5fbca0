"""The row kernels on a tile: twins of `admm_softmax.kernels.rows`, classes down, rows across.

Every kernel is a branch of one function with one signature, so that a pass over X is
compiled once for all of them.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from admm_softmax.kernels.compiled.jit import compiled
from admm_softmax.kernels.compiled.zstep import softmax_tile, solve_tile

PREDICT, HAND_OVER, EVALUATE, GRADIENT, LINEARISE = 0, 1, 2, 3, 4
HESSIAN_PRODUCT, WEIGH, START, ADMM, MISFIT = 5, 6, 7, 8, 9

#: Scratch that `run_tile` asks for: so many K × T and so many T.
TILES, LANES = 8, 10


@compiled
def run_tile(  # noqa: PLR0912  (one branch a kernel)
    kernel: int, settings: Any, S: Any, first: int, count: int, codes: Any, soft: Any,
    weights: Any, state: Any, work: Any, lane: Any, R: Any, new_rows: Any, sums: Any,
) -> None:  # fmt: skip
    """Run one row kernel on the rows first ≤ i < first + count, whose scores are S.

    S : scores, K × T. Columns from `count` on hold anything finite.
    codes, soft, weights, state : the row inputs, by absolute row; empty where not needed
    work, lane : scratch, TILES × K × T and LANES × T
    R : the result, K × T (or 2K × T); zero from column `count` on
    new_rows : the new rows, n × K, or empty
    sums : added to
    """
    K, T = S.shape
    w = lane[9]
    for t in range(T):
        w[t] = weights[first + t] if t < count and len(weights) else 0.0
    if kernel == PREDICT:
        store(S, first, count, new_rows)
    elif kernel == HAND_OVER:
        for k in range(R.shape[0]):
            for t in range(T):
                R[k, t] = state[first + t, k] if t < count else 0.0
    elif kernel == WEIGH:
        for k in range(K):
            for t in range(T):
                R[k, t] = S[k, t] * w[t]
    elif kernel == HESSIAN_PRODUCT:
        _hessian_product(S, first, count, state, work[0], lane[0], w, R)
    else:
        C = work[0]
        label_tile(C, first, count, codes, soft)
        if kernel == ADMM:
            _admm(settings, S, C, first, count, state, work, lane, w, R, new_rows, sums)
        elif kernel == MISFIT:
            _misfit(settings, S, C, first, count, state, work, lane, w, R)
        else:
            P = work[1]
            softmax_tile(S, P, lane[0], lane[1], lane[2])
            if kernel == START:
                for k in range(K):
                    for t in range(T):
                        R[k, t] = (C[k, t] - P[k, t]) * w[t]
                        R[K + k, t] = S[k, t] * w[t]
                store(S, first, count, new_rows)
                return
            _loss_and_accuracy(S, C, lane[0], lane[1], w, sums)
            if kernel == EVALUATE:
                return
            sums[2] += _curvature(P, w)
            for k in range(K):
                for t in range(T):
                    R[k, t] = (P[k, t] - C[k, t]) * w[t]
            if kernel == LINEARISE:
                store(P, first, count, new_rows)


@compiled
def _admm(
    settings: Any, S: Any, C: Any, first: int, count: int, state: Any, work: Any, lane: Any,
    w: Any, R: Any, new_rows: Any, sums: Any,
) -> None:  # fmt: skip
    rho, relaxation, dual_is_zero = settings[0], settings[1], settings[2] != 0.0
    K, T = S.shape
    P, Z, V, P_new = work[1], work[2], work[3], work[4]
    softmax_tile(S, P, lane[0], lane[1], lane[2])
    _loss_and_accuracy(S, C, lane[0], lane[1], w, sums)
    sums[6] += _curvature(P, w)
    fetch(state, first, count, Z)
    for k in range(K):
        for t in range(T):
            V[k, t] = relaxation * S[k, t] + (1.0 - relaxation) * Z[k, t]
    if R.shape[0] > K:
        for k in range(K):
            for t in range(T):
                R[K + k, t] = (P[k, t] - C[k, t]) * w[t]
    if not dual_is_zero:
        softmax_tile(Z, P_new, lane[0], lane[1], lane[2])
        for k in range(K):
            for t in range(T):
                V[k, t] += (P_new[k, t] - C[k, t]) / rho
    solve_tile(V, C, rho, Z, P_new, not dual_is_zero, count, work[5:8], lane)
    for k in range(K):
        for t in range(T):
            gap = Z[k, t] - S[k, t]
            sums[2] += w[t] * gap * gap
            sums[3] += w[t] * S[k, t] * S[k, t]
            sums[4] += w[t] * Z[k, t] * Z[k, t]
            R[k, t] = (C[k, t] - P_new[k, t]) * w[t]
    for t in range(T):
        sums[5] += w[t] * lane[0, t]
    store(Z, first, count, new_rows)


@compiled
def _misfit(
    settings: Any, S: Any, C: Any, first: int, count: int, state: Any, work: Any, lane: Any,
    w: Any, R: Any,
) -> None:  # fmt: skip
    rho, dual_is_zero = settings[0], settings[2] != 0.0
    K, T = S.shape
    P, Z = work[1], work[2]
    fetch(state, first, count, Z)
    softmax_tile(Z, P, lane[0], lane[1], lane[2])
    for k in range(K):
        for t in range(T):
            r = rho * (Z[k, t] - S[k, t])
            if not dual_is_zero:
                r -= P[k, t] - C[k, t]
            R[k, t] = r * w[t]


@compiled
def _hessian_product(
    S: Any, first: int, count: int, state: Any, P: Any, inner: Any, w: Any, R: Any
) -> None:
    K, T = S.shape
    fetch(state, first, count, P)
    for t in range(T):
        inner[t] = 0.0
    for k in range(K):
        for t in range(T):
            inner[t] += P[k, t] * S[k, t]
    for k in range(K):
        for t in range(T):
            R[k, t] = P[k, t] * (S[k, t] - inner[t]) * w[t]


@compiled
def _loss_and_accuracy(S: Any, C: Any, top: Any, total: Any, w: Any, sums: Any) -> None:
    """Add Σ w (logsumexp(s) − c·s) and Σ w [the largest score is at the largest label]."""
    K, T = S.shape
    loss, accuracy = 0.0, 0.0
    for t in range(T):
        if w[t] != 0.0:
            of_label, best, truth = 0.0, 0, 0
            for k in range(K):
                of_label += C[k, t] * S[k, t]
                if S[k, t] > S[best, t]:
                    best = k
                if C[k, t] > C[truth, t]:
                    truth = k
            loss += w[t] * (log(total[t]) + top[t] - of_label)
            accuracy += w[t] * (best == truth)
    sums[0] += loss
    sums[1] += accuracy


@compiled
def _curvature(P: Any, w: Any) -> float:
    K, T = P.shape
    total = 0.0
    for t in range(T):
        total += w[t]
    for k in range(K):
        for t in range(T):
            total -= w[t] * P[k, t] * P[k, t]
    curvature: float = total / K
    return curvature


@compiled
def label_tile(C: Any, first: int, count: int, codes: Any, soft: Any) -> None:
    """C as a tile, from codes or from soft labels."""
    if len(codes):
        C[:] = 0.0
        for t in range(count):
            C[codes[first + t], t] = 1.0
    else:
        fetch(soft, first, count, C)


@compiled
def fetch(rows: Any, first: int, count: int, tile: Any) -> None:
    """Rows into a tile, zeros beyond."""
    K, T = tile.shape
    block = rows[first : first + count]
    for t in range(count):
        for k in range(K):
            tile[k, t] = block[t, k]
    for k in range(K):
        for t in range(count, T):
            tile[k, t] = 0.0


@compiled
def store(tile: Any, first: int, count: int, rows: Any) -> None:
    """A tile into rows."""
    block = rows[first : first + count]
    for t in range(count):
        for k in range(tile.shape[0]):
            block[t, k] = tile[k, t]


@compiled
def scratch(n_classes: int, width: int) -> Any:
    """What `run_tile` works in."""
    return np.zeros((TILES, n_classes, width)), np.zeros((LANES, width))
