"""Metrics of probabilities, with weights of the rows, so that a bootstrap need not copy rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

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
    prepare: Callable[[Any, Array], Any]
    value: Callable[[Any, Array], float]
    sign: int = 1
    multilabel: bool = False

    def __call__(self, codes: Any, P: Array) -> float:
        """The value for rows of equal weight."""
        return self.value(self.prepare(codes, P), np.ones(len(codes)))


def _mean(of_rows: Any, weights: Array) -> float:
    return float(weights @ of_rows / weights.sum())


def _hits(codes: Any, P: Array) -> Any:
    return (P.argmax(axis=1) == codes).astype(np.float64)


def _among_five(codes: Any, P: Array) -> Any:
    # Of equal ones the last comes first, as in scikit-learn's top_k_accuracy_score.
    best = np.argsort(P, axis=1, kind="stable")[:, ::-1][:, :5]
    return (best == codes[:, None]).any(axis=1).astype(np.float64)


def _losses(codes: Any, P: Array) -> Any:
    return -np.log(np.maximum(P[np.arange(len(codes)), codes], LEAST_PROBABILITY))


def _mean_recall(prepared: Any, weights: Array) -> float:
    """The mean over the classes that have rows of the share that is found."""
    codes, hits = prepared
    total = np.bincount(codes, weights)
    found = np.bincount(codes, weights * hits)
    return float((found[total > 0] / total[total > 0]).mean())


def _macro_f1(prepared: Any, weights: Array) -> float:
    """The mean of 2 tp / (2 tp + fp + fn) over the classes that are labels or predictions."""
    codes, predicted, K = prepared
    actual, said = (np.bincount(c, weights, minlength=K) for c in (codes, predicted))
    right = np.bincount(codes, weights * (codes == predicted), minlength=K)
    there = (actual + said) > 0
    return float((2 * right[there] / (actual + said)[there]).mean())


def _auroc(prepared: Any, weights: Array) -> float:
    """The area under the curve of each class against the others, averaged over classes."""
    codes, P = prepared
    is_matrix = codes.ndim == 2
    return _over_classes(roc_auc_score, prepared, weights, two=not is_matrix and P.shape[1] == 2)


def _map(prepared: Any, weights: Array) -> float:
    """The average precision of each class against the others, averaged over classes."""
    return _over_classes(average_precision_score, prepared, weights, two=False)


def _over_classes(
    score: Callable[..., float], prepared: Any, weights: Array, *, two: bool
) -> float:
    """The mean over classes of a score of one against the others.

    Classes that all rows have, or none, are left out. `two`: the second class speaks for both.
    """
    codes, P = prepared
    used = weights > 0
    codes, P, weights = codes[used], P[used], weights[used]
    scores = []
    for k in [1] if two else range(P.shape[1]):
        there = (codes == k) if codes.ndim == 1 else codes[:, k] == 1
        if there.any() and not there.all():
            scores.append(score(there, P[:, k], sample_weight=weights))
    return float(np.mean(scores)) if scores else float("nan")


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", _hits, _mean),
        Metric("top5", _among_five, _mean),
        Metric("mean_per_class", lambda codes, P: (codes, _hits(codes, P)), _mean_recall),
        Metric("log_loss", _losses, _mean, -1),
        Metric("macro_f1", lambda codes, P: (codes, P.argmax(axis=1), P.shape[1]), _macro_f1),
        Metric("auroc", lambda codes, P: (codes, P), _auroc, multilabel=True),
        Metric("map", lambda codes, P: (codes, P), _map, multilabel=True),
    )
}


def as_metric(given: Any) -> Metric:
    """A metric by name, or a function of (codes, probabilities), of which more is better."""
    if isinstance(given, Metric):
        return given
    if callable(given):

        def value(prepared: Any, weights: Array) -> float:
            rows = np.repeat(np.arange(len(weights)), weights.astype(np.intp))
            return float(given(prepared[0][rows], prepared[1][rows]))

        name = getattr(given, "__name__", "metric")
        return Metric(name, lambda c, P: (c, P), value, multilabel=True)
    if given not in METRICS:
        raise ValueError(f"metric must be a function or one of {sorted(METRICS)}, got {given!r}")
    return METRICS[given]


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
