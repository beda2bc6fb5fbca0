"""Preconditioners: cheap approximations of the inverse Hessian of F.

The Hessian is Σ wᵢ (diag(pᵢ) − pᵢpᵢᵀ) ⊗ xᵢᵀxᵢ + α I ⊗ LᵀL. Replacing each K × K block by
its mean diagonal κ = Σ wᵢ mean_j p_ij(1 − p_ij) gives I ⊗ (κ X̃ᵀΩX̃ + α LᵀL), one d × d
matrix for all classes: ADMM's normal matrix with ρ = κ, so that both share it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, Protocol, TypeAlias

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares import shared_step

Name: TypeAlias = Literal["none", "jacobi", "gram"]
NAMES: tuple[Name, ...] = ("none", "jacobi", "gram")

#: κ is followed when it has fallen (or risen) by this factor.
REFRESH = 2.0
#: Probabilities that are all saturated have no curvature; the matrix must stay definite.
SMALLEST_CURVATURE = 1e-8


class Preconditioner(Protocol):
    """A symmetric positive definite map on d × K matrices."""

    def refresh(self, curvature: float) -> bool:
        """Adapt to the mean curvature κ at the current W; True if anything changed."""

    def apply(self, R: Array) -> Array:
        """P⁻¹R."""


def make_preconditioner(
    name: Name, problem: Problem, *, subsample: int | None = None, seed: int = 0
) -> Preconditioner:
    """Build a preconditioner; `subsample` rows make the Gram matrix instead of all."""
    if name == "none":
        return Plain()
    if name == "jacobi":
        return Jacobi(problem)
    if subsample is not None and subsample < problem.design.n_rows:
        problem = problem.subsample(subsample, seed)
    return Gram(problem)


def check_preconditioner(name: str, subsample: int | None) -> None:
    """Raise unless the settings make sense."""
    if name not in NAMES:
        raise ValueError(f"preconditioner must be one of {NAMES}, got {name!r}")
    if subsample is not None and subsample < 1:
        raise ValueError(f"subsample must be at least 1 or None, got {subsample}")


class Plain:
    """P = I."""

    def refresh(self, curvature: float) -> bool:
        """Nothing to adapt."""
        return False

    def apply(self, R: Array) -> Array:
        """R itself."""
        return R


class _Following(ABC):
    """Keeps κ and says when it has moved far enough to act."""

    def __init__(self) -> None:
        self.curvature = 0.0

    def refresh(self, curvature: float) -> bool:
        """Refactor when κ has halved or doubled."""
        curvature = max(curvature, SMALLEST_CURVATURE)
        if self.curvature and 1 / REFRESH < curvature / self.curvature < REFRESH:
            return False
        self.curvature = self._factor(curvature)
        return True

    @abstractmethod
    def _factor(self, curvature: float) -> float:
        """Factorise for about this κ and return the one used."""


class Jacobi(_Following):
    """The diagonal of κ X̃ᵀΩX̃ + α LᵀL. One read of X to set up."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.squares = problem.design.column_squares(problem.weights)
        self.penalty = problem.penalty.alpha * problem.penalty.LtL.diagonal()

    def _factor(self, curvature: float) -> float:
        diagonal = curvature * self.squares + self.penalty
        # A zero column without a penalty has no gradient either: leave it alone.
        self.inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
        return curvature

    def apply(self, R: Array) -> Array:
        """Divide by the diagonal."""
        return R * self.inverse[:, None]


class Gram(_Following):
    """κ X̃ᵀΩX̃ + α LᵀL, factorised as ADMM's W-step would (d × d, n × n, or a sketch)."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.step = shared_step(problem)

    def _factor(self, curvature: float) -> float:
        used = self.step.rho
        if used is not None and 1 / REFRESH < curvature / used < REFRESH:
            return used  # what ADMM left behind is close enough
        self.step.factor(curvature)
        return curvature

    def apply(self, R: Array) -> Array:
        """Solve, or apply the sketch where nothing was factorised."""
        return self.step.precondition(R)
