"""The figure of a path of penalties."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.plots.figure import BLUE, GREY, RED, new_figure, style_axis


def draw_path(
    alphas: Array, scores: Array | None, norms: Array, *, label: str, chosen: float | None
) -> Any:
    """Scores (folds × alphas) and norms of each class's coefficients (alphas × classes) over α."""
    count = 1 if scores is None else 2
    figure = new_figure(4.9 * count, 3.7)
    axes = list(figure.subplots(1, count, squeeze=False)[0])
    if scores is not None:
        _draw_scores(axes.pop(0), alphas, scores, label)
    _draw_norms(axes[0], alphas, norms)
    for axis in figure.axes:
        if chosen is not None:
            axis.axvline(chosen, color=RED, linewidth=1.3, linestyle="--", zorder=1)
        axis.set_xscale("log")
        axis.set_xlabel("α (more penalty to the right)")
        style_axis(axis)
    if chosen is not None:
        figure.axes[0].annotate(
            f"α = {chosen:.2g}",
            (chosen, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4, -2),
            textcoords="offset points",
            va="top",
            color=RED,
            fontsize=9,
        )
    return figure


def _draw_scores(axis: Any, alphas: Array, scores: Array, label: str) -> None:
    mean = scores.mean(axis=0)
    if len(scores) > 1:
        axis.plot(alphas, scores.T, color=GREY, linewidth=0.8, alpha=0.6)
        axis.plot([], [], color=GREY, linewidth=0.8, label="one fold")
    name = "mean of the folds" if len(scores) > 1 else label
    axis.plot(alphas, mean, color=BLUE, linewidth=2, marker="o", markersize=3.5, label=name)
    axis.set_title(label[:1].upper() + label[1:], loc="left", fontsize=11)
    if len(scores) > 1:
        axis.legend(frameon=False, fontsize=9)


def _draw_norms(axis: Any, alphas: Array, norms: Array) -> None:
    axis.plot(alphas, norms, color=GREY, linewidth=0.9, alpha=0.7)
    axis.plot(alphas, norms.mean(axis=1), color=BLUE, linewidth=2, label="mean")
    axis.set_yscale("log")
    axis.set_title("Norm of each class's coefficients", loc="left", fontsize=11)


def draw_coefs(alphas: Array, lines: Array, names: list[str], most: int, label: Any) -> Any:
    """Coefficients (alphas × features) over falling α, the largest in colour and named."""
    figure = new_figure(6.4, 4.2)
    axis = figure.subplots()
    largest = np.argsort(-np.abs(lines).max(axis=0), kind="stable")[:most]
    others = np.setdiff1d(np.arange(lines.shape[1]), largest)
    if len(others):
        axis.plot(alphas, lines[:, others], color=GREY, linewidth=0.7, alpha=0.5)
    order = largest[np.argsort(-lines[-1, largest], kind="stable")]
    for j in order:
        axis.plot(alphas, lines[:, j], linewidth=1.6, label=names[j])
    axis.set_xscale("log")
    axis.invert_xaxis()
    axis.set_xlabel("α (less penalty to the right)")
    style_axis(
        axis,
        "Norm of each feature's coefficients over the classes"
        if label is None
        else f"Coefficients of {label}",
    )
    axis.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
