"""The paper's figures, drawn from results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from admm_softmax.experiments.paper import METHODS
from admm_softmax.experiments.protocol import Outcome

COLOURS = dict(zip(METHODS, ("#2a6f97", "#d1495b", "#edae49", "#66a182"), strict=True))


def against_time(outcomes: Sequence[Outcome]) -> Figure:
    """Accuracy and loss, training and validation, against the solver's seconds."""
    figure = Figure(figsize=(9.6, 6.6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    panels = {
        "Training accuracy": ("accuracy", axes[0, 0]),
        "Validation accuracy": ("val_accuracy", axes[0, 1]),
        "Training loss": ("loss", axes[1, 0]),
        "Validation loss": ("val_loss", axes[1, 1]),
    }
    for title, (column, axis) in panels.items():
        for outcome in outcomes:
            values, seconds = outcome.history[column], outcome.history["seconds"]
            axis.plot(seconds, values, color=COLOURS[outcome.method], label=outcome.method, lw=1.6)
        axis.set_title(title, loc="left", fontsize=11)
        _zoom(axis, [outcome.history[column] for outcome in outcomes], "accuracy" in column)
        _clean(axis)
    for axis in axes[1]:
        axis.set_xlabel("seconds of the solver")
    axes[0, 1].legend(frameon=False, fontsize=9, loc="lower right")
    return figure


def _zoom(axis: Any, curves: Sequence[Sequence[float]], is_accuracy: bool) -> None:
    """Leave the first steps, far off, outside the panel."""
    if is_accuracy:
        best = max(max(curve) for curve in curves)
        worst = min(np.quantile(curve, 0.2) for curve in curves)
        axis.set_ylim(max(0.0, worst - 0.3 * (best - worst) - 0.005), min(best + 0.004, 1.0005))
    else:
        axis.set_yscale("log")
        top = max(np.quantile(curve, 0.9) for curve in curves)
        axis.set_ylim(0.9 * min(min(curve) for curve in curves), 1.5 * top)


def cg_steps(newton: Outcome) -> list[list[float]]:
    """CG's relative residuals, a list a Newton step."""
    return [residuals for residuals in newton.inner_residuals if residuals]


def deterioration(newton: Outcome) -> Figure:
    """CG's last relative residual at every Newton step, and step by step in the first and last."""
    steps = cg_steps(newton)
    figure = Figure(figsize=(9.6, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy(range(1, len(steps) + 1), [step[-1] for step in steps], color="#2a6f97", lw=1.6)
    left.axhline(1e-2, color="0.5", lw=1, ls="--")
    left.set_title("Residual when CG stopped", loc="left", fontsize=11)
    left.set_xlabel("Newton step")
    for name, step, colour in (("first", steps[0], "#2a6f97"), ("last", steps[-1], "#d1495b")):
        right.semilogy(range(1, len(step) + 1), step, color=colour, marker="o", ms=3, label=name)
    right.set_title("Residual after each CG step", loc="left", fontsize=11)
    right.set_xlabel("CG step")
    right.legend(frameon=False, title="Newton step", fontsize=9)
    for axis in (left, right):
        axis.set_ylabel("relative residual")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        _clean(axis)
    return figure


def sample_images(images: NDArray[Any], labels: NDArray[Any], names: Sequence[str]) -> Figure:
    """Four images of each class, a column a class."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    axes = figure.subplots(4, 10)
    for k in range(10):
        for axis, i in zip(axes[:, k], np.flatnonzero(labels == k)[:4], strict=True):
            axis.imshow(images[i], cmap="gray_r")
            axis.set_axis_off()
        axes[0, k].set_title(names[k], fontsize=9)
    return figure


def filtered_images(images: NDArray[Any], maps: NDArray[Any]) -> Figure:
    """Images (rows) and their maps under each filter (columns)."""
    n_filters = maps.shape[1]
    figure = Figure(figsize=(9.6, 1.02 * len(images)), layout="constrained")
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


def by_method(outcomes: Sequence[Outcome]) -> Mapping[str, list[Outcome]]:
    """Outcomes of each method, in the paper's order."""
    return {name: [o for o in outcomes if o.method == name] for name in METHODS}


def _clean(axis: Any) -> None:
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
