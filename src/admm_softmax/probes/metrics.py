"""Metrics of probabilities, with weights of the rows, so that a bootstrap need not copy rows.

They are written for NumPy arrays and for tensors that stay on their device (`DeviceArray`) alike:
only values, and sums of few numbers, come here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from admm_softmax._arrays import EPS, Array

#: The least probability that a logarithm is taken of.
LEAST_PROBABILITY = EPS


class Metric(NamedTuple):
    """A metric in two steps: what depends on the rows, once, and its value for given weights.

    prepare : (codes (n,), probabilities (n, K)) → what `value` needs
    value : (what was prepared, weights (n,)) → the metric
    sign : 1 where more is better, −1 where less is
    multilabel : whether it also takes an indicator matrix (n, T) and probabilities (n, T)
    """

    name: str
    prepare: Callable[[Any, Any], Any]
    value: Callable[[Any, Array], float]
    sign: int = 1
    multilabel: bool = False

    def __call__(self, codes: Any, P: Any) -> float:
        """The value for rows of equal weight."""
        return self.value(self.prepare(codes, P), np.ones(len(codes)))


def _mean(of_rows: Any, weights: Array) -> float:
    return float((weights * of_rows).sum() / weights.sum())


def _hits(codes: Any, P: Any) -> Any:
    return (P.argmax(axis=1) == codes).astype(np.float64)


def _among_five(codes: Any, P: Any) -> Any:
    # Of equal ones the last comes first, as in scikit-learn's top_k_accuracy_score.
    own = np.take_along_axis(P, codes[:, None], 1)
    later = np.arange(P.shape[1]) > codes[:, None]
    return (((own < P) | ((own == P) & later)).sum(axis=1) < 5).astype(np.float64)


def _losses(codes: Any, P: Any) -> Any:
    own = np.take_along_axis(P, codes[:, None], 1)[:, 0]
    return -np.log(np.maximum(own, LEAST_PROBABILITY))


def _codes_and_hits(codes: Any, P: Any) -> Any:
    return codes, _hits(codes, P), P.shape[1]


def _mean_recall(prepared: Any, weights: Array) -> float:
    """The mean over the classes that have rows of the share that is found."""
    codes, hits, K = prepared
    total, found = (_sums(codes, w, K) for w in (0 * hits + weights, hits * weights))
    return float((found[total > 0] / total[total > 0]).mean())


def _macro_f1(prepared: Any, weights: Array) -> float:
    """The mean of 2 tp / (2 tp + fp + fn) over the classes that are labels or predictions."""
    codes, predicted, hits, K = prepared
    actual, said = (_sums(c, 0 * hits + weights, K) for c in (codes, predicted))
    right = _sums(codes, hits * weights, K)
    there = (actual + said) > 0
    return float((2 * right[there] / (actual + said)[there]).mean())


def _sums(codes: Any, of_rows: Any, K: int) -> Array:
    """One sum per class, of rows that may stay on a device."""
    return np.array(np.bincount(codes, of_rows, K).tolist(), dtype=np.float64)


class _Ranked(NamedTuple):
    """Rows by their score of one class: groups of equal scores, and who has the class."""

    group: Any
    there: Any
    groups: int


def _rank(codes: Any, P: Any) -> list[_Ranked]:
    """Of every class against the others; of two classes the second speaks for both."""
    two = codes.ndim == 1 and P.shape[1] == 2
    found = []
    for k in [1] if two else range(P.shape[1]):
        values, group = np.unique(P[:, k], return_inverse=True)
        there = (codes == k) if codes.ndim == 1 else codes[:, k] == 1
        found.append(_Ranked(group, there.astype(np.float64), len(values)))
    return found


def _rank_all(codes: Any, P: Any) -> list[_Ranked]:
    """As `_rank`, with both of two classes."""
    indicator = codes if codes.ndim == 2 else codes[:, None] == np.arange(P.shape[1])
    return _rank(indicator.astype(np.int64), P)


def _area(positive: Any, negative: Any) -> Any:
    """The area under the curve, from the weights at each score, from the least to the largest.

    Of a pair of rows of either kind, the share that the scores order right; equal ones count half.
    """
    below = np.cumsum(negative) - negative
    return (positive * (below + 0.5 * negative)).sum() / (positive.sum() * negative.sum())


def _precision(positive: Any, negative: Any) -> Any:
    """The average precision: Σ over scores of the recall gained there times the precision."""
    above = positive.sum() - np.cumsum(positive) + positive
    said = above + negative.sum() - np.cumsum(negative) + negative
    # Scores that no row of weight has gain nothing, and the largest of them have no precision.
    share = positive * above / np.where(said > 0, said, 1.0)
    return share.sum() / positive.sum()


def _over_classes(score: Callable[[Any, Any], Any], ranked: list[_Ranked], weights: Array) -> float:
    """The mean over classes of a score; classes that all rows have, or none, are left out."""
    scores = []
    for group, there, groups in ranked:
        positive = np.bincount(group, there * weights, groups)
        negative = np.bincount(group, (1.0 - there) * weights, groups)
        if positive.sum() > 0 and negative.sum() > 0:
            scores.append(float(score(positive, negative)))
    return float(np.mean(scores)) if scores else float("nan")


def _auroc(ranked: Any, weights: Array) -> float:
    """The area under the curve of each class against the others, averaged over classes."""
    return _over_classes(_area, ranked, weights)


def _map(ranked: Any, weights: Array) -> float:
    """The average precision of each class against the others, averaged over classes."""
    return _over_classes(_precision, ranked, weights)


def _predicted(codes: Any, P: Any) -> Any:
    best = P.argmax(axis=1)
    return codes, best, (best == codes).astype(np.float64), P.shape[1]


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", _hits, _mean),
        Metric("top5", _among_five, _mean),
        Metric("mean_per_class", _codes_and_hits, _mean_recall),
        Metric("log_loss", _losses, _mean, -1),
        Metric("macro_f1", _predicted, _macro_f1),
        Metric("auroc", _rank, _auroc, multilabel=True),
        Metric("map", _rank_all, _map, multilabel=True),
    )
}


def as_metric(given: Any) -> Metric:
    """A metric by name, or a function of (codes, probabilities), of which more is better."""
    if isinstance(given, Metric):
        return given
    if callable(given):

        def value(prepared: Any, weights: Array) -> float:
            rows = np.repeat(np.arange(len(weights)), weights.astype(np.intp))
            # On a device the function gets tensors.
            return float(given(*[_bare(each[rows]) for each in prepared]))

        name = getattr(given, "__name__", "metric")
        return Metric(name, lambda c, P: (c, P), value, multilabel=True)
    if given not in METRICS:
        raise ValueError(f"metric must be a function or one of {sorted(METRICS)}, got {given!r}")
    return METRICS[given]


def _bare(rows: Any) -> Any:
    return getattr(rows, "tensor", rows)


def as_multilabel(given: Any) -> Metric:
    """A metric of indicator matrices."""
    metric = as_metric(given)
    if not metric.multilabel:
        fitting = sorted(m.name for m in METRICS.values() if m.multilabel)
        raise ValueError(
            f"metric must be a function or one of {fitting} for a matrix of labels, got {given!r}"
        )
    return metric


def best_of(Cs: Array, scores: Array) -> int:
    """The position of the largest score; among equal ones that of the strongest penalty."""
    order = np.argsort(Cs, kind="stable")
    return int(order[np.nanargmax(scores[order])])


def bootstrap(
    metric: Metric, codes: Any, P: Array, samples: int, level: float, seed: int
) -> tuple[float, float, float]:
    """The metric, and the percentile interval of `samples` bootstrap samples of the rows."""
    prepared, n = metric.prepare(codes, P), len(codes)
    value = metric.value(prepared, np.ones(n))
    if not samples:
        return value, float("nan"), float("nan")
    random = np.random.default_rng(seed)
    values = [
        metric.value(prepared, np.bincount(random.integers(0, n, n), minlength=n).astype(float))
        for _ in range(samples)
    ]
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2])
    return value, float(low), float(high)
