"""What a path returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.path.plots import draw_path
from admm_softmax.solvers import Result


@dataclass(frozen=True)
class Path:
    """Fits under falling penalties, and how they did on validation rows.

    alphas : as fitted, from strong to weak; fewer than asked for where the path ended early
    results : one `Result` an α, with `W`, `status` and `history`
    coefs, intercepts : shaped as `coef_` and `intercept_`, with a leading axis over the alphas
    val_loss, val_accuracy : on the validation rows; None without any
    monitor : which of the two makes an α the best
    classes : the labels
    seconds : of the whole path
    reads : how often X was read in all
    """

    alphas: Array
    results: tuple[Result, ...]
    coefs: Array
    intercepts: Array
    val_loss: Array | None
    val_accuracy: Array | None
    monitor: Literal["loss", "accuracy"]
    classes: Any
    seconds: float
    reads: float

    @property
    def best(self) -> int:
        """The position of the best α: the strongest penalty among equals."""
        if self.val_loss is None or self.val_accuracy is None:
            raise ValueError("a path without validation rows has no best alpha")
        if self.monitor == "loss":
            return int(self.val_loss.argmin())
        return int(self.val_accuracy.argmax())

    @property
    def alpha(self) -> float:
        """The best α."""
        return float(self.alphas[self.best])

    @property
    def norms(self) -> Array:
        """‖W‖ without intercepts, an entry an α."""
        return np.array([np.linalg.norm(coef) for coef in self.coefs])

    def to_frame(self) -> Any:
        """One row an α, as a pandas DataFrame."""
        try:
            import pandas as pd  # noqa: PLC0415
        except ImportError as error:
            raise ImportError("path.to_frame() needs pandas: pip install pandas") from error
        columns = {
            "alpha": self.alphas,
            "objective": [result.iterate.objective for result in self.results],
            "loss": [result.iterate.loss for result in self.results],
            "accuracy": [result.iterate.accuracy for result in self.results],
            "norm": self.norms,
            "n_iter": [result.n_iter for result in self.results],
            "status": [str(result.status) for result in self.results],
        }
        if self.val_loss is not None:
            columns |= {"val_loss": self.val_loss, "val_accuracy": self.val_accuracy}
        return pd.DataFrame(columns)

    def plot(self) -> Any:
        """Draw scores and the size of the weights against α; returns the Matplotlib figure."""
        score = {"loss": self.val_loss, "accuracy": self.val_accuracy}[self.monitor]
        return draw_path(
            self.alphas,
            None if score is None else score[None],
            np.array([np.linalg.norm(coef, axis=1) for coef in self.coefs]),
            label=f"validation {self.monitor}",
            chosen=None if score is None else self.alpha,
        )
