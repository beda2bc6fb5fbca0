"""The W-step in n × n form, for many more features than rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, lapack

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads
from admm_softmax.kernels import rows
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares.base import Breakdown, Solution, sparse_inverse

#: The formula subtracts two terms that agree to a part in ρ‖𝒦‖. Beyond the first bound a
#: solution is corrected by residual rows, beyond the second too few digits remain.
CORRECTED_FROM, LARGEST_RATIO = 1e6, 1e10


@dataclass(frozen=True)
class Woodbury:
    """Solve through the n × n matrix 𝒦 = X P⁻¹ Xᵀ, with P = α LᵀL on the features.

    By the Woodbury identity ::

        (P + ρ XᵀΩX)⁻¹ = P⁻¹ − P⁻¹Xᵀ√Ω (I/ρ + √Ω𝒦√Ω)⁻¹ √ΩX P⁻¹

    An unpenalised intercept is eliminated first: its Schur complement is the same
    problem with centred features, 𝒦 centred on both sides. Needs P nonsingular and the
    intercept uncoupled from the features in L.
    """

    @staticmethod
    def applies(problem: Problem) -> bool:
        """Whether the penalty is nonsingular on the features, as the formula needs."""
        d = problem.design.n_features - problem.design.intercept
        if not problem.penalty.alpha > 0:
            return False
        try:
            sparse_inverse(problem.penalty.LtL[:d, :d])
        except Breakdown:
            return False
        return True

    def prepare(self, problem: Problem) -> WoodburyStep:
        """Form 𝒦 with one read of X."""
        return WoodburyStep(problem)


class WoodburyStep:
    """Two reads of X a solve, none of them with a d × d matrix."""

    name = "woodbury"

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rho: float | None = None
        self.corrects = False
        design = problem.design
        self.d = design.n_features - design.intercept
        penalty = problem.penalty.alpha * problem.penalty.LtL
        self.intercept_penalty = float(penalty[self.d, self.d]) if design.intercept else 0.0
        if design.intercept and penalty[self.d, : self.d].count_nonzero():
            raise Breakdown("n × n form: the operator couples the intercept to the features")
        self.invert = sparse_inverse(penalty[: self.d, : self.d])
        self.root = np.sqrt(problem.weights)
        K = design.outer(self.invert)
        if design.intercept:
            if self.intercept_penalty > 0:
                K += 1.0 / self.intercept_penalty
            else:
                self.mean = problem.design.fold(
                    np.zeros((design.n_features, 0)), rows.hand_over, (problem.weights[:, None],)
                ).product[: self.d]
                K -= problem.weights @ K
                K -= (K @ problem.weights)[:, None]
        self.K = self.root[:, None] * K * self.root

    @property
    def centred(self) -> bool:
        """Whether an unpenalised intercept was eliminated by centring."""
        return self.problem.design.intercept and self.intercept_penalty == 0

    def factor(self, rho: float) -> None:
        """Factorise I/ρ + √Ω𝒦√Ω; Breakdown where cancellation would eat the digits."""
        ratio = rho * float(np.trace(self.K))
        if ratio > LARGEST_RATIO:
            raise Breakdown(f"n × n form: ρ‖X P⁻¹ Xᵀ‖ = {ratio:.1e} at rho={rho:g}")
        A = np.array(self.K, order="F")
        A[np.diag_indices_from(A)] += 1.0 / rho
        with blas_threads(self.problem.design.n_threads):
            self.R, info = lapack.dpotrf(A, lower=0, overwrite_a=1, clean=0)
        if info != 0:
            raise Breakdown(f"n × n form: leading minor {info} is not positive (rho={rho:g})")
        self.rho, self.corrects = rho, ratio > CORRECTED_FROM

    def solve(self, M: Array, start: Array) -> Solution:
        """Apply the formula above to M."""
        W = np.empty_like(M)
        if not self.problem.design.intercept:
            W[:] = self._apply(M)
        elif self.centred:
            W[:-1] = self._apply(M[:-1] - self.mean * M[-1])
            assert self.rho is not None
            W[-1] = M[-1] / self.rho - self.mean[:, 0] @ W[:-1]
        else:
            W[:-1], W[-1] = self._penalised(M)
        return Solution(W, None)

    def precondition(self, R: Array) -> Array:
        """H⁻¹R."""
        return self.solve(R, R).W

    def _apply(self, M: Array) -> Array:
        """The formula on the features; products with centred X where there is a mean."""
        V = self.invert(M)
        return V - self.invert(self._transposed(self._inner(self._scores(V)))[: self.d])

    def _penalised(self, M: Array) -> tuple[Array, Array]:
        """The same with the constant column as one more feature."""
        V, last = self.invert(M[:-1]), M[-1] / self.intercept_penalty
        back = self._transposed(self._inner(self._scores(V, last)))
        return V - self.invert(back[:-1]), last - back[-1] / self.intercept_penalty

    def _inner(self, scores: Array) -> Array:
        root = self.root[:, None]
        with blas_threads(self.problem.design.n_threads):
            return np.asarray(root * cho_solve((self.R, False), root * scores, check_finite=False))

    def _scores(self, V: Array, last: Array | None = None) -> Array:
        if self.problem.design.intercept:
            row = -(self.mean[:, 0] @ V) if last is None else last
            V = np.concatenate([V, row[None]])
        return self.problem.design.fold(V, rows.predict).rows[0]

    def _transposed(self, R: Array) -> Array:
        design = self.problem.design
        product = design.fold(np.zeros((design.n_features, 0)), rows.hand_over, (R,)).product
        if self.centred:
            product[:-1] -= self.mean * product[-1]
        return product
