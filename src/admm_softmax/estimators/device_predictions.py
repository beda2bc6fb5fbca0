"""Predictions and scores on rows that stay on their device: a `TorchDesign`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from admm_softmax.design import Design
from admm_softmax.estimators.coefficients import dense, from_coef
from admm_softmax.estimators.distributed_labels import encode_more_placed, placed_weights
from admm_softmax.kernels import rows


def most_probable_class(scores: Any) -> Any:
    """The position of the most probable class of each row."""
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


def predicted(classes: Any, X: Design, of_scores: Callable[[Callable[..., Any]], Any]) -> Any:
    """The most probable class of every row, as a tensor; as an array where classes are text.

    of_scores : a function of scores ↦ its value for all rows
    """
    if classes.dtype.kind in "OUS":  # a tensor holds no text
        codes = X.gather(X.place(of_scores(most_probable_class)))
        return classes[codes]
    return of_scores(lambda scores: np.take_along_axis(classes, most_probable_class(scores), 0))


def scored(model: Any, scoring: str, X: Design, y: Any, sample_weight: Any) -> float:
    """Accuracy or negative log loss, by one pass beside the rows."""
    X = model._checked_rows(X, reset=False)
    if scoring == "accuracy" and model.classes_.dtype.kind not in "OUS":
        return _accuracy(X, model.predict(X), y, sample_weight)
    labels = encode_more_placed(X, y, model.classes_, "y")
    weights = placed_weights(X, sample_weight, labels)
    coef = dense(model.coef_)
    W = from_coef(coef, model.intercept_, len(model.classes_), X.intercept)
    sums = X.fold(W, rows.evaluate, (labels, weights)).sums
    value = -sums.loss if scoring == "neg_log_loss" else sums.accuracy
    return value / X.total(weights)


def _accuracy(X: Design, found: Any, y: Any, sample_weight: Any) -> float:
    """The share of rows whose prediction is the label; labels never seen count as wrong."""
    labels = X.place(y, "y")
    if labels.columns is not None and labels.columns > 1:
        labels = X.map_rows(lambda c: c.argmax(axis=1), labels)
    elif labels.columns == 1:
        labels = X.map_rows(lambda c: c[:, 0], labels)
    weights = placed_weights(X, sample_weight, labels)
    hits = X.map_rows(lambda p, c, w: w * (p == c), X.place(found), labels, weights)
    return X.total(hits) / X.total(weights)
