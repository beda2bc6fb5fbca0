"""Figures made of images: coefficients, predictions, samples and filter responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from admm_softmax.plots.figure import new_figure


def draw_coef(coef: Any, shape: tuple[int, int], classes: Sequence[Any]) -> Any:
    """The rows of coef (K × d) as images, one per class."""
    figure, axes = _grid(len(coef), columns=5, size=1.7)
    limit = float(np.abs(coef).max()) or 1.0
    for axis, row, label in zip(axes, coef, classes, strict=False):
        axis.imshow(np.reshape(row, shape), cmap="RdBu", vmin=-limit, vmax=limit)
        axis.set_title(str(label), fontsize=11)
    return figure


def draw_predictions(
    images: Any, truth: Any, predicted: Any, shape: tuple[int, int], count: int = 20
) -> Any:
    """Images with their predictions, mistakes first and in red."""
    order = np.argsort(np.asarray(truth) == np.asarray(predicted), kind="stable")[:count]
    figure, axes = _grid(len(order), columns=10, size=0.95)
    for axis, i in zip(axes, order, strict=False):
        axis.imshow(np.reshape(images[i], shape), cmap="gray_r")
        wrong = truth[i] != predicted[i]
        text = f"{truth[i]} → {predicted[i]}" if wrong else str(predicted[i])
        axis.set_title(text, fontsize=10, color="tab:red" if wrong else "0.2")
    return figure


def draw_samples(images: NDArray[Any], labels: NDArray[Any], names: Sequence[str]) -> Any:
    """Four images of each class, one column per class."""
    figure = new_figure(9.6, 4.2)
    axes = figure.subplots(4, 10)
    for k in range(10):
        for axis, i in zip(axes[:, k], np.flatnonzero(labels == k)[:4], strict=True):
            axis.imshow(images[i], cmap="gray_r")
            axis.set_axis_off()
        axes[0, k].set_title(names[k], fontsize=9)
    return figure


def draw_filtered(images: NDArray[Any], maps: NDArray[Any]) -> Any:
    """Images (rows) and their maps under each filter (columns)."""
    n_filters = maps.shape[1]
    figure = new_figure(9.6, 1.02 * len(images))
    axes = figure.subplots(len(images), n_filters + 1)
    for line, image, row in zip(axes, images, maps, strict=True):
        line[0].imshow(image, cmap="gray_r")
        for axis, filtered in zip(line[1:], row, strict=True):
            axis.imshow(filtered, cmap="RdBu", vmin=-1, vmax=1)
        for axis in line:
            axis.set_axis_off()
    for j, axis in enumerate(axes[0]):
        axis.set_title("image" if j == 0 else f"filter {j}", fontsize=9)
    return figure


def _grid(count: int, *, columns: int, size: float) -> tuple[Any, Any]:
    lines = -(-count // columns)
    figure = new_figure(columns * size, lines * (size + 0.3))
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes:
        axis.set_axis_off()
    return figure, axes
