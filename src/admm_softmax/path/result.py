"""The result of a path of penalties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._reprs import as_html, as_text
from admm_softmax.plots.path import draw_coefs, draw_path
from admm_softmax.solvers import Result


@dataclass(frozen=True)
class Path:
    """Fits under falling penalties, and how they did on validation rows.

    alphas : as fitted, from strong to weak; fewer than asked for where the path ended early
    results : one `Result` per α, with `W`, `status` and `history`
    coefs, intercepts : shaped as `coef_` and `intercept_`, with a leading axis over the alphas
    val_loss, val_accuracy : on the validation rows; None without any
    monitor : which of the two decides the best α
    classes : the labels
    seconds : of the whole path
    reads : how often X was read in all
    explained : the share of the deviance that each fit explains, under a penalty with kinks
    feature_names : those of X, if it had any

    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import softmax_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = softmax_path(X[::2], y[::2], [1.0, 0.1, 0.01], X_val=X[1::2], y_val=y[1::2])
    >>> path.coefs.shape, path.alpha
    ((3, 3, 4), 0.01)
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
    explained: Array | None = None
    feature_names: Any = None

    def __repr__(self) -> str:
        return as_text("Path", self._facts())

    def _repr_html_(self) -> str:
        """For notebooks."""
        return as_html("Path", self._facts())

    def _facts(self) -> dict[str, str]:
        steps = [result.n_iter for result in self.results]
        ended = sum(result.status == "converged" for result in self.results)
        facts = {
            "alphas": f"{len(self.alphas)}, from {self.alphas[0]:.3g} to {self.alphas[-1]:.3g}",
            "fits": f"{ended} of {len(steps)} converged, {sum(steps)} iterations in all",
            "cost": f"{self.seconds:.2f} s, {self.reads:g} reads of X",
        }
        if self.val_loss is not None and self.val_accuracy is not None:
            loss, accuracy = self.val_loss[self.best], 100 * self.val_accuracy[self.best]
            facts["best"] = f"alpha {self.alpha:.3g}: validation {loss:.4g}, {accuracy:.2f} %"
        return facts

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
        """‖W‖ without intercepts, one entry per α."""
        return np.array([np.linalg.norm(coef) for coef in self.coefs])

    @property
    def n_nonzero(self) -> Any:
        """How many coefficients are not zero, one entry per α."""
        return np.array([np.count_nonzero(coef) for coef in self.coefs])

    def to_frame(self) -> Any:
        """The path as a pandas DataFrame, one row per α."""
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
            "nonzero": self.n_nonzero,
            "n_iter": [result.n_iter for result in self.results],
            "status": [str(result.status) for result in self.results],
        }
        if self.val_loss is not None:
            columns |= {"val_loss": self.val_loss, "val_accuracy": self.val_accuracy}
        return pd.DataFrame(columns)

    def plot_coefs(self, label: Any = None, names: Any = None, most: int = 8) -> Any:
        """Draw the coefficients against α; returns the Matplotlib figure.

        `label` is the class whose coefficients to draw; None draws the norm of each feature's
        over all classes. The `most` largest are named, by `names` or those of X.
        """
        if label is None:
            lines = np.linalg.norm(self.coefs, axis=1)
        else:
            places = np.flatnonzero(np.asarray(self.classes) == label)
            if not len(places):
                raise ValueError(f"label must be one of {list(self.classes)}, got {label!r}")
            row = places[0] if self.coefs.shape[1] > 1 else 0
            lines = self.coefs[:, row] * (-1 if self.coefs.shape[1] == 1 and places[0] == 0 else 1)
        known = names if names is not None else self.feature_names
        words = [f"x{j}" for j in range(lines.shape[1])] if known is None else list(known)
        if len(words) != lines.shape[1]:
            raise ValueError(f"names has {len(words)} entries for {lines.shape[1]} features")
        return draw_coefs(self.alphas, lines, words, most, label)

    def plot(self) -> Any:
        """Draw scores and norms of the coefficients against α; returns the Matplotlib figure."""
        score = {"loss": self.val_loss, "accuracy": self.val_accuracy}[self.monitor]
        return draw_path(
            self.alphas,
            None if score is None else score[None],
            np.array([np.linalg.norm(coef, axis=1) for coef in self.coefs]),
            label=f"validation {self.monitor}",
            chosen=None if score is None else self.alpha,
        )
