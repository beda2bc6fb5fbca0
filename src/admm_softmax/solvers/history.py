"""What happened, iteration by iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Any

import numpy as np

from admm_softmax._arrays import Array


class History:
    """One record an iteration. Index by a column's name, iterate over records.

    Columns of every solver: iteration, seconds (the solver's own, monitoring excluded),
    passes (reads of X), objective, loss, accuracy, gradient_norm; with validation rows
    val_loss and val_accuracy; then the solver's own. ADMM: primal_residual,
    dual_residual, primal_tolerance, dual_tolerance, rho, newton_steps. NewtonCG: step,
    cg_steps. LBFGS: step. SGD: learning_rate.

    >>> history = History("demo")
    >>> history.append({"iteration": 1, "objective": 2.0})
    >>> history.append({"iteration": 2, "objective": 1.0})
    >>> history["objective"]
    array([2., 1.])
    """

    def __init__(self, solver: str, reason: str = "given") -> None:
        #: The solver and its settings, in words.
        self.solver = solver
        #: Why it was taken, where it was chosen by name or automatically.
        self.reason = reason
        self._records: list[dict[str, float]] = []
        #: An inner iteration's relative residuals, a tuple an iteration (those that run CG).
        self.inner_residuals: list[tuple[float, ...]] = []

    def append(self, record: Mapping[str, float], inner_residuals: tuple[float, ...] = ()) -> None:
        """Add one iteration."""
        self._records.append(dict(record))
        self.inner_residuals.append(inner_residuals)

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in the order in which they first appeared."""
        return list(dict.fromkeys(name for record in self._records for name in record))

    def __getitem__(self, column: str) -> Array:
        if column not in self.columns:
            raise KeyError(f"history has no column {column!r}; it has {self.columns}")
        return np.array([record.get(column, np.nan) for record in self._records], dtype=np.float64)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[dict[str, float]]:
        return iter(self._records)

    def __repr__(self) -> str:
        return f"<History of {self.solver}: {len(self)} iterations, columns {self.columns}>"

    def to_frame(self) -> Any:
        """The history as a pandas DataFrame, one row an iteration."""
        try:
            import pandas as pd  # noqa: PLC0415
        except ImportError as error:
            raise ImportError("history.to_frame() needs pandas: pip install pandas") from error
        return pd.DataFrame(self._records, columns=self.columns)

    def plot(self, against: str = "iteration") -> Any:
        """Draw objective, gradient, accuracy and residuals; returns the Matplotlib figure.

        `against` is "iteration", "seconds" or "passes".
        """
        if against not in ("iteration", "seconds", "passes"):
            raise ValueError(f"against must be 'iteration', 'seconds' or 'passes', got {against!r}")
        try:
            from matplotlib.figure import Figure  # noqa: PLC0415
        except ImportError as error:
            raise ImportError(
                "history.plot() needs Matplotlib: pip install 'admm-softmax[plot]'"
            ) from error
        return _draw(Figure(figsize=(9.5, 6.4), layout="constrained"), self, against)


#: title, logarithmic, and the columns of each panel with their labels.
_PANELS = (
    ("Loss", True, {"objective": "objective", "loss": "training", "val_loss": "validation"}),
    ("Accuracy", False, {"accuracy": "training", "val_accuracy": "validation"}),
    ("Largest gradient entry", True, {"gradient_norm": "max|∇F|"}),
    ("ADMM residuals", True, {"primal_residual": "primal", "dual_residual": "dual"}),
)


def _draw(figure: Any, history: History, against: str) -> Any:
    present = set(history.columns)
    panels = [p for p in _PANELS if present & set(p[2])]
    axes = figure.subplots(-(-len(panels) // 2), 2, squeeze=False).ravel()
    x = history[against]
    for axis, (title, logarithmic, columns) in zip(axes, panels, strict=False):
        for column, label in columns.items():
            if column in present:
                known = ~np.isnan(history[column])
                axis.plot(x[known], history[column][known], label=label, linewidth=1.8)
        if logarithmic:
            axis.set_yscale("log")
        axis.set_title(title, loc="left", fontsize=11)
        axis.set_xlabel(
            {"seconds": "solver seconds", "passes": "passes over X"}.get(against, against)
        )
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    figure.suptitle(fill(history.solver, 120), fontsize=9, color="0.35")
    return figure
