"""What a solver is: frozen settings that yield iterates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem


@dataclass(frozen=True)
class Iterate:
    """One W, and the scalars that the passes over X which made it produced anyway.

    objective, loss, accuracy, gradient_norm belong to W itself: F, its first term, the
    share of training rows classified rightly, and max|∇F|. `passes` counts reads of X
    since the solver began. `details` are the solver's own figures, by name.
    """

    W: Array
    objective: float
    loss: float
    accuracy: float
    gradient_norm: float
    passes: int
    #: The solver's own test has been met (ADMM: Boyd's residuals).
    converged: bool = False
    details: Mapping[str, float] = field(default_factory=dict)


class Solver(Protocol):
    """A frozen dataclass of settings. It holds no data and no state."""

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield iterates for ever, starting at W0 (None: zero); `run` decides when to stop."""


def gradient_norm(gradient: Array) -> float:
    """max|∇F|, the quantity that `tol` bounds for every solver."""
    return float(np.abs(gradient).max())
