"""Preconditioners: cheap approximations of the inverse Hessian of F.

The Hessian is Σ wᵢ (diag(pᵢ) − pᵢpᵢᵀ) ⊗ xᵢᵀxᵢ + α I ⊗ LᵀL. Replacing each K × K block by
its mean diagonal κ = Σ wᵢ mean_j p_ij(1 − p_ij) gives I ⊗ (κ X̃ᵀΩX̃ + α LᵀL), one d × d
matrix for all classes: ADMM's normal matrix with ρ = κ, so that both share it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares import (
    Auto,
    Breakdown,
    Cholesky,
    Precision,
    WStep,
    shared_step,
)

logger = logging.getLogger("admm_softmax")

Name: TypeAlias = Literal["none", "jacobi", "gram"]
NAMES: tuple[Name, ...] = ("none", "jacobi", "gram")

#: κ is followed when it has fallen or risen by this factor, unless a solver says otherwise.
REFRESH = 2.0
#: Probabilities that are all saturated have no curvature; the matrix must stay definite.
SMALLEST_CURVATURE = 1e-8


class Preconditioner(Protocol):
    """A symmetric positive definite map on d × K matrices."""

    def refresh(self, curvature: float) -> bool:
        """Adapt to the mean curvature κ at the current W; True if anything changed."""

    def apply(self, R: Array) -> Array:
        """P⁻¹R."""


#: Builds a preconditioner for a problem.
Factory: TypeAlias = Callable[[Problem], Preconditioner]


def make_preconditioner(
    name: Name | Factory,
    problem: Problem,
    *,
    subsample: int | None = None,
    seed: int = 0,
    refresh: float = REFRESH,
) -> Preconditioner:
    """Build a preconditioner; `subsample` rows make the Gram matrix instead of all."""
    if not isinstance(name, str):
        return name(problem)
    if name == "none":
        return Plain()
    if name == "jacobi":
        return Jacobi(problem, refresh)
    if subsample is not None and subsample < problem.design.n_rows:
        sample = compensated(problem, subsample, seed)
        return Gram(problem, refresh, shared_step(sample, Cholesky(data_precision(problem))))
    # Whatever ADMM has left will do.
    default = Auto(precision=data_precision(problem))
    return Gram(problem, refresh, shared_step(problem, None, default))


def data_precision(problem: Problem) -> Precision:
    """A preconditioner need be no more precise than the data."""
    return "single" if problem.design.dtype == np.float32 else "double"


def compensated(problem: Problem, n_rows: int, seed: int) -> Problem:
    """The problem on some rows, with no column lighter in its Gram matrix than on all.

    A feature that the sample missed would otherwise look free to move, and a sample of
    fewer rows than columns would leave directions without any weight.
    """
    sample = problem.subsample(n_rows, seed)
    gram = sample.design.gram(sample.weights, sample.design.dtype)
    whole = problem.column_squares()
    ridge = 1.0 + 0.01 * max(1.0, problem.shape[0] / sample.design.n_rows)
    gram[np.diag_indices_from(gram)] = ridge * np.maximum(gram.diagonal(), whole)
    sample.cache["gram"] = gram
    return sample


def check_preconditioner(name: Name | Factory, subsample: int | None) -> None:
    """Raise unless the settings make sense."""
    if name not in NAMES and (isinstance(name, str) or not callable(name)):
        raise ValueError(f"preconditioner must be one of {NAMES} or a function, got {name!r}")
    if subsample is not None:
        check_count("subsample", subsample, "at least 1 or None")


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

    def __init__(self, refresh: float) -> None:
        self.factor = refresh
        self.curvature = 0.0

    def refresh(self, curvature: float) -> bool:
        """Refactor when κ has moved far enough."""
        curvature = max(curvature, SMALLEST_CURVATURE)
        if self.curvature and 1 / self.factor < curvature / self.curvature < self.factor:
            return False
        self.curvature = self._factor(curvature)
        return True

    @abstractmethod
    def _factor(self, curvature: float) -> float:
        """Factorise for about this κ and return the one used."""


class Jacobi(_Following):
    """The diagonal of κ X̃ᵀΩX̃ + α LᵀL. One read of X to set up."""

    def __init__(self, problem: Problem, refresh: float = REFRESH) -> None:
        super().__init__(refresh)
        self.squares = problem.column_squares()
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
    """κ X̃ᵀΩX̃ + α LᵀL, factorised as ADMM's W-step would (d × d, n × n, or a sketch).

    The `step` may be that of other rows. Where nothing can be factorised, Jacobi steps in.
    """

    def __init__(self, problem: Problem, refresh: float, step: WStep) -> None:
        super().__init__(refresh)
        self.problem = problem
        self.fallback: Jacobi | None = None
        self.step = step

    def _factor(self, curvature: float) -> float:
        used = self.step.rho
        if used is not None and 1 / self.factor < curvature / used < self.factor:
            return used  # what ADMM left behind is close enough
        try:
            self.step.factor(curvature)
        except Breakdown as reason:
            logger.warning("%s; the preconditioner falls back to Jacobi", reason)
            self.fallback = self.fallback or Jacobi(self.problem)
            self.fallback.refresh(curvature)
            return curvature
        self.fallback = None
        return self.step.rho or curvature

    def apply(self, R: Array) -> Array:
        """Solve, or apply the sketch where nothing was factorised."""
        return self.step.precondition(R) if self.fallback is None else self.fallback.apply(R)
