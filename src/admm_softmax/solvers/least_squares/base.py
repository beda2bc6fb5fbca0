"""What ADMM expects of a way to solve its W-step."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem

EPS = float(np.finfo(np.float64).eps)


class Breakdown(np.linalg.LinAlgError):
    """A factorisation failed, or would lose every digit. The message says which and why."""


class Solution(NamedTuple):
    """W, and what is left: M − (ρ X̃ᵀΩX̃ + α LᵀL) W, or None where it is rounding."""

    W: Array
    residual: Array | None


class WStep(Protocol):
    """The W-step of one problem: factorise for a ρ, then solve for many right-hand sides."""

    @property
    def name(self) -> str:
        """The strategy's name."""

    @property
    def corrects(self) -> bool:
        """Solutions want a correction by residual rows, at the price of one more read."""

    @property
    def rho(self) -> float | None:
        """The ρ it is factorised for, if any."""

    def factor(self, rho: float) -> None:
        """Prepare for this ρ; raises Breakdown where the strategy cannot."""

    def solve(self, M: Array, start: Array) -> Solution:
        """Solve for M (d × K); iterative strategies begin at `start`."""

    def precondition(self, R: Array) -> Array:
        """Apply the inverse, or the approximation of it that was built."""


class Strategy(Protocol):
    """Settings of a W-step: frozen, and without data."""

    def prepare(self, problem: Problem) -> WStep:
        """Read X as the strategy needs (its Gram matrix, say), once for every ρ."""
