"""The row kernels on a tile: twins of `admm_softmax.kernels.rows`, classes down, rows across.

All have one signature, so that a pass over X can call any of them ::

    twin(settings, S, C, w, Z, count, work, lane, R, new, sums)

    settings : the kernel's settings, in their declared order
    S : scores of the tile's rows, K × T; columns from `count` on hold anything finite
    C : labels, K × T; zero from column `count` on
    w : weights, T; zero from `count` on
    Z : the state, K × T; zero from column `count` on
    work, lane : scratch, WORK × K × T and ROOM × T; below it the row TRUTH, an input
    R : the result, K × T (or 2K × T); zero from column `count` on
    new : the new rows, K × T
    sums : added to, in their declared order

What a kernel does not declare as its input holds anything, and what it does not declare as its
result is not looked at.
"""

from __future__ import annotations

from typing import Any

from numba import types

from admm_softmax.kernels import rows as declared
from admm_softmax.kernels.compiled.elementary import log_of_at_least_one
from admm_softmax.kernels.compiled.integers import as_index
from admm_softmax.kernels.compiled.jit import compiled, separate
from admm_softmax.kernels.compiled.lanes import (
    larger,
    load,
    spread,
    store,
    sum_lanes,
    where_above,
    where_equal,
)
from admm_softmax.kernels.compiled.layout import CODED, LANES, TRUTH
from admm_softmax.kernels.compiled.zstep import (
    MATRIX,
    VECTOR,
    exponentials_below,
    softmax_tile,
    solve_tile,
)

#: Where each sum is, as the kernels declare it.
LOSS, ACCURACY = map(declared.evaluate.sums.index, ("loss", "accuracy"))
CURVATURE = declared.gradient.sums.index("curvature")
ADMM_CURVATURE, GAP, SIZE_SCORES, SIZE_STATE, NEWTON_STEPS = map(
    declared.admm.sums.index, ("curvature", "gap", "size_scores", "size_state", "newton_steps")
)
TWIN = types.void(
    VECTOR, MATRIX, MATRIX, VECTOR, MATRIX, types.intp, types.float64[:, :, ::1], MATRIX, MATRIX,
    MATRIX, VECTOR,
)  # fmt: skip


