"""The figure of a grid over α and ρ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.plots.figure import new_figure


def draw_grid(
    panels: Mapping[str, Array], rhos: Array, alphas: Array, best: tuple[float, float] | None
) -> Any:
    """Heat maps (ρ × α), one per quantity: NaN is grey, a circle marks the best pair (ρ, α)."""
    figure = new_figure(4.3 * len(panels), 3.9)
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, (name, values) in zip(axes, panels.items(), strict=True):
        _draw_map(axis, name, values, rhos, alphas)
        if best is not None:
            rho, alpha = best
            for colour, width in (("black", 3.6), ("white", 1.8)):
                axis.plot(
                    alpha, rho, marker="o", markersize=10, markerfacecolor="none",
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
