"""The figure of one fit, iteration by iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.plots.figure import GREY, new_figure, plain_log_ticks, style_axis

#: Title, whether logarithmic, and the columns of each panel with their labels.
_PANELS = (
    ("Loss", True, {"objective": "objective", "loss": "training", "val_loss": "validation"}),
    ("Accuracy", False, {"accuracy": "training", "val_accuracy": "validation"}),
    ("Largest gradient entry", True, {"gradient_norm": "max|∇F|"}),
    ("ADMM residuals", True, {"primal_residual": "primal", "dual_residual": "dual"}),
    ("ρ", True, {"rho": "ρ"}),
)
_LABELS = {"seconds": "solver seconds", "passes": "passes over X"}


def draw_history(
    columns: Mapping[str, Array],
    against: str,
    title: str,
    *,
    tol: float | None = None,
    kept: int | None = None,
) -> Any:
    """The columns of a history against one of them; NaN entries are left out.

    tol : a line in the panel of the gradient
    kept : the iteration to mark, unless it is the last
    """
    panels = [panel for panel in _PANELS if _is_of_interest(panel[2], columns)]
    rows = 1 if len(panels) <= 3 else 2
    across = -(-len(panels) // rows)
    figure = new_figure(4.75 * across, 3.3 * rows)
    grid = figure.add_gridspec(rows, 2 * across)
    for i, (heading, logarithmic, labels) in enumerate(panels):
        row, place = divmod(i, across)
        wide = 2 * across // min(across, len(panels) - row * across)  # a shorter row is filled
        axis = figure.add_subplot(grid[row, wide * place : wide * (place + 1)])
        _draw_panel(axis, columns, against, labels)
        if logarithmic:
            axis.set_yscale("log")
        if heading.startswith("Largest") and tol:
            axis.axhline(tol, color=GREY, linestyle=":", label=f"tol = {tol:g}")
        _draw_marks(axis, columns, against, kept)
        axis.set_xlabel(_LABELS.get(against, against))
        style_axis(axis, heading)
        if logarithmic:
            plain_log_ticks(axis.yaxis, *axis.get_ylim())
        axis.legend(frameon=False)
    figure.suptitle(title, fontsize=11, color="0.35")
    return figure


def _is_of_interest(labels: Mapping[str, str], columns: Mapping[str, Array]) -> bool:
    """Whether there is something to draw; ρ only where it changes."""
    known = [columns[name][~np.isnan(columns[name])] for name in labels if name in columns]
    if "rho" in labels:
        return any(len(np.unique(values)) > 1 for values in known)
    return any(len(values) > 0 for values in known)


def _draw_panel(
    axis: Any, columns: Mapping[str, Array], against: str, labels: Mapping[str, str]
) -> None:
    x = columns[against]
    for name, label in labels.items():
        if name in columns:
            known = ~np.isnan(columns[name])
            axis.plot(x[known], columns[name][known], label=label, linewidth=1.8)


def _draw_marks(axis: Any, columns: Mapping[str, Array], against: str, kept: int | None) -> None:
    """Dotted lines where another solver took over, and at the iterate that was kept."""
    steps, x = columns["iteration"], columns[against]
    for i in np.flatnonzero(np.diff(steps) == 0):
        axis.axvline(x[i], color=GREY, linestyle=":", label="handed over")
    if kept is not None and kept != steps[-1] and (steps == kept).any():
        at = x[np.flatnonzero(steps == kept)[-1]]
        axis.axvline(at, color="black", linestyle=":", linewidth=1, label="kept")
