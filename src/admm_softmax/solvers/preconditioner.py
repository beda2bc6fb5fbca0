"""Preconditioners: cheap approximations of the inverse Hessian of F.

The Hessian is Σ wᵢ (diag(pᵢ) − pᵢpᵢᵀ) ⊗ xᵢᵀxᵢ + α I ⊗ LᵀL. Replacing each K × K block by
its mean diagonal κ = Σ wᵢ mean_j p_ij(1 − p_ij) gives I ⊗ (κ X̃ᵀΩX̃ + α LᵀL), one d × d
matrix for all classes: ADMM's normal matrix with ρ = κ, so that both share it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.prepared import finite_gram
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares import (
    Auto,
    Breakdown,
    GramStrategy,
    Precision,
    WStep,
    shared_step,
)
from admm_softmax.solvers.least_squares.cholesky import CholeskyStep

logger = logging.getLogger("admm_softmax")

Name: TypeAlias = Literal["none", "jacobi", "gram"]
PRECONDITIONERS: tuple[Name, ...] = ("none", "jacobi", "gram")

#: Factorise again when κ has fallen or risen by this factor, unless a solver sets another.
REFRESH = 2.0
#: The pairs of L-BFGS make up for a κ that is off by so much; a factorisation costs several
#: passes. And κ is looked at this seldom, because the first iterates overshoot: many rows are
#: saturated there, and a matrix for their κ makes steps that are far too long. Measured in
#: passes, on ten problems (docs/decisions/0017-curvature.md).
PAIRED_REFRESH, CURVATURE_EVERY = 4.0, 8
#: A first step after which κ is smaller by this factor was too long.
OVERSHOT = 20.0
#: From uniform predictions κ only falls, usually by about this factor before it settles.
ANTICIPATED = 6.0
#: Penalties and curvatures within this factor share a factorisation on a path: it is off by
#: half of that (in logarithms) at most, well within PAIRED_REFRESH.
SHARED_SPACING = 4.0
#: Probabilities that are all saturated have no curvature; the matrix must stay definite.
SMALLEST_CURVATURE = 1e-8


class Preconditioner(Protocol):
    """A symmetric positive definite map on d × K matrices.

    is_diagonal : whether it is a diagonal matrix, so cheap that nothing is gained by applying
        it to several matrices at once

    One that can write P⁻¹R to an array has `apply_into` as well; see `applied_into`. One that looks
    at W, and not at its κ alone, has `follow(W, step)`, which L-BFGS calls before each step but the
    first, and `state` and `resume` for checkpoints. One with a true `fits_start` has been made for
    predictions at the start, not for the κ that is expected later.
    """

    is_diagonal: bool

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
    """Build a preconditioner; its Gram matrix is that of `subsample` rows instead of all."""
    if not isinstance(name, str):
        return name(problem)
    if name == "none":
        return Plain()
    if name == "jacobi":
        return Jacobi(problem, refresh)
    if (strategy := sampled(problem, subsample, seed)) is not None:
        return Gram(problem, refresh, strategy.prepare(problem))
    # A factorisation that ADMM has left serves as well.
    return Gram(problem, refresh, shared_step(problem, None, _of_all_rows(problem)))


def data_precision(problem: Problem) -> Precision:
    """The precision of a preconditioner, which need not exceed that of the data."""
    return "single" if problem.design.is_single else "double"


@dataclass(frozen=True)
class SampledGram:
    """The Gram matrix of some rows, drawn at random, its diagonal no less than that of all rows.

    A feature that is zero in the sample would otherwise look unconstrained, and a sample of
    fewer rows than columns would leave directions without any curvature. So it is not the
    Gram matrix of any rows: good enough to precondition, and kept apart from `Prepared.gram`.
    """

    n_rows: int
    seed: int
    matrix: Any

    @classmethod
    def of(cls, problem: Problem, n_rows: int, seed: int) -> SampledGram:
        """The matrix for this sample, made once for all runs under all penalties."""
        return problem.prepared.sampled_gram.get(
            lambda kept: (kept.n_rows, kept.seed) == (n_rows, seed),
            lambda: cls(n_rows, seed, cls._make(problem, n_rows, seed)),
        )

    @staticmethod
    def _make(problem: Problem, n_rows: int, seed: int) -> Any:
        sample = problem.subsample(n_rows, seed)
        design, weights = sample.design, sample.weights
        gram = design.gram(weights, design.dtype)
        if gram.dtype == np.float32 and not np.isfinite(gram.diagonal()).all():
            gram = design.gram(weights)
        whole = problem.column_squares()
        ridge = 1.0 + 0.01 * max(1.0, problem.shape[0] / design.count(weights))
        gram[np.diag_indices_from(gram)] = ridge * np.maximum(gram.diagonal(), whole)
        return finite_gram(gram)


@dataclass(frozen=True)
class SampledCholesky:
    """Factorise ρ G + α LᵀL, G a `SampledGram`. For preconditioners: W-steps need all rows."""

    n_rows: int
    seed: int
    precision: Precision

    def prepare(self, problem: Problem) -> CholeskyStep:
        """Return the step; the sample is read when it is first factorised."""
        return CholeskyStep(problem, self.precision, partial(self._gram, problem))

    def forms_gram(self, problem: Problem) -> bool:
        """Return True: whatever the problem is."""
        return True

    def gram_of(self, problem: Problem) -> Any:
        """The Gram matrix of the sample."""
        return SampledGram.of(problem, self.n_rows, self.seed).matrix

    def has_gram_of(self, problem: Problem) -> bool:
        """Return True: its own step has formed it."""
        return True

    def _gram(self, problem: Problem, dtype: Any) -> Any:
        return self.gram_of(problem).astype(dtype, copy=False)


def gram_strategy(problem: Problem, subsample: int | None, seed: int) -> GramStrategy:
    """How the Gram preconditioner is factorised."""
    return sampled(problem, subsample, seed) or _of_all_rows(problem)


def sampled(problem: Problem, subsample: int | None, seed: int) -> SampledCholesky | None:
    """The strategy for a sample of the rows; None where all are to be taken."""
    if subsample is None or subsample >= problem.design.n_rows:
        return None
    return SampledCholesky(subsample, seed, data_precision(problem))


def _of_all_rows(problem: Problem) -> Auto:
    return Auto(precision=data_precision(problem))


def check_preconditioner(name: Name | Factory, subsample: int | None) -> None:
    """Raise unless the preconditioner is known and `subsample` is None or at least 1."""
    if name not in PRECONDITIONERS and (isinstance(name, str) or not callable(name)):
        raise ValueError(
            f"preconditioner must be one of {PRECONDITIONERS} or a function, got {name!r}"
        )
    if subsample is not None:
        check_count("subsample", subsample, "at least 1 or None")


def state_of(base: Preconditioner) -> Any:
    """What a checkpoint keeps of a preconditioner: its own `state`, or the κ that it is made for.

    None where it has neither.
    """
    state = getattr(base, "state", None)
    return state if state is not None else getattr(base, "curvature", None) or None


def applied_into(base: Preconditioner, R: Array, out: Array) -> Array:
    """P⁻¹R in `out`, an array of R's shape and precision, which may be R."""
    into = getattr(base, "apply_into", None)
    if into is not None:
        into(R, out)
    elif (found := base.apply(R)) is not out:
        out[...] = found
    return out