@separate(TWIN)
def predict(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """The scores themselves."""
    _copy(S, new)


@separate(TWIN)
def hand_over(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """The state as R."""
    _copy(Z, R)


@separate(TWIN)
def weigh(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """The scores times the weights."""
    K, T = S.shape
    for k in range(K):
        for t in range(T):
            R[k, t] = S[k, t] * w[t]


@separate(TWIN)
def hessian_product(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """R = w (diag(p) − ppᵀ) s, P being the state, Z."""
    K, T = S.shape
    P, inner = Z, lane[0]
    for t in range(T):
        inner[t] = 0.0
    for k in range(K):
        for t in range(T):
            inner[t] += P[k, t] * S[k, t]
    for k in range(K):
        for t in range(T):
            R[k, t] = P[k, t] * (S[k, t] - inner[t]) * w[t]


@separate(TWIN)
def evaluate(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """Loss and accuracy."""
    _softmax_and_loss(S, C, w, work[0], lane, sums)


@separate(TWIN)
def gradient(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """R = w (P − C), with loss, accuracy and curvature."""
    _softmax_and_loss(S, C, w, R, lane, sums)
    sums[CURVATURE] += _weigh_difference(R, C, w, lane, R, False)


@separate(TWIN)
def linearise(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """As `gradient`, and keeps P."""
    _softmax_and_loss(S, C, w, new, lane, sums)
    sums[CURVATURE] += _weigh_difference(new, C, w, lane, R, True)


@separate(TWIN)
def start(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """[w (C − P), w S], and keeps S."""
    K, T = S.shape
    P = work[0]
    softmax_tile(S, P, lane[0], lane[1], lane[2])
    for k in range(K):
        for t in range(T):
            R[k, t] = (C[k, t] - P[k, t]) * w[t]
            R[K + k, t] = S[k, t] * w[t]
    _copy(S, new)


@separate(TWIN)
def admm(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """Relaxation, z-step and dual update; the gradient too where R has room for it."""
    rho, relaxation, dual_is_zero = settings[0], settings[1], settings[2] != 0.0
    K, T = S.shape
    P, V, Z_new = work[0], work[1], new
    _softmax_and_loss(S, C, w, P, lane, sums)
    sums[ADMM_CURVATURE] += _weigh_difference(P, C, w, lane, R[R.shape[0] - K :], True)
    for k in range(K):
        for t in range(T):
            V[k, t] = relaxation * S[k, t] + (1.0 - relaxation) * Z[k, t]
    if not dual_is_zero:
        softmax_tile(Z, P, lane[0], lane[1], lane[2])
        for k in range(K):
            for t in range(T):
                V[k, t] += (P[k, t] - C[k, t]) / rho
    _copy(Z, Z_new)
    solve_tile(V, C, rho, Z_new, P, not dual_is_zero, count, work[2:5], lane)
    gap, size_scores, size_state = 0.0, 0.0, 0.0
    for k in range(K):
        for t in range(T):
            s, z = S[k, t], Z_new[k, t]
            gap += w[t] * (z - s) * (z - s)
            size_scores += w[t] * s * s
            size_state += w[t] * z * z
            R[k, t] = (C[k, t] - P[k, t]) * w[t]
    sums[GAP] += gap
    sums[SIZE_SCORES] += size_scores
    sums[SIZE_STATE] += size_state
    for t in range(T):
        sums[NEWTON_STEPS] += w[t] * lane[0, t]


@separate(TWIN)
def misfit(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """R = w ρ (Z + U − S), Z being the state."""
    rho, dual_is_zero = settings[0], settings[1] != 0.0
    K, T = S.shape
    P = work[0]
    softmax_tile(Z, P, lane[0], lane[1], lane[2])
    for k in range(K):
        for t in range(T):
            r = rho * (Z[k, t] - S[k, t])
            if not dual_is_zero:
                r -= P[k, t] - C[k, t]
            R[k, t] = r * w[t]


@compiled
def _copy(tile: Any, out: Any) -> None:
    K, T = tile.shape
    for k in range(K):
        for t in range(T):
            out[k, t] = tile[k, t]


@separate(types.float64(MATRIX, MATRIX, VECTOR, MATRIX, MATRIX, types.boolean))
def _weigh_difference(P: Any, C: Any, w: Any, lane: Any, R: Any, keeps: bool) -> float:
    """R = w (p − c), p being P times the inverse of its sums, which P becomes where it `keeps`.

    Returns the mean curvature, Σ w p(1−p) / K. Two vectors of rows go side by side, since each
    sum waits for the one before. P may be R.
    """
    K, T = P.shape
    coded, total = lane[CODED, 0] != 0.0, spread(0.0)
    for t in range(0, T, 2 * LANES):
        u = t + LANES
        weight, factor, squares = load(w, 0, t), load(lane, 2, t), spread(0.0)
        weight_u, factor_u, squares_u = load(w, 0, u), load(lane, 2, u), spread(0.0)
        for k in range(K):
            p, p_u = load(P, k, t) * factor, load(P, k, u) * factor_u
            squares, squares_u = squares + p * p, squares_u + p_u * p_u
            if keeps:
                store(p, P, k, t)
                store(p_u, P, k, u)
            if not coded:
                p, p_u = p - load(C, k, t), p_u - load(C, k, u)
            store(p * weight, R, k, t)
            store(p_u * weight_u, R, k, u)
        total = total + (weight * (1.0 - squares) + weight_u * (1.0 - squares_u))
    if coded:
        for t in range(T):
            R[as_index(lane[TRUTH, t]), t] -= w[t]
    curvature: float = sum_lanes(total) / K
    return curvature


@separate(types.void(MATRIX, MATRIX, VECTOR, MATRIX, MATRIX, VECTOR))
def _softmax_and_loss(S: Any, C: Any, w: Any, P: Any, lane: Any, sums: Any) -> None:
    """P = exp(s − top), and into lanes 0 to 2 what `exponentials` finds.

    Adds Σ w (logsumexp(s) − c·s) and Σ w [the largest score is at the largest label].
    """
    K, T = S.shape
    coded = lane[CODED, 0] != 0.0
    for t in range(0, T, 2 * LANES):
        u = t + LANES
        top, first = load(S, 0, t), spread(0.0)
        top_u, first_u = load(S, 0, u), spread(0.0)
        product, product_u = top * load(C, 0, t), top_u * load(C, 0, u)
        for k in range(1, K):
            s, s_u = load(S, k, t), load(S, k, u)
            if not coded:
                product, product_u = product + s * load(C, k, t), product_u + s_u * load(C, k, u)
            first = where_above(s, top, float(k), first)
            first_u = where_above(s_u, top_u, float(k), first_u)
            top, top_u = larger(s, top), larger(s_u, top_u)
        store(top, lane, 0, t)
        store(top_u, lane, 0, u)
        store(first, lane, 4, t)
        store(first_u, lane, 4, u)
        store(product, lane, 3, t)
        store(product_u, lane, 3, u)
    if coded:
        for t in range(T):
            lane[3, t] = S[as_index(lane[TRUTH, t]), t]
    exponentials_below(S, P, lane[0], lane[1], lane[2])
    loss, hits = spread(0.0), spread(0.0)
    for t in range(0, T, LANES):
        weight = load(w, 0, t)
        value = log_of_at_least_one(load(lane, 1, t)) + load(lane, 0, t) - load(lane, 3, t)
        # A row without weight may hold anything.
        loss = loss + where_equal(weight, 0.0, 0.0, weight * value)
        hits = hits + where_equal(load(lane, 4, t), load(lane, TRUTH, t), weight, 0.0)
    sums[LOSS] += sum_lanes(loss)
    sums[ACCURACY] += sum_lanes(hits)
