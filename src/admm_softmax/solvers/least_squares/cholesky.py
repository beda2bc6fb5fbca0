"""Cholesky factorisation of the normal matrix, in double or in single precision."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve, lapack

from admm_softmax._arrays import EPS, Array
from admm_softmax._parallel import blas_threads
from admm_softmax.design.factor import Factor
from admm_softmax.kernels.thresholds import repays_compiling
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares.base import Breakdown, Solution

Precision: TypeAlias = Literal["auto", "single", "double"]

#: Reciprocal conditions below which a solution is corrected by residual rows (at the price
#: of one more read of X), and below which it is not worth correcting.
CORRECTED_BELOW, SMALLEST_CONDITION = 1e-12, 16 * EPS

#: Single precision moves the eigenvalues of D H D by about 1e-4. The penalty must hold all
#: of them this far from zero before "auto" trusts it.
SAFE_FLOOR = 1e-2


@dataclass(frozen=True)
class Cholesky:
    """Factorise H = ρ X̃ᵀΩX̃ + α LᵀL once; every W-step is two triangular solves.

    precision : "double"; "single", three times as fast and half the memory; or "auto":
        single for float32 data where the penalty keeps H well conditioned.
    """

    precision: Precision = "auto"

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision):
            raise ValueError(
                f"precision must be one of {get_args(Precision)}, got {self.precision!r}"
            )

    def prepare(self, problem: Problem) -> CholeskyStep:
        """Return the W-step; X is read in `factor`, as the precision needed depends on ρ."""
        return CholeskyStep(problem, self.precision)


class CholeskyStep:
    """D H D = RᵀR with D = diag(H)^(−1/2).

    The scaling makes the factorisation independent of the units of the features: H's
    condition number then measures their correlation alone (van der Sluis, 1969).

    In single precision, the first solution is refined once against H. Later ones start from
    the one before, W⁺ = W + H⁻¹(M⁺ − M), so that their rounding is relative to the step and
    fades as the steps do.
    """

    name = "cholesky"

    def __init__(
        self,
        problem: Problem,
        precision: Precision = "double",
        gram: Callable[[Any], Any] | None = None,
    ) -> None:
        self.problem = problem
        #: The matrix in the place of X̃ᵀΩX̃, in a given precision: that of the problem, unless
        #: another is to precondition.
        self.gram = gram or problem.gram
        self.precision = precision
        self.quadratic = problem.penalty.quadratic
        self.rho: float | None = None
        self.corrects = False
        self.previous: tuple[Array, Array] | None = None
        self.R: Any = None
        #: The factor, where the design keeps it beside its rows.
        self.there: Factor | None = None

    def factor(self, rho: float) -> None:
        """Factorise for this ρ; Breakdown if H is not positive definite to rounding."""
        self.previous, self.rho = None, None
        self.R = self.there = None  # free it first: two may not fit into memory
        self.dtype = np.dtype(np.float32 if self._single(rho) else np.float64)
        gram = self.gram(self.dtype)
        H = normal_matrix(gram, rho, self.quadratic.matrix, self.dtype)
        diagonal = H.diagonal().astype(np.float64)
        if not diagonal.min() > 0:
            raise Breakdown(
                f"Cholesky: column {int(diagonal.argmin())} of the features is zero and is "
                "not penalised"
            )
        self.scale = 1.0 / np.sqrt(diagonal)
        scale = self.scale.astype(self.dtype)
        H *= scale
        H *= scale[:, None]
        self.there = self.problem.design.cholesky(H)
        if self.there is None:
            with blas_threads(operations=len(H) ** 3 / 3):
                self.R, self.corrects = self._factorise(H, rho)
        else:
            single = self.dtype == np.float32
            rcond = None if single else self.there.rcond
            self.corrects = self._checked(self.there.info, rcond, rho)
        self.rho = rho

    def _single(self, rho: float) -> bool:
        """Whether to work in single precision at this ρ."""
        if self.precision != "auto":
            return self.precision == "single"
        return self.problem.design.is_single and conditioning_floor(self.problem, rho) >= SAFE_FLOOR

    def _factorise(self, H: Any, rho: float) -> tuple[Any, bool]:
        """R with RᵀR = H, written over H, and whether its solutions need a correction."""
        single = self.dtype == np.float32
        norm = 0.0 if single else np.abs(H).sum(axis=0).max()
        factorise = lapack.spotrf if single else lapack.dpotrf
        R, info = factorise(H, lower=0, overwrite_a=1, clean=0)
        rcond = None if single or info else lapack.dpocon(R, norm, uplo="U")[0]
        return R, self._checked(info, rcond, rho)

    @staticmethod
    def _checked(info: int, rcond: float | None, rho: float) -> bool:
        """Whether solutions need a correction; Breakdown where there is no factor to use."""
        if info != 0:
            raise Breakdown(f"Cholesky: leading minor {info} is not positive (rho={rho:g})")
        if rcond is None:  # in single precision
            return False
        if rcond < SMALLEST_CONDITION:
            raise Breakdown(f"Cholesky: reciprocal condition {rcond:.1e} at rho={rho:g}")
        return bool(rcond < CORRECTED_BELOW)

    def solve(self, M: Array, start: Array) -> Solution:
        """W = D R⁻¹ R⁻ᵀ D M, refined where the factor is in single precision."""
        if self.dtype == np.float64:
            return Solution(self.precondition(M), None)
        if self.previous is None:
            W = self.precondition(M)
            W += self.precondition(M - self._times_H(W))
        else:
            W = self.previous[1] + self.precondition(M - self.previous[0])
        self.previous = M, W
        return Solution(W, None)

    def view(self, problem: Problem) -> CholeskyStep:
        """The same factor for another run, without the solutions of this one."""
        other = copy(self)
        other.problem, other.previous = problem, None
        return other

    def _times_H(self, W: Array) -> Array:
        assert self.rho is not None
        with blas_threads(operations=2.0 * len(W) * W.size):
            product = self.gram(self.dtype) @ W.astype(self.dtype)
        return np.asarray(self.rho * product.astype(np.float64)) + self.quadratic.product(W)

    def precondition(self, R: Array) -> Array:
        """H⁻¹R, to the precision of the factor."""
        scale = self.scale[:, None]
        d, K = R.shape
        if self.there is not None:
            return np.asarray(self.there.solve(R * scale) * scale)
        if repays_compiling(d, d * d // 2, K):
            from admm_softmax.kernels.compiled import triangular  # noqa: PLC0415  (loads LLVM)

            return np.asarray(triangular.solve(self.R.T, R * scale) * scale)
        B = (R * scale).astype(self.dtype, copy=False)
        with blas_threads(operations=2.0 * d * R.size):
            W = cho_solve((self.R, False), B, overwrite_b=True, check_finite=False)
        return np.asarray(W * scale)


def conditioning_floor(problem: Problem, rho: float) -> float:
    """A lower bound on the eigenvalues of D H D that the penalty alone guarantees.

    With LᵀL diagonal, min α(LᵀL)ⱼⱼ / (ρ max Gⱼⱼ + α(LᵀL)ⱼⱼ); the intercept, which is one
    column and may have no penalty, is left out. Zero where LᵀL is not diagonal.
    """
    quadratic = problem.penalty.quadratic
    if quadratic.diagonal is None:
        return 0.0
    features = slice(0, problem.design.n_features - problem.design.intercept)
    weakest = quadratic.strength * float(quadratic.diagonal[features].min())
    if not weakest > 0:
        return 0.0
    largest = float(problem.column_squares().max())
    return weakest / (rho * largest + weakest)


def normal_matrix(gram: Any, rho: float, penalty: sp.csr_array, dtype: Any = np.float64) -> Any:
    """ρ G + α LᵀL as a new dense matrix in Fortran order, which LAPACK overwrites."""
    H = np.multiply(gram, rho, order="F", dtype=dtype, casting="same_kind")
    entries = penalty.tocoo()
    H[entries.coords] += entries.data
    return H
