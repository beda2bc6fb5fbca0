"""The z-step on a tile of rows: classes down, rows across, so that rows are the lanes.

The twin of `admm_softmax.kernels.zstep`, which derives what is computed here. All rows of
a tile take Newton steps together until the last one has converged; those that are done
stand still.
"""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
from numba import types

from admm_softmax._arrays import EPS
from admm_softmax.kernels.compiled.elementary import exp_of_nonpositive
from admm_softmax.kernels.compiled.jit import compiled, separate, use_wide_vectors
from admm_softmax.kernels.compiled.lanes import larger, load, spread, store
from admm_softmax.kernels.compiled.layout import LANES
from admm_softmax.kernels.zstep import MOST_NEWTON_STEPS, MOST_ROOT_STEPS

DONE, MOVING, HARD = 0.0, 1.0, 2.0

CUBE, MATRIX, VECTOR = types.float64[:, :, ::1], types.float64[:, ::1], types.float64[::1]
_SOLVE = (
    MATRIX, MATRIX, types.float64, MATRIX, MATRIX, types.boolean, types.intp,
    types.float64[:, :, ::1], MATRIX,
)  # fmt: skip


@separate(types.void(MATRIX, MATRIX, VECTOR, VECTOR, VECTOR))
def softmax_tile(S: Any, P: Any, top: Any, total: Any, inverse: Any) -> None:
    """P = softmax of every column of S; also its maximum, Σ exp(s − top) and 1 / that."""
    exponentials(S, P, top, total, inverse)
    K, T = S.shape
    for t in range(0, T, LANES):
        factor = load(inverse, 0, t)
        for k in range(K):
            store(load(P, k, t) * factor, P, k, t)


@separate(types.void(MATRIX, MATRIX, VECTOR, VECTOR, VECTOR))
def exponentials(S: Any, P: Any, top: Any, total: Any, inverse: Any) -> None:
    """P = exp(s − top), the softmax but for its denominators."""
    K, T = S.shape
    for t in range(0, T, LANES):
        largest = load(S, 0, t)
        for k in range(1, K):
            largest = larger(load(S, k, t), largest)
        store(largest, top, 0, t)
    exponentials_below(S, P, top, total, inverse)


@separate(types.void(MATRIX, MATRIX, VECTOR, VECTOR, VECTOR))
def exponentials_below(S: Any, P: Any, top: Any, total: Any, inverse: Any) -> None:
    """As `exponentials`, with the maxima known."""
    K, T = S.shape
    for t in range(0, T, LANES):
        largest, sum_so_far = load(top, 0, t), spread(0.0)
        for k in range(K):
            e = exp_of_nonpositive(load(S, k, t) - largest)
            store(e, P, k, t)
            sum_so_far = sum_so_far + e
        store(sum_so_far, total, 0, t)
    for t in range(T):
        inverse[t] = 1.0 / total[t]


@separate(types.void(*_SOLVE))
def solve_tile(
    V: Any, C: Any, rho: float, Z: Any, P: Any, P_is_current: bool, count: int, work: Any, lane: Any
) -> None:
    """Solve the z-step for the first `count` columns, from Z, in place.

    On return Z solves and P is its softmax. `lane[0]` holds the Newton steps of each row;
    `work` (3 × K × T) and `lane` (9 × T) are scratch.
    """
    T = V.shape[1]
    for t in range(T):
        lane[0, t] = 0.0
    hard = _newton_tile(V, C, rho, Z, P, P_is_current, count, work, lane)
    if hard == 0:
        return
    for t in range(count):
        if lane[1, t] == HARD:
            _from_scalar_equation(V, C, rho, t, Z)
    _newton_tile(V, C, rho, Z, P, False, count, work, lane)


