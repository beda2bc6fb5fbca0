"""The W-step in n × n form, for many more features than rows."""

from __future__ import annotations

from copy import copy
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
    def may_apply(problem: Problem) -> bool:
        """Whether rows can be multiplied with each other, and there is a penalty at all."""
        return problem.design.can_form_row_gram and problem.penalty.quadratic.strength > 0

    @staticmethod
    def applies(problem: Problem) -> bool:
        """Whether, besides, the penalty is nonsingular on the features, as the formula needs."""
        d = problem.design.n_features - problem.design.intercept
        if not Woodbury.may_apply(problem):
            return False
        if (diagonal := problem.penalty.quadratic.diagonal) is not None:
            return bool(diagonal[:d].min() > 0)
        try:
            sparse_inverse(problem.penalty.quadratic.LtL[:d, :d])
        except Breakdown:
            return False
        return True

    def prepare(self, problem: Problem) -> WoodburyStep:
        """Form 𝒦 with one read of X."""
        return WoodburyStep(problem)


class WoodburyStep:
    """Two reads of X per solve, and no d × d matrix."""

    name = "woodbury"

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rho: float | None = None
        self.corrects = False
        design = problem.design
        self.d = design.n_features - design.intercept
        if not design.can_form_row_gram:
            raise Breakdown(f"n × n form: a {type(design).__name__} has no products between rows")
        penalty = problem.penalty.quadratic.matrix
        self.intercept_penalty = float(penalty[self.d, self.d]) if design.intercept else 0.0
        if design.intercept and penalty[self.d, : self.d].count_nonzero():
            raise Breakdown("n × n form: the operator couples the intercept to the features")
        self.invert = sparse_inverse(penalty[: self.d, : self.d])
        weights = design.gather(problem.weights)
        self.root = np.sqrt(weights)
        inner = design.row_products(self.invert)
        if design.intercept:
            if self.intercept_penalty > 0:
                inner += 1.0 / self.intercept_penalty
            else:
                self.mean = design.transpose_product(weights[:, None])[: self.d]
                inner -= weights @ inner
                inner -= (inner @ weights)[:, None]
        #: √Ω𝒦√Ω, n × n.
        self.row_gram = self.root[:, None] * inner * self.root

    @property
    def centred(self) -> bool:
        """Whether an unpenalised intercept was eliminated by centring."""
        return self.problem.design.intercept and self.intercept_penalty == 0

    def factor(self, rho: float) -> None:
        """Factorise I/ρ + √Ω𝒦√Ω; Breakdown where cancellation would leave too few digits."""
        ratio = rho * float(np.trace(self.row_gram))
        if ratio > LARGEST_RATIO:
            raise Breakdown(f"n × n form: ρ‖X P⁻¹ Xᵀ‖ = {ratio:.1e} at rho={rho:g}")
        A = np.array(self.row_gram, order="F")
        A[np.diag_indices_from(A)] += 1.0 / rho
        with blas_threads(operations=len(A) ** 3 / 3):
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

    def view(self, problem: Problem) -> WoodburyStep:
        """The same factor for another run, which reads X through its own design."""
        other = copy(self)
        other.problem = problem
        return other

    def precondition(self, R: Array) -> Array:
        """H⁻¹R."""
        return self.solve(R, R).W

    def _apply(self, M: Array) -> Array:
        """The formula on the features; products with centred X where there is a mean."""
        V = self.invert(M)
        return V - self.invert(self._transposed(self._inner(self._scores(V)))[: self.d])

    def _penalised(self, M: Array) -> tuple[Array, Array]:
        """The formula with the penalised constant column as one more feature."""
        V, last = self.invert(M[:-1]), M[-1] / self.intercept_penalty
        back = self._transposed(self._inner(self._scores(V, last)))
        return V - self.invert(back[:-1]), last - back[-1] / self.intercept_penalty

    def _inner(self, scores: Array) -> Array:
        root = self.root[:, None]
        with blas_threads(operations=2.0 * len(scores) * scores.size):
            return np.asarray(root * cho_solve((self.R, False), root * scores, check_finite=False))

    def _scores(self, V: Array, last: Array | None = None) -> Array:
        if self.problem.design.intercept:
            row = -(self.mean[:, 0] @ V) if last is None else last
            V = np.concatenate([V, row[None]])
        design = self.problem.design
        scores: Array = design.gather(design.fold(V, rows.predict).new_rows)
        return scores

    def _transposed(self, R: Array) -> Array:
        product = self.problem.design.transpose_product(R)
        if self.centred:
            product[:-1] -= self.mean * product[-1]
        return product
