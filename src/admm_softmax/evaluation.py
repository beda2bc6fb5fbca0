"""How good predicted probabilities are: figures with bootstrap intervals, from blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count, check_real
from admm_softmax._validation import check_soft_labels

#: Bins of equal width over the largest probability (Guo et al. 2017 take 15).
BINS = 15
#: Random numbers that a bootstrap may draw, and the fewest resamples it makes of many rows.
MOST_DRAWS, LEAST_RESAMPLES = 40_000_000, 200


@dataclass(frozen=True)
class Figure:
    """A figure, and the interval that the bootstrap gives it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Evaluation:
    """Figures of a classifier on n labelled rows.

    With p the probabilities of a row, c its label as a unit vector (or a soft label), and
    p̂ = max p the confidence:

    figures : accuracy; top_k, the share of rows whose label is among the k most probable classes
        (with three classes or more); log_loss = mean of −c·log p; brier = mean of ‖p − c‖²;
        calibration_error = Σ_bins (rows in the bin / n) |accuracy − mean p̂|, the expected
        calibration error over bins of equal width
    per_class : precision, recall, F1 and the number of rows of every class
    confusion : rows by true (first axis) and predicted class
    reliability : per bin that has rows: mean confidence, accuracy, number of rows
    resamples, level : of the percentile bootstrap over rows
    """

    n_rows: int
    classes: list[Any]
    k: int
    figures: dict[str, Figure]
    per_class: list[dict[str, Any]]
    confusion: list[list[int]]
    reliability: list[dict[str, float]]
    resamples: int
    level: float

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON can express them."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Evaluation:
        """The inverse of `to_json`."""
        figures = {name: Figure(**figure) for name, figure in stored["figures"].items()}
        return cls(**{**stored, "figures": figures})