@separate(types.intp(*_SOLVE))
def _newton_tile(  # noqa: PLR0912  (many short loops, each a vector's)
    V: Any, C: Any, rho: float, Z: Any, P: Any, P_is_current: bool, count: int, work: Any, lane: Any
) -> int:
    """Newton on all columns; returns how many are left that did not converge."""
    use_wide_vectors()
    K, T = V.shape
    G, Z_old, inverses = work[0], work[1], work[2]
    steps, status, v_size, size_old = lane[0], lane[1], lane[2], lane[3]
    top, total, size, z_size, inverse = lane[4], lane[5], lane[6], lane[7], lane[8]
    for t in range(T):
        status[t] = MOVING if t < count else DONE
        size_old[t] = np.inf
        v_size[t] = 0.0
    for k in range(K):
        for t in range(T):
            v_size[t] = max(v_size[t], abs(V[k, t]))
    for step in range(MOST_NEWTON_STEPS + 1):
        if step > 0 or not P_is_current:
            exponentials(Z, P, top, total, inverse)
        else:
            inverse[:] = 1.0
        for t in range(T):
            size[t] = 0.0
            z_size[t] = 0.0
        for k in range(K):
            for t in range(T):
                p = P[k, t] * inverse[t]
                P[k, t] = p
                g = (p - C[k, t]) + rho * (Z[k, t] - V[k, t])
                G[k, t] = g
                size[t] = max(size[t], abs(g))
                z_size[t] = max(z_size[t], abs(Z[k, t]))
        moving = 0
        for t in range(T):
            if status[t] == MOVING:
                if size[t] <= 4.0 * EPS * (1.0 + z_size[t] + rho * (z_size[t] + v_size[t])):
                    status[t] = DONE
                elif not size[t] < size_old[t]:
                    status[t] = HARD
                    for k in range(K):
                        Z[k, t] = Z_old[k, t]
                elif step == MOST_NEWTON_STEPS:
                    status[t] = HARD
                else:
                    size_old[t] = size[t]
                    steps[t] += 1.0
                    moving += 1
        if moving == 0:
            break
        # total and top are free until the next softmax.
        _newton_step(G, P, rho, status, inverses, top, total, Z, Z_old)
    hard = 0
    for t in range(count):
        hard += status[t] == HARD
    if hard:
        softmax_tile(Z, P, top, total, inverse)
    return hard


@compiled
def _newton_step(
    G: Any, P: Any, rho: float, status: Any, inverses: Any, dots: Any, sums: Any, Z: Any, Z_old: Any
) -> None:
    """Z − H⁻¹G for the columns that move, with Σ q in `sums` and q·g / (ρ Σq) in `dots`."""
    use_wide_vectors()
    K, T = Z.shape
    for t in range(T):
        sums[t] = 0.0
        dots[t] = 0.0
    for k in range(K):
        for t in range(T):
            share = 1.0 / (P[k, t] + rho)
            inverses[k, t] = share
            sums[t] += P[k, t] * share
            dots[t] += P[k, t] * share * G[k, t]
    for t in range(T):
        dots[t] = dots[t] / (rho * sums[t])
    for k in range(K):
        for t in range(T):
            z = Z[k, t]
            Z_old[k, t] = z
            moved = z - (G[k, t] + P[k, t] * dots[t]) * inverses[k, t]
            Z[k, t] = moved if status[t] == MOVING else z


@separate(types.void(MATRIX, MATRIX, types.float64, types.intp, MATRIX))
def _from_scalar_equation(V: Any, C: Any, rho: float, t: int, Z: Any) -> None:
    """Newton on φ(λ) = Σ ρ ω(a − λ − log ρ) − 1 from the left, then z = λ + log ρ + log ω."""
    K = V.shape[0]
    log_rho = log(rho)
    lam = -np.inf
    for k in range(K):
        lam = max(lam, V[k, t] + C[k, t] / rho)
    lam -= 1.0 / rho
    for _ in range(MOST_ROOT_STEPS):
        total, slope = 0.0, 0.0
        for k in range(K):
            w = wright_omega(V[k, t] + C[k, t] / rho - (lam + log_rho))
            total += w
            slope += w / (1.0 + w)
        step = (rho * total - 1.0) / (rho * slope)
        lam += max(step, 0.0)
        if step <= 2.0 * EPS * (1.0 + abs(lam)):
            break
    for k in range(K):
        x = V[k, t] + C[k, t] / rho - (lam + log_rho)
        w = wright_omega(x)
        # log ω = x − ω loses digits for large x, and log(ω) underflows for small x.
        Z[k, t] = (lam + log_rho) + (x - w if x < 1.0 else log(w))


@compiled
def wright_omega(x: float) -> float:
    """The solution of ω + log ω = x.

    Two steps of the iteration of Fritsch, Shafer and Crowley (1973), of fourth order,
    from a guess right to a few per cent.
    """
    if x < -37.0:
        return exp(max(x, -745.0))  # ω = eˣ(1 − eˣ + …)
    if x < -1.0:
        e = exp(x)
        w = e * (1.0 - e + 1.5 * e * e) if x < -2.0 else e / (1.0 + e)
    elif x < 2.0:
        w = 0.5671432904097838 + (x * (0.3618962566 + x * 0.0737))
    else:
        w = x - log(x)
    for _ in range(3):
        r = x - w - log(w)
        one = 1.0 + w
        both = 2.0 * one * (one + 2.0 / 3.0 * r)
        w *= 1.0 + (r / one) * (both - r) / (both - 2.0 * r)
        if abs(r) <= EPS * (1.0 + abs(x)):
            break
    return w
