"""Preconditioned conjugate gradients, for d too large to factor."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular, svd

from admm_softmax._arrays import EPS, Array
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares.base import Solution, sparse_inverse

#: A sketch may miss eigenvalues up to this fraction of the largest.
UNKNOWN = 1e-8


@dataclass(frozen=True)
class PCG:
    """Solve the W-step's K systems side by side: every CG step is one read of X for all.

    preconditioner : "jacobi" is the diagonal of the Gram matrix with the whole penalty,
        ρ diag(X̃ᵀΩX̃) + α LᵀL, by a sparse factorisation. "nystrom" adds the `rank` leading
        eigenvectors of the scaled Gram matrix, found from one read of X (Frangella,
        Tropp & Udell, *SIAM J. Matrix Anal.* 44, 2023). Either reads X once: another ρ
        only rescales it.
    tol : each system's residual is reduced by this factor below that of its warm start.
        Loose tolerances save CG steps but cost iterations, and rarely pay.
    max_iter : the most CG steps in one W-step.
    seed : of the random test matrix.
    """

    preconditioner: Literal["nystrom", "jacobi"] = "nystrom"
    rank: int = 100
    tol: float = 1e-8
    max_iter: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if self.preconditioner not in ("nystrom", "jacobi"):
            raise ValueError(
                f"preconditioner must be 'nystrom' or 'jacobi', got {self.preconditioner!r}"
            )
        if not 0 < self.tol < 1:
            raise ValueError(f"tol of PCG must lie between 0 and 1, got {self.tol}")
        for name in ("rank", "max_iter"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} of PCG must be at least 1, got {getattr(self, name)}")

    def prepare(self, problem: Problem) -> PCGStep:
        """Read X once for the diagonal and, with Nyström, once for the sketch."""
        return PCGStep(problem, self)


class PCGStep:
    """H V = ρ X̃ᵀΩX̃ V + α LᵀL V, applied and never formed."""

    name = "pcg"
    corrects = False

    def __init__(self, problem: Problem, settings: PCG) -> None:
        self.problem, self.settings = problem, settings
        self.rho: float | None = None
        squares = problem.column_squares()
        self.squares = np.where(squares > 0, squares, EPS * max(1.0, squares.max()))
        self.scale = 1.0 / np.sqrt(self.squares)
        self.vectors, self.values = np.zeros((len(squares), 0)), np.zeros(0)
        if settings.preconditioner == "nystrom":
            self.vectors, self.values = self._sketch()

    def factor(self, rho: float) -> None:
        """Rescale the preconditioner for this ρ: Δ + ρ E⁻¹U (Λ − λ_r) UᵀE⁻¹.

        The Gram matrix scaled by E = diag(G)^(−1/2) is ≈ U(Λ − λ_r)Uᵀ + λ_r I, or I without
        a sketch; so Δ = ρ λ_r diag(G) + α LᵀL, a sparse matrix.
        """
        # Where the sketch has all of the spectrum, λ_r ≈ 0 up to its error. The eigenvalues that
        # it missed are unknown, and must not be taken for zero.
        rest = (
            max(float(self.values[-1]), UNKNOWN * float(self.values[0]), EPS)
            if len(self.values)
            else 1.0
        )
        penalty = self.problem.penalty.quadratic.matrix
        self.delta_inverse = sparse_inverse(sp.diags_array(rho * rest * self.squares) + penalty)
        self.rho = rho
        kept = self.values - rest > EPS * self.values[:1].max(initial=0.0)
        self.U = self.vectors[:, kept] / self.scale[:, None]
        self.delta_inverse_U = self.delta_inverse(self.U)
        inner = self.U.T @ self.delta_inverse_U
        inner[np.diag_indices_from(inner)] += 1.0 / (rho * (self.values[kept] - rest))
        self.inner = cho_factor(inner) if kept.any() else None

    def solve(self, M: Array, start: Array) -> Solution:
        """K independent CG recursions that share their reads of X."""
        W = start.copy()
        residual = M - self._apply(W)
        goal = np.maximum(
            self.settings.tol * _norms(residual), 64 * EPS * np.maximum(_norms(M), EPS)
        )
        direction = np.zeros_like(W)
        energy_old = np.ones(W.shape[1])
        for _ in range(self.settings.max_iter):
            active = _norms(residual) > goal
            if not active.any():
                break
            preconditioned = self.precondition(residual)
            energy = np.einsum("ij,ij->j", residual, preconditioned)
            direction = preconditioned + direction * (energy / energy_old)
            image = self._apply(direction)
            curvature = np.einsum("ij,ij->j", direction, image)
            # A direction without curvature is rounding in a singular matrix: that system
            # keeps its W, and the residual tells what is missing.
            moves = active & (curvature > 0)
            if not moves.any():
                break
            step = np.where(moves, energy / np.where(moves, curvature, 1.0), 0.0)
            W += step * direction
            residual -= step * image
            energy_old = np.where(energy > 0, energy, 1.0)
        return Solution(W, residual)

    def _apply(self, V: Array) -> Array:
        assert self.rho is not None
        return self.rho * self.problem.gram_product(V) + self.problem.penalty.quadratic.product(V)

    def view(self, problem: Problem) -> PCGStep:
        """The same factor for another run, which reads X through its own design."""
        other = copy(self)
        other.problem = problem
        return other

    def precondition(self, R: Array) -> Array:
        """Apply Δ⁻¹, corrected by the sketch (Woodbury)."""
        V = self.delta_inverse(R)
        if self.inner is not None:
            V = V - self.delta_inverse_U @ cho_solve(self.inner, self.U.T @ V)
        return np.asarray(V)

    def _sketch(self) -> tuple[Array, Array]:
        """The leading eigenpairs of E G E, E = diag(G)^(−1/2), by a randomised Nyström sketch."""
        d, rank = len(self.scale), min(self.settings.rank, len(self.scale))
        scale = self.scale[:, None]
        test = np.linalg.qr(np.random.default_rng(self.settings.seed).standard_normal((d, rank)))[0]
        Y = scale * self.problem.gram_product(scale * test)
        shift = EPS * np.sqrt(d) * max(np.linalg.norm(Y), 1.0)
        Y += shift * test
        core = test.T @ Y
        B = solve_triangular(cholesky(0.5 * (core + core.T)), Y.T, trans=1).T
        U, sizes, _ = svd(B, full_matrices=False)
        return U, np.maximum(sizes**2 - shift, 0.0)


def _norms(columns: Array) -> Array:
    return np.asarray(np.linalg.norm(columns, axis=0))
