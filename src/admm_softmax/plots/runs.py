"""The paper's figures: several methods against time, and the residuals of CG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from admm_softmax.plots.figure import BLUE, RED, new_figure, style_axis

_COLOURS = (BLUE, RED, "#edae49", "#66a182")
_RUN_PANELS = {
    "Training accuracy": "accuracy",
    "Validation accuracy": "val_accuracy",
    "Training loss": "loss",
    "Validation loss": "val_loss",
}


def draw_against_time(histories: Mapping[str, Mapping[str, Sequence[float]]]) -> Any:
    """Accuracy and loss, training and validation, against seconds: one curve per method.

    `histories` holds the columns of each method, by its name.
    """
    figure = new_figure(9.6, 6.6)
    axes = figure.subplots(2, 2, sharex=True)
    for axis, (title, column) in zip(axes.ravel(), _RUN_PANELS.items(), strict=True):
        for colour, (method, history) in zip(cycle(_COLOURS), histories.items()):
            axis.plot(history["seconds"], history[column], color=colour, label=method, lw=1.6)
        _zoom(axis, [history[column] for history in histories.values()], "accuracy" in column)
        style_axis(axis, title)
    for axis in axes[1]:
        axis.set_xlabel("seconds of the solver")
    axes[0, 1].legend(frameon=False, fontsize=9, loc="lower right")
    return figure


def _zoom(axis: Any, curves: Sequence[Sequence[float]], is_accuracy: bool) -> None:
    """Leave the first iterations, far from the others, outside the panel."""
    if is_accuracy:
        best = max(max(curve) for curve in curves)
        worst = min(np.quantile(curve, 0.2) for curve in curves)
        axis.set_ylim(max(0.0, worst - 0.3 * (best - worst) - 0.005), min(best + 0.004, 1.0005))
    else:
        axis.set_yscale("log")
        top = max(np.quantile(curve, 0.9) for curve in curves)
        axis.set_ylim(0.9 * min(min(curve) for curve in curves), 1.5 * top)


def draw_cg_residuals(steps: Sequence[Sequence[float]]) -> Any:
    """CG's relative residuals: the last of every Newton step; all of the first and last step.

    `steps` holds one sequence per Newton step.
    """
    figure = new_figure(9.6, 3.5)
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    left, right = figure.subplots(1, 2)
    left.semilogy(range(1, len(steps) + 1), [step[-1] for step in steps], color=BLUE, lw=1.6)
    left.axhline(1e-2, color="0.5", lw=1, ls="--")
    left.set_xlabel("Newton step")
    style_axis(left, "Residual when CG stopped")
    for name, step, colour in (("first", steps[0], BLUE), ("last", steps[-1], RED)):
        right.semilogy(range(1, len(step) + 1), step, color=colour, marker="o", ms=3, label=name)
    right.set_xlabel("CG step")
    right.legend(frameon=False, title="Newton step", fontsize=9)
    style_axis(right, "Residual after each CG step")
    for axis in (left, right):
        axis.set_ylabel("relative residual")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure
