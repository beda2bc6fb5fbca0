"""The twins of the row kernels for many targets, on a tile of rows."""

from __future__ import annotations

from math import log
from typing import Any

from admm_softmax.kernels.compiled.elementary import exp_of_nonpositive
from admm_softmax.kernels.compiled.jit import compiled, separate, use_wide_vectors
from admm_softmax.kernels.compiled.lanes import load, spread, store, sum_lanes, where_above
from admm_softmax.kernels.compiled.layout import LANES
from admm_softmax.kernels.compiled.rows import TWIN
from admm_softmax.kernels.compiled.zstep import softmax_tile


@compiled
def log_of_one_plus(e: Any) -> Any:
    """log(1 + e) for 0 ≤ e ≤ 1: twice the inverse hyperbolic tangent of e / (2 + e).

    Its argument is at most 1/3: fourteen terms of the series leave 2e-15.
    """
    z = e / (e + 2.0)
    y = z * z
    total = y * (1.0 / 27) + 1.0 / 25
    total = total * y + 1.0 / 23
    total = total * y + 1.0 / 21
    total = total * y + 1.0 / 19
    total = total * y + 1.0 / 17
    total = total * y + 1.0 / 15
    total = total * y + 1.0 / 13
    total = total * y + 1.0 / 11
    total = total * y + 1.0 / 9
    total = total * y + 1.0 / 7
    total = total * y + 1.0 / 5
    total = total * y + 1.0 / 3
    total = total * y + 1.0
    return total * z * 2.0


@separate(TWIN)
def two_class_rows(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """One column per target; Z holds ± the weights."""
    use_wide_vectors()
    n, T = S.shape
    for k in range(n):
        loss, curvature, hits = spread(0.0), spread(0.0), spread(0.0)
        for t in range(0, T, LANES):
            s, c = load(S, k, t), load(Z, k, t)
            weight = where_above(c, 0.0, c, 0.0 - c)
            m = where_above(c, 0.0, s, 0.0 - s)
            e = exp_of_nonpositive(where_above(m, 0.0, 0.0 - m, m))
            inverse = 1.0 / (e + 1.0)
            store(0.0 - c * where_above(m, 0.0, e * inverse, inverse), R, k, t)
            loss = loss + weight * (log_of_one_plus(e) + where_above(m, 0.0, 0.0, 0.0 - m))
            curvature = curvature + weight * e * inverse * inverse
            wrong = where_above(s, 0.0, where_above(c, 0.0, 0.0, weight),
                                where_above(c, 0.0, weight, 0.0))  # fmt: skip
            hits = hits + weight - wrong
        sums[k] += sum_lanes(loss)
        sums[n + k] += sum_lanes(curvature)
        sums[2 * n + k] += sum_lanes(hits)


@separate(TWIN)
def softmax_rows(
    settings: Any, S: Any, C: Any, w: Any, Z: Any, count: int, work: Any, lane: Any, R: Any,
    new: Any, sums: Any,
) -> None:  # fmt: skip
    """`settings[0]` columns per target; Z holds the weights at the labels."""
    k, T = int(settings[0]), S.shape[1]
    n = S.shape[0] // k
    for g in range(n):
        scores, labels, P = S[g * k : (g + 1) * k], Z[g * k : (g + 1) * k], R[g * k : (g + 1) * k]
        softmax_tile(scores, P, lane[0], lane[1], lane[2])
        weight, inner, squares, found = lane[3], lane[4], lane[5], lane[6]
        for t in range(T):
            weight[t] = inner[t] = squares[t] = found[t] = 0.0
        for j in range(k):
            for t in range(T):
                weight[t] += labels[j, t]
                inner[t] += labels[j, t] * scores[j, t]
                squares[t] += P[j, t] * P[j, t]
        _find(scores, labels, lane, found)
        for j in range(k):
            for t in range(T):
                P[j, t] = weight[t] * P[j, t] - labels[j, t]
        for t in range(count):
            sums[g] += weight[t] * (log(lane[1, t]) + lane[0, t]) - inner[t]
            sums[n + g] += weight[t] * (1.0 - squares[t]) / k
            sums[2 * n + g] += found[t]


@compiled
def _find(scores: Any, labels: Any, lane: Any, found: Any) -> None:
    """The weight at the first of the largest scores, which are in lane 0."""
    for j in range(scores.shape[0] - 1, -1, -1):
        for t in range(scores.shape[1]):
            if scores[j, t] == lane[0, t]:
                found[t] = labels[j, t]
