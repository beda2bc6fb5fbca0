"""The history of a run: the start, then one record per iteration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.plots.history import draw_history


class History:
    """The start, then one record per step. Index by a column's name, iterate over records.

    Columns of every solver: iteration, seconds (the solver's own, monitoring excluded),
    passes (reads of X), objective, loss, accuracy, gradient_norm; with validation rows
    val_loss and val_accuracy; then the solver's own. ADMM: primal_residual,
    dual_residual, primal_tolerance, dual_tolerance, rho, newton_steps. NewtonCG: step,
    cg_steps. LBFGS: step. SGD: learning_rate. What a record lacks is NaN.

    `iteration` counts steps. Where one solver hands over to another, which looks at the same W
    again, two records have the same number.

    >>> history = History("demo")
    >>> history.append({"iteration": 0, "objective": 2.0})
    >>> history.append({"iteration": 1, "objective": 1.0})
    >>> history["objective"], "gap" in history
    (array([2., 1.]), False)
    """

    def __init__(self, solver: str, reason: str = "given") -> None:
        #: The solver and its settings, as text.
        self.solver = solver
        #: Why this solver was chosen; "given" where it was passed as an object.
        self.reason = reason
        #: Where max|∇F| was to end, and the iteration that was kept; None before the run has ended.
        self.tol: float | None = None
        self.kept_iteration: int | None = None
        self._records: list[dict[str, float]] = []
        #: Relative residuals of the inner CG, one tuple per record; empty where there is no CG.
        self.inner_residuals: list[tuple[float, ...]] = []

    def append(self, record: Mapping[str, float], inner_residuals: tuple[float, ...] = ()) -> None:
        """Add one record."""
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

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[dict[str, float]]:
        return iter(self._records)

    def __repr__(self) -> str:
        return f"<History of {self.solver}: {len(self)} records, columns {self.columns}>"

    def to_frame(self) -> Any:
        """The history as a pandas DataFrame, one row per record."""
        try:
            import pandas as pd  # noqa: PLC0415
        except ImportError as error:
            raise ImportError("history.to_frame() needs pandas: pip install pandas") from error
        return pd.DataFrame(self._records, columns=self.columns)

    def plot(self, against: str = "iteration") -> Any:
        """Draw objective, gradient, accuracy and residuals; returns the Matplotlib figure.

        Dotted lines mark tol, the iterate that was kept where it is not the last, and where one
        solver handed over to another. `against` is "iteration", "seconds" or "passes".
        """
        if against not in ("iteration", "seconds", "passes"):
            raise ValueError(f"against must be 'iteration', 'seconds' or 'passes', got {against!r}")
        return draw_history(
            {name: self[name] for name in self.columns},
            against,
            self.title,
            tol=self.tol,
            kept=self.kept_iteration,
        )

    @property
    def title(self) -> str:
        """Which solvers ran, and for how many iterations.

        >>> History("Chain(first=ADMM(rho=0.1), second=LBFGS(memory=20))").title
        'ADMM → LBFGS, 0 iterations'
        """
        found = re.findall(r"(?:^|then\(|first=|second=)(\w+)", self.solver)
        names = [name for name in found if name != "Chain"]
        steps = int(self._records[-1]["iteration"]) if self._records else 0
        return f"{' → '.join(names)}, {steps} iterations"
