"""The figure of a linear probe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.plots.figure import BLUE, GREY, RED, new_figure, style_axis


def draw_probe(Cs: Array, scores: Array, best: int, metric: str, shots: Sequence[Any]) -> Any:
    """The metric on validation rows over C; and over the rows per class, if there are draws."""
    count = 2 if shots else 1
    figure = new_figure(4.9 * count, 3.7)
    axes = list(figure.subplots(1, count, squeeze=False)[0])
    axes[0].plot(Cs, scores, color=BLUE, linewidth=2, marker="o", markersize=3.5)
    axes[0].axvline(Cs[best], color=RED, linewidth=1.3, linestyle="--", zorder=1)
    axes[0].set_title(f"Validation {metric}, C = {Cs[best]:.2g}", loc="left", fontsize=11)
    axes[0].set_xscale("log")
    axes[0].set_xlabel("C (less penalty to the right)")
    if shots:
        sizes = sorted({shot.shots for shot in shots})
        means = [np.mean([s.value for s in shots if s.shots == size]) for size in sizes]
        axes[1].plot(
            [s.shots for s in shots], [s.value for s in shots], "o", color=GREY, markersize=3.5
        )
        axes[1].plot(sizes, means, color=BLUE, linewidth=2, label="mean of the draws")
        axes[1].set_xscale("log", base=2)
        axes[1].set_xticks(sizes, [str(size) for size in sizes])
        axes[1].set_xlabel("training rows per class")
        axes[1].set_title(f"{metric} with few rows", loc="left", fontsize=11)
        axes[1].legend(frameon=False, fontsize=9)
    for axis in axes:
        style_axis(axis)
    return figure