def evaluate(
    blocks: Iterable[tuple[Array, Any]],
    classes: Any,
    *,
    k: int = 5,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Evaluate blocks of (log-probabilities, labels); one row of each is kept as six numbers.

    k : for top-k accuracy; at most one less than the number of classes
    resamples : of the bootstrap; fewer where rows are very many
    level : of the intervals

    >>> p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> found = evaluate([(np.log(p), np.array(["a", "b", "b"]))], np.array(["a", "b"]))
    >>> round(found.figures["accuracy"].value, 3), found.confusion
    (0.667, [[1, 0], [1, 1]])
    """
    check_count("k", k)
    check_count("resamples", resamples)
    if not 0 < check_real("level", level, "between 0 and 1", above=0.0) < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    classes = np.asarray(classes)
    k = min(k, len(classes) - 1)
    first, parts = 0, []
    for log_p, labels in blocks:
        parts.append(_of_rows(log_p, labels, classes, first))
        first += len(log_p)
    if not first:
        raise ValueError("there are no rows to evaluate on")
    rows = np.concatenate(parts)
    truth, predicted = rows[:, 0].astype(np.intp), rows[:, 1].astype(np.intp)
    K = len(classes)
    counts = np.bincount(truth * K + predicted, minlength=K * K).reshape(K, K)
    figures, made = _figures(rows, k, resamples, level, seed)
    return Evaluation(
        n_rows=first,
        classes=classes.tolist(),
        k=k,
        figures=figures,
        per_class=_per_class(counts, classes),
        confusion=counts.tolist(),
        reliability=_reliability(rows),
        resamples=made,
        level=level,
    )


def _of_rows(log_p: Array, labels: Any, classes: Any, first: int) -> Array:
    """Per row: true and predicted class, rank of the true one, −c·log p, ‖p − c‖², confidence."""
    labels = np.asarray(labels)
    n, K = log_p.shape
    p = np.exp(log_p)
    if labels.ndim == 2 and labels.shape[1] > 1:
        if labels.shape[1] != K:
            raise ValueError(f"soft labels have {labels.shape[1]} columns for {K} classes")
        soft = check_soft_labels(labels)
        truth = soft.argmax(axis=1)
        loss = -np.sum(np.where(soft > 0, soft * log_p, 0.0), axis=1)
    else:
        truth = codes_of(labels.ravel(), classes, first)
        soft = np.eye(K)[truth]
        loss = -log_p[np.arange(n), truth]
    own = log_p[np.arange(n), truth]
    rank = (log_p > own[:, None]).sum(axis=1)
    brier = ((p - soft) ** 2).sum(axis=1)
    return np.column_stack([truth, log_p.argmax(axis=1), rank, loss, brier, p.max(axis=1)])


def codes_of(labels: Any, classes: Any, first: int = 0) -> Any:
    """Labels as positions among the classes; as texts where one side is text."""
    known = np.asarray(classes)
    if (labels.dtype.kind in "OUS") != (known.dtype.kind in "OUS"):
        labels, known = labels.astype(str), known.astype(str)
    order = np.argsort(known, kind="stable")
    places = np.minimum(np.searchsorted(known, labels, sorter=order), len(known) - 1)
    codes = order[places]
    wrong = np.flatnonzero(known[codes] != labels)
    if len(wrong):
        shown = ", ".join(repr(label) for label in known.tolist()[:10])
        raise ValueError(
            f"row {first + int(wrong[0])} has the label {labels.tolist()[wrong[0]]!r}, which the "
            f"model does not know; it knows {shown}{', …' if len(known) > 10 else ''}"
        )
    return codes


def _figures(
    rows: Array, k: int, resamples: int, level: float, seed: int
) -> tuple[dict[str, Figure], int]:
    """The figures with their intervals, and how many resamples were made."""
    n = len(rows)
    columns = {"accuracy": rows[:, 0] == rows[:, 1], "log_loss": rows[:, 3], "brier": rows[:, 4]}
    if k > 1:
        columns["top_k"] = rows[:, 2] < k
    means = np.column_stack([column.astype(np.float64) for column in columns.values()])
    bins = _bins(rows)
    excess = columns["accuracy"] - rows[:, 5]
    made = min(resamples, max(LEAST_RESAMPLES, MOST_DRAWS // n))
    generator = np.random.default_rng(seed)
    found = np.empty((made + 1, means.shape[1] + 1))
    for b in range(made + 1):
        # The first is the sample itself.
        w = np.bincount(generator.integers(n, size=n), minlength=n) if b else np.ones(n)
        error = np.abs(np.bincount(bins, w * excess, minlength=BINS)).sum()
        found[b] = [*(w @ means / n), error / n]
    tail = 50 * (1 - level)
    low, high = np.percentile(found[1:], [tail, 100 - tail], axis=0)
    names = [*columns, "calibration_error"]
    figures = {
        name: Figure(float(found[0, j]), float(low[j]), float(high[j]))
        for j, name in enumerate(names)
    }
    order = ("accuracy", "top_k", "log_loss", "brier", "calibration_error")
    return {name: figures[name] for name in order if name in figures}, made


def _bins(rows: Array) -> Any:
    return np.minimum((rows[:, 5] * BINS).astype(np.intp), BINS - 1)


def _reliability(rows: Array) -> list[dict[str, float]]:
    bins, correct = _bins(rows), rows[:, 0] == rows[:, 1]
    found = []
    for b in np.unique(bins):
        inside = bins == b
        found.append(
            {
                "confidence": float(rows[inside, 5].mean()),
                "accuracy": float(correct[inside].mean()),
                "rows": int(inside.sum()),
            }
        )
    return found


def _per_class(counts: Any, classes: Any) -> list[dict[str, Any]]:
    """Precision, recall and F1; None where there is nothing to divide by."""
    found = []
    for j, label in enumerate(classes.tolist()):
        right, predicted, true = counts[j, j], counts[:, j].sum(), counts[j].sum()
        found.append(
            {
                "class": label,
                "precision": float(right / predicted) if predicted else None,
                "recall": float(right / true) if true else None,
                "f1": float(2 * right / (predicted + true)) if predicted + true else None,
                "rows": int(true),
            }
        )
    return found