def resume_preconditioner(base: Preconditioner, state: Any) -> None:
    """Make of a new preconditioner the one that `state_of` has been asked about."""
    resume = getattr(base, "resume", None) or base.refresh
    if state is not None:
        resume(state)


class Plain:
    """P = I."""

    is_diagonal = True

    def refresh(self, curvature: float) -> bool:
        """Return False: the identity does not depend on κ."""
        return False

    def apply(self, R: Array) -> Array:
        """Return R unchanged."""
        return R


class _Following(ABC):
    """Keeps κ, and factorises again when κ has changed by a given factor."""

    is_diagonal = False

    def __init__(self, refresh: float) -> None:
        self.factor = refresh
        self.curvature = 0.0

    def refresh(self, curvature: float) -> bool:
        """Factorise again if κ has changed by `factor`; True if so."""
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

    is_diagonal = True

    def __init__(self, problem: Problem, refresh: float = REFRESH) -> None:
        super().__init__(refresh)
        self.squares = problem.column_squares()
        quadratic = problem.penalty.quadratic
        diagonal = quadratic.diagonal
        self.penalty: Array = (
            quadratic.matrix.diagonal() if diagonal is None else quadratic.strength * diagonal
        )

    def _factor(self, curvature: float) -> float:
        diagonal = curvature * self.squares + self.penalty
        # A zero column without a penalty has no gradient either: leave it alone.
        self.inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
        self._spread: Array | None = None
        return curvature

    def apply(self, R: Array) -> Array:
        """Divide by the diagonal."""
        return self.apply_into(R, np.empty_like(R))

    def apply_into(self, R: Array, out: Array) -> Array:
        """As `apply`, written to `out`, which may be R."""
        # One factor per entry: NumPy is slow where a factor serves a short row (30,001 × 20 in
        # float32: 0.42 ms, and 0.27 ms so).
        if self._spread is None or self._spread.shape != R.shape or self._spread.dtype != R.dtype:
            self._spread = np.repeat(self.inverse.astype(R.dtype), R.shape[1]).reshape(R.shape)
        return np.multiply(R, self._spread, out=out)


class Gram(_Following):
    """κ X̃ᵀΩX̃ + α LᵀL, factorised as ADMM's W-step would (d × d, n × n, or a sketch).

    `step` may belong to a sample of the rows. Where it breaks down, Jacobi is used instead.
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
        """Solve with the factor or sketch, or with Jacobi where that broke down."""
        return self.step.precondition(R) if self.fallback is None else self.fallback.apply(R)
