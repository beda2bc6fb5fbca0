"""Cholesky factorisation of the normal matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve, lapack

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares.base import EPS, Breakdown, Solution

#: Reciprocal conditions below which a solution is corrected by residual rows (at the price
#: of one more read of X), and below which it is not worth correcting.
CORRECTED_BELOW, SMALLEST_CONDITION = 1e-12, 16 * EPS


@dataclass(frozen=True)
class Cholesky:
    """Factorise H = ρ X̃ᵀΩX̃ + α LᵀL once; every W-step is two triangular solves."""

    def prepare(self, problem: Problem) -> CholeskyStep:
        """Form the Gram matrix, unless the problem has it already."""
        return CholeskyStep(problem)


class CholeskyStep:
    """D H D = RᵀR with D = diag(H)^(−1/2).

    The scaling makes the factorisation indifferent to the units of the features: H's
    condition number then measures their correlation alone (van der Sluis, 1969).
    """

    name = "cholesky"

    def __init__(self, problem: Problem) -> None:
        self.gram = problem.gram()
        self.penalty = problem.penalty
        self.n_threads = problem.design.n_threads
        self.rho: float | None = None
        self.corrects = False

    def factor(self, rho: float) -> None:
        """Factorise for this ρ; Breakdown if H is not positive definite in double."""
        H = normal_matrix(self.gram, rho, self.penalty.alpha * self.penalty.LtL)
        diagonal = H.diagonal().copy()
        if not diagonal.min() > 0:
            raise Breakdown(
                f"Cholesky: column {int(diagonal.argmin())} of the features is zero and is "
                "not penalised"
            )
        self.scale = 1.0 / np.sqrt(diagonal)
        H *= self.scale
        H *= self.scale[:, None]
        with blas_threads(self.n_threads):
            norm = np.abs(H).sum(axis=0).max()
            R, info = lapack.dpotrf(H, lower=0, overwrite_a=1, clean=0)
            if info != 0:
                raise Breakdown(f"Cholesky: leading minor {info} is not positive (rho={rho:g})")
            rcond, _ = lapack.dpocon(R, norm, uplo="U")
        if rcond < SMALLEST_CONDITION:
            raise Breakdown(f"Cholesky: reciprocal condition {rcond:.1e} at rho={rho:g}")
        self.R, self.rho, self.corrects = R, rho, rcond < CORRECTED_BELOW

    def solve(self, M: Array, start: Array) -> Solution:
        """W = D R⁻¹ R⁻ᵀ D M."""
        scale = self.scale[:, None]
        with blas_threads(self.n_threads):
            W = cho_solve((self.R, False), M * scale, overwrite_b=True, check_finite=False)
        return Solution(np.asarray(W * scale), None)

    def precondition(self, R: Array) -> Array:
        """H⁻¹R."""
        return self.solve(R, R).W


def normal_matrix(gram: Array, rho: float, penalty: sp.csr_array) -> Array:
    """ρ G + α LᵀL as a new dense matrix in Fortran order, which LAPACK overwrites."""
    H = np.multiply(gram, rho, order="F")
    entries = penalty.tocoo()
    H[entries.coords] += entries.data
    return H
