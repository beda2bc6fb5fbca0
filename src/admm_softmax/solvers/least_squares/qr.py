"""Thin QR of the stacked least-squares matrix, for settings where Cholesky breaks down."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, qr, solve_triangular

from admm_softmax._arrays import EPS, Array
from admm_softmax._parallel import blas_threads
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares.base import Solution


@dataclass(frozen=True)
class QR:
    """Factorise [√ρ √Ω X̃; √α L] = Q R without forming X̃ᵀΩX̃, whose condition is the square.

    Q is not kept: it would be as large as X. The W-step solves RᵀR W = M and corrects W
    once by residual rows (corrected semi-normal equations; Björck, *Linear Algebra and
    its Applications* 88, 1987), which is as accurate as using Q.
    """

    def prepare(self, problem: Problem) -> QRStep:
        """Reduce √Ω X̃ to its triangle, which is valid for every ρ and α."""
        return QRStep(problem)


class QRStep:
    """A D = Q R Πᵀ with unit columns of A D; Π only where R is singular to rounding."""

    name = "qr"
    corrects = True

    def __init__(self, problem: Problem) -> None:
        self.triangle = problem.design.triangle(problem.weights)
        self.quadratic = problem.penalty.quadratic
        self.rho: float | None = None

    def factor(self, rho: float) -> None:
        """Factorise for this ρ. Never breaks down: directions lost to rounding get W = 0."""
        root = np.sqrt(self.quadratic.strength)
        A = np.concatenate([np.sqrt(rho) * self.triangle, root * self.quadratic.L.toarray()])
        norms = np.linalg.norm(A, axis=0)
        self.scale = 1.0 / np.where(norms > 0, norms, 1.0)
        A *= self.scale
        d = A.shape[1]
        with blas_threads(operations=2.0 * d**2 * len(A)):
            R = qr(A, mode="r")[0][:d]
            self.order = np.arange(d)
            self.rank = d
            if len(R) < d or _reciprocal_condition(R) < EPS * d:
                R, self.order = qr(R, mode="r", pivoting=True)
                sizes = np.abs(R.diagonal())
                self.rank = int((sizes > EPS * d * sizes[:1].max(initial=0.0)).sum())
        self.R, self.rho = R[: self.rank, : self.rank], rho

    def solve(self, M: Array, start: Array) -> Solution:
        """W = D Π R⁻¹ R⁻ᵀ Πᵀ D M on the numerical range of A, 0 off it."""
        kept = self.order[: self.rank]
        scale = self.scale[kept][:, None]
        W = np.zeros_like(M)
        with blas_threads(operations=2.0 * self.rank**2 * M.shape[1]):
            half = solve_triangular(self.R, M[kept] * scale, trans=1, check_finite=False)
            W[kept] = scale * solve_triangular(self.R, half, check_finite=False)
        return Solution(W, None)

    def view(self, problem: Problem) -> QRStep:
        """The same factor for another run."""
        return copy(self)

    def precondition(self, R: Array) -> Array:
        """H⁻¹R, without a correction."""
        return self.solve(R, R).W


def _reciprocal_condition(R: Array) -> float:
    rcond, info = lapack.dtrcon(R)
    return float(rcond) if info == 0 and np.isfinite(rcond) else 0.0
