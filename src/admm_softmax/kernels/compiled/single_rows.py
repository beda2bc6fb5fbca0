"""Row kernels in single precision, on a tile: classes down, rows across.

For X in single precision, or stored in half, and labels that are codes. Scores have the rounding of
such an X anyway, and a vector has twice as many singles as doubles. All have one signature ::

    single(S, wide, lane, first, R, sums)

    S : scores of the tile's rows, K × T, which are written over; finite in columns of no row
    wide : in double, 2 × T: the weights, whose sum stays one so, zero for no row; and scratch
    lane : scratch, SINGLE_ROOM × T; below it the row SINGLE_TRUTH, each row's label
    R : for a block of rows, K × b, of which the tile's rows are those from `first` on: the result
        but for a factor of each row, which is left in row FACTOR of `lane`
    sums : added to, in their declared order

Nothing that is nearly one is subtracted from one: a label whose probability is 1 − q has q as the
sum of the others. So results of rows that are nearly certain keep their relative precision, down to
probabilities of 4e-18; p − 1 in double would lose it at 1e-16, as the loss does here.
"""

from __future__ import annotations

from math import inf
from typing import Any

from numba import types

from admm_softmax.kernels.compiled.elementary import (
    log_of_at_least_one,
    single_exp_of_nonpositive,
)
from admm_softmax.kernels.compiled.integers import as_index, smaller
from admm_softmax.kernels.compiled.jit import separate
from admm_softmax.kernels.compiled.lanes import (
    high_half,
    larger,
    load,
    load_stored,
    low_half,
    spread,
    spread_single,
    store,
    store_as,
    sum_lanes,
    where_above,
    where_equal,
)
from admm_softmax.kernels.compiled.layout import LANES, SINGLE_ROOM, SINGLE_TRUTH, SINGLE_WIDE
from admm_softmax.kernels.compiled.rows import ACCURACY, CURVATURE, LOSS
from admm_softmax.kernels.compiled.zstep import MATRIX, VECTOR

SINGLE_MATRIX = types.float32[:, ::1]
SINGLE = types.void(SINGLE_MATRIX, MATRIX, SINGLE_MATRIX, types.intp, SINGLE_MATRIX, VECTOR)
#: Rows in double: the weights, and sums of the exponentials of all classes but the label.
ROW_WEIGHTS, REST = range(SINGLE_WIDE)
#: Others: the largest score, where it is first, the label's score and exponential; the sums of
#: the squares of those exponentials; what exponentials are multiplied by.
LARGEST_SCORE, FIRST, OWN, OWN_EXP, SQUARES, FACTOR = range(SINGLE_ROOM)
#: So many exponentials are added up in single precision before they join the sum in double: beside
#: one that is near 1, those below 6e-8 are lost.
TOGETHER = 16
#: The score of a label while the others are added up: its exponential is zero.
NOTHING = -inf


@separate(SINGLE)
def gradient(S: Any, wide: Any, lane: Any, first: int, R: Any, sums: Any) -> None:
    """Row by row, factor · R = w (P − C), with loss, accuracy and curvature."""
    K, T = S.shape
    for t in range(T):
        lane[OWN, t] = S[as_index(lane[SINGLE_TRUTH, t]), t]
    for t in range(0, T, 2 * LANES):
        top, place = load_stored(S, 0, t), spread_single(0.0)
        for k in range(1, K):
            s = load_stored(S, k, t)
            place = where_above(s, top, float(k), place)
            top = larger(s, top)
        store(top, lane, LARGEST_SCORE, t)
        store(place, lane, FIRST, t)
    for t in range(T):
        S[as_index(lane[SINGLE_TRUTH, t]), t] = NOTHING
    for t in range(0, T, 2 * LANES):
        top, squares = load_stored(lane, LARGEST_SCORE, t), spread_single(0.0)
        store(single_exp_of_nonpositive(load_stored(lane, OWN, t) - top), lane, OWN_EXP, t)
        low, high = spread(0.0), spread(0.0)
        for start in range(0, K, TOGETHER):
            rest = spread_single(0.0)
            for k in range(start, smaller(start + TOGETHER, K)):
                e = single_exp_of_nonpositive(load_stored(S, k, t) - top)
                store(e, R, k, first + t)
                rest, squares = rest + e, squares + e * e
            low, high = low + low_half(rest), high + high_half(rest)
        store(low, wide, REST, t)
        store(high, wide, REST, t + LANES)
        store(squares, lane, SQUARES, t)
    _add_sums(wide, lane, K, sums)
    for t in range(T):
        R[as_index(lane[SINGLE_TRUTH, t]), first + t] = -wide[REST, t]


@separate(types.void(MATRIX, SINGLE_MATRIX, types.intp, VECTOR))
def _add_sums(wide: Any, lane: Any, K: int, sums: Any) -> None:
    """Loss, accuracy and curvature of the rows of a tile; their factors are left in `lane`.

    With q = Σ p over the classes that are not the label's, Σ p (1 − p) = q (2 − q) − Σ p² over
    these.
    """
    loss, hits, curvature = spread(0.0), spread(0.0), spread(0.0)
    for t in range(0, lane.shape[1], LANES):
        top, own, rest = load(lane, LARGEST_SCORE, t), load(lane, OWN, t), load(wide, REST, t)
        weight, total = load(wide, ROW_WEIGHTS, t), load(lane, OWN_EXP, t) + rest
        inverse = 1.0 / total
        q, squares = rest * inverse, load(lane, SQUARES, t) * (inverse * inverse)
        # A row without weight may hold anything.
        value = weight * (log_of_at_least_one(total) + (top - own))
        loss = loss + where_equal(weight, 0.0, 0.0, value)
        value = weight * (q * (2.0 - q) - squares)
        curvature = curvature + where_equal(weight, 0.0, 0.0, value)
        hits = hits + where_equal(load(lane, FIRST, t), load(lane, SINGLE_TRUTH, t), weight, 0.0)
        store_as(weight * inverse, lane[FACTOR], t)
    sums[LOSS] += sum_lanes(loss)
    sums[ACCURACY] += sum_lanes(hits)
    sums[CURVATURE] += sum_lanes(curvature) / K
