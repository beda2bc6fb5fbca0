"""Figures as Matplotlib objects. No pyplot: nothing global, nothing to close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix


def weight_images(coef: Any, shape: tuple[int, int], classes: Sequence[Any]) -> Figure:
    """One image a class of the rows of coef (K × d)."""
    figure, axes = _grid(len(coef), columns=5, size=1.7)
    limit = float(np.abs(coef).max()) or 1.0
    for axis, weights, label in zip(axes, coef, classes, strict=False):
        axis.imshow(np.reshape(weights, shape), cmap="RdBu", vmin=-limit, vmax=limit)
        axis.set_title(str(label), fontsize=11)
    return figure


def digits_and_predictions(
    images: Any, truth: Any, predicted: Any, shape: tuple[int, int], count: int = 20
) -> Figure:
    """Images with their predictions, mistakes first and in red."""
    order = np.argsort(np.asarray(truth) == np.asarray(predicted), kind="stable")[:count]
    figure, axes = _grid(len(order), columns=10, size=0.95)
    for axis, i in zip(axes, order, strict=False):
        axis.imshow(np.reshape(images[i], shape), cmap="gray_r")
        wrong = truth[i] != predicted[i]
        text = f"{truth[i]} → {predicted[i]}" if wrong else str(predicted[i])
        axis.set_title(text, fontsize=10, color="tab:red" if wrong else "0.2")
    return figure


def confusion(truth: Any, predicted: Any, classes: Sequence[Any]) -> Figure:
    """Counts by true (rows) and predicted (columns) class."""
    counts = confusion_matrix(truth, predicted, labels=classes)
    figure = Figure(figsize=(5.2, 4.8), layout="constrained")
    axis = figure.subplots()
    axis.imshow(np.sqrt(counts), cmap="Blues")
    for i, j in np.argwhere(counts > 0):
        dark = counts[i, j] > 0.4 * counts.max()
        axis.text(j, i, counts[i, j], ha="center", va="center", color="w" if dark else "0.2")
    axis.set_xticks(range(len(classes)), [str(c) for c in classes])
    axis.set_yticks(range(len(classes)), [str(c) for c in classes])
    axis.set_xlabel("predicted")
    axis.set_ylabel("true")
    return figure


def _grid(count: int, *, columns: int, size: float) -> tuple[Figure, Any]:
    lines = -(-count // columns)
    figure = Figure(figsize=(columns * size, lines * (size + 0.3)), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes:
        axis.set_axis_off()
    return figure, axes
