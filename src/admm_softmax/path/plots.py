"""The pictures of paths and grids. Matplotlib is loaded when one is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array

_BLUE, _ORANGE, _GREY = "#2a6f97", "#d1495b", "0.45"


def new_figure(width: float, height: float) -> Any:
    """An empty Matplotlib figure."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("plot() needs Matplotlib: pip install 'admm-softmax[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def draw_path(
    alphas: Array, scores: Array | None, norms: Array, *, label: str, chosen: float | None
) -> Any:
    """Scores (folds × alphas) and norms of each class's weights (alphas × classes) against α."""
    count = 1 if scores is None else 2
    figure = new_figure(4.9 * count, 3.7)
    axes = list(figure.subplots(1, count, squeeze=False)[0])
    if scores is not None:
        _draw_scores(axes.pop(0), alphas, scores, label)
    _draw_norms(axes[0], alphas, norms)
    for axis in figure.axes:
        if chosen is not None:
            axis.axvline(chosen, color=_ORANGE, linewidth=1.3, linestyle="--", zorder=1)
        axis.set_xscale("log")
        axis.set_xlabel("α (more penalty to the right)")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    if chosen is not None:
        figure.axes[0].annotate(
            f"α = {chosen:.2g}",
            (chosen, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4, -2),
            textcoords="offset points",
            va="top",
            color=_ORANGE,
            fontsize=9,
        )
    return figure


def _draw_scores(axis: Any, alphas: Array, scores: Array, label: str) -> None:
    mean = scores.mean(axis=0)
    if len(scores) > 1:
        axis.plot(alphas, scores.T, color=_GREY, linewidth=0.8, alpha=0.6)
        axis.plot([], [], color=_GREY, linewidth=0.8, label="one fold")
    name = "mean of the folds" if len(scores) > 1 else label
    axis.plot(alphas, mean, color=_BLUE, linewidth=2, marker="o", markersize=3.5, label=name)
    axis.set_title(label[:1].upper() + label[1:], loc="left", fontsize=11)
    if len(scores) > 1:
        axis.legend(frameon=False, fontsize=9)


def _draw_norms(axis: Any, alphas: Array, norms: Array) -> None:
    axis.plot(alphas, norms, color=_GREY, linewidth=0.9, alpha=0.7)
    axis.plot(alphas, norms.mean(axis=1), color=_BLUE, linewidth=2, label="mean")
    axis.set_yscale("log")
    axis.set_title("Norm of each class's weights", loc="left", fontsize=11)


def draw_grid(panels: dict[str, Array], rhos: Array, alphas: Array, best: Any) -> Any:
    """Heat maps over (α, ρ): a panel a quantity, grey where a cell could not be solved."""
    figure = new_figure(4.3 * len(panels), 3.9)
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, (name, values) in zip(axes, panels.items(), strict=True):
        _draw_map(axis, name, values, rhos, alphas)
        if best is not None:
            for colour, width in (("black", 3.6), ("white", 1.8)):
                axis.plot(
                    best.alpha, best.rho, marker="o", markersize=10, markerfacecolor="none",
                    markeredgecolor=colour, markeredgewidth=width,
                )  # fmt: skip
    axes[0].set_ylabel("ρ")
    return figure


def _draw_map(axis: Any, name: str, values: Array, rhos: Array, alphas: Array) -> None:
    from matplotlib import colormaps  # noqa: PLC0415
    from matplotlib.colors import LogNorm  # noqa: PLC0415

    logarithmic = name.startswith("Condition")
    colours = colormaps["magma_r" if logarithmic else "viridis"].with_extremes(bad="0.85")
    shown = np.ma.masked_invalid(values)
    norm = LogNorm() if logarithmic and shown.count() else None
    image = axis.pcolormesh(
        alphas, rhos, shown, cmap=colours, norm=norm, shading="nearest", rasterized=True
    )
    axis.set(xscale="log", yscale="log", xlabel="α")
    axis.set_title(name, loc="left", fontsize=11)
    axis.figure.colorbar(image, ax=axis, shrink=0.9, pad=0.02)
