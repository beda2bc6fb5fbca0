"""The result of a probe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.plots.probe import draw_probe
from admm_softmax.storage.records import write_json


class Interval(NamedTuple):
    """A metric on the test rows, with its bootstrap interval."""

    value: float
    low: float
    high: float


class Shot(NamedTuple):
    """One draw of so many training rows per class: the C chosen, and the metric."""

    shots: int
    repeat: int
    C: float
    value: float


@dataclass(frozen=True)
class ProbeResult:
    """What a probe found.

    recipe, source : the recipe's name, and where it is published
    metric : what decided
    Cs, alphas, val_scores : the sweep: scikit-learn's C, α, and the metric on validation rows
    best : the position of the choice
    test : metrics on the test rows, by name; empty without any
    shots : draws of few rows per class
    n_train, n_val, n_test, seconds : sizes and time
    estimator : the fitted `SoftmaxRegression`; None where the result was read from a file
    """

    recipe: str
    source: str
    metric: str
    Cs: Array
    alphas: Array
    val_scores: Array
    best: int
    test: dict[str, Interval]
    shots: tuple[Shot, ...]
    n_train: int
    n_val: int
    n_test: int
    seconds: float
    estimator: Any = field(default=None, repr=False, compare=False)

    @property
    def C(self) -> float:
        """The C chosen."""
        return float(self.Cs[self.best])

    @property
    def alpha(self) -> float:
        """The α chosen, of the training rows."""
        return float(self.alphas[self.best])

    def to_frame(self) -> Any:
        """The sweep as a pandas DataFrame, one row per C."""
        return _frame(
            {"C": self.Cs, "alpha": self.alphas, self.metric: self.val_scores}, "to_frame"
        )

    def shots_to_frame(self) -> Any:
        """The draws of few rows as a pandas DataFrame, one row per draw."""
        columns = {name: [getattr(s, name) for s in self.shots] for name in Shot._fields}
        return _frame(columns, "shots_to_frame")

    def plot(self) -> Any:
        """Draw the sweep, and the metric over shots if there are any; the Matplotlib figure."""
        return draw_probe(self.Cs, self.val_scores, self.best, self.metric, self.shots)

    def to_json(self, path: str | Path | None = None) -> dict[str, Any]:
        """Everything but the estimator, as plain numbers; written to a file if one is named."""
        kept = {k: v for k, v in vars(self).items() if k != "estimator"}
        content = {
            **{k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in kept.items()},
            "test": {name: interval._asdict() for name, interval in self.test.items()},
            "shots": [shot._asdict() for shot in self.shots],
        }
        if path is not None:
            write_json(Path(path), content)
        return content

    @classmethod
    def from_json(cls, content: str | Path | Mapping[str, Any]) -> ProbeResult:
        """The inverse of `to_json`, from a file or from what it returns."""
        if not isinstance(content, Mapping):
            content = json.loads(Path(content).read_text(encoding="utf-8"))
        assert isinstance(content, Mapping)
        arrays = {k: _numbers(content[k]) for k in ("Cs", "alphas", "val_scores")}
        test = {name: Interval(*_numbers(list(i.values()))) for name, i in content["test"].items()}
        shots = tuple(Shot(**shot) for shot in content["shots"])
        return cls(**{**content, **arrays, "test": test, "shots": shots})

    def __str__(self) -> str:
        lines = [f"C = {self.C:.3g}: {self.metric} {self.val_scores[self.best]:.4f} on validation"]
        for name, (value, low, high) in self.test.items():
            lines.append(f"test {name} {value:.4f} [{low:.4f}, {high:.4f}]")
        return "\n".join(lines)


def _numbers(values: Any) -> Array:
    """Floats, with NaN for null."""
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def _frame(columns: dict[str, Any], method: str) -> Any:
    try:
        import pandas as pd  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(f"result.{method}() needs pandas: pip install pandas") from error
    return pd.DataFrame(columns)
