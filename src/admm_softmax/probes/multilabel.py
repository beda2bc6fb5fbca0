"""Sweeps for indicator matrices: one two-class fit per label and C, and one C for all labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.estimators import MultiOutputSoftmaxRegression
from admm_softmax.estimators.base import penalty_and_C
from admm_softmax.probes.data import Part
from admm_softmax.probes.metrics import Metric, as_multilabel, best_of

#: What decides, and what is measured, unless others are named.
DECIDING, MULTILABEL_REPORTED = "map", ("map", "auroc")


@dataclass(frozen=True)
class MultiLabelFound:
    """A sweep: α and score of every C, and the best."""

    alphas: Array
    scores: Array
    best: int


@dataclass(frozen=True)
class MultiLabelSweep:
    """Fits of all labels under every C, and the choice among them."""

    Cs: Array
    metric: Metric
    settings: dict[str, Any]
    reported = MULTILABEL_REPORTED
    as_metric = staticmethod(as_multilabel)

    def run(self, rows: Part, validation: Part, name: str) -> MultiLabelFound:
        """Fit to some rows under every C, and choose by others."""
        alphas = np.array([penalty_and_C(C, 2, len(rows.labels)) for C in self.Cs])
        fits = (self._fit(rows, C) for C in self.Cs)
        scores = np.array(
            [validation.measured(self.metric, *self.judged(model, validation)) for model in fits]
        )
        return MultiLabelFound(alphas, scores, best_of(self.Cs, self.metric.sign * scores))

    def refit(self, rows: Part, validation: Part, found: MultiLabelFound, both: bool) -> Any:
        """The model under the C chosen, of the training rows or of all."""
        return self._fit(rows.with_more(validation) if both else rows, self.Cs[found.best])

    def judged(self, model: Any, part: Part) -> tuple[Any, Any]:
        """The labels of rows to measure on, and the probability of every label, (n, T)."""
        columns, design = [P[:, 1] for P in model.predict_proba(part.design)], part.design
        if not design.rows_stay:
            return part.labels, np.stack(columns, axis=1)
        there = [design.place(column) for column in columns]
        return part.labels, design.map_rows(lambda *each: np.stack(each, axis=1), *there)

    def _fit(self, rows: Part, C: float) -> Any:
        model = MultiOutputSoftmaxRegression(C=float(C), **self.settings)
        return model.fit(rows.design, rows.labels)


def check_multilabel(
    parts: Sequence[Part | None], normalize: str, settings: dict[str, Any], others: dict[str, Any]
) -> None:
    """What a probe of an indicator matrix must have, and what it cannot."""
    if normalize == "standardize":
        raise ValueError("normalize='standardize' needs one label per row, got a matrix of labels")
    known = {field.name for field in fields(MultiOutputSoftmaxRegression)}
    for name in settings:
        if name not in known:
            raise ValueError(f"{name} is no setting of fits to a matrix of labels")
    for name, value in others.items():
        if value:
            raise ValueError(f"{name} needs one label per row, got a matrix of labels")
    given = [part for part in parts if part is not None]
    width: Any = given[0].labels.shape[1:]
    for part in given:
        if part.labels.shape[1:] != width:
            raise ValueError(
                f"all parts must have {width[0]} labels per row, got {part.labels.shape[1:]}"
            )
        if not bool(((part.labels == 0) | (part.labels == 1)).all()):
            raise ValueError("a matrix of labels must hold 0 and 1 alone")
