"""One eigendecomposition for all pairs (ρ, α)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads, ordered_map
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares.base import Breakdown, Solution
from admm_softmax.solvers.least_squares.cholesky import (
    CORRECTED_BELOW,
    SMALLEST_CONDITION,
    normal_matrix,
)

#: Parts of the rows in a product, whatever the number of threads.
PARTS = 8


@dataclass(frozen=True)
class Spectral:
    """Diagonalise G = X̃ᵀΩX̃ and LᵀL together; then no pair (ρ, α) needs a factorisation.

    With M = G + τ₀LᵀL = RᵀR (τ₀ balances the two parts; D scales M to a unit
    diagonal first) and the eigenvectors V and eigenvalues μ of R⁻ᵀ LᵀL R⁻¹, T = R⁻¹V has ::

        Tᵀ LᵀL T = diag(μ),    Tᵀ G T = I − τ₀ diag(μ)
        (ρ G + α LᵀL)⁻¹ = T diag(1 / (ρ (1 − τ₀μ) + α μ)) Tᵀ

    also where LᵀL or G is singular.
    """

    def prepare(self, problem: Problem) -> SpectralStep:
        """Decompose once for all copies of the problem with other α."""
        L = problem.penalty.quadratic.L
        basis = problem.prepared.spectral.get(lambda kept: kept.L is L, lambda: _decompose(problem))
        return SpectralStep(problem, basis)


class Basis(NamedTuple):
    """The eigenvectors T, and the L that they belong to."""

    L: Any
    T: Array
    #: The diagonals of TᵀGT and of TᵀLᵀLT.
    gram: Array
    penalty: Array


def _decompose(problem: Problem) -> Basis:
    quadratic = problem.penalty.quadratic
    gram, LtL = problem.gram(), quadratic.LtL
    strength = float(LtL.diagonal().sum())
    balance = float(np.trace(gram)) / strength if strength > 0 else 0.0
    M = normal_matrix(gram, 1.0, balance * LtL)
    diagonal = M.diagonal().copy()
    if not diagonal.min() > 0:
        raise Breakdown(f"column {int(diagonal.argmin())} is zero and is not penalised")
    scale = 1.0 / np.sqrt(diagonal)
    M *= scale
    M *= scale[:, None]
    with blas_threads(operations=10.0 * len(M) ** 3):
        try:
            R = cholesky(M, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError as error:
            raise Breakdown(f"X̃ᵀΩX̃ + {balance:.1e} LᵀL is singular") from error
        half = solve_triangular(R, (scale[:, None] * LtL.toarray()) * scale, trans="T")
        whole = solve_triangular(R, half.T, trans="T", overwrite_b=True)
        mu, V = eigh((whole + whole.T) / 2, driver="evd", overwrite_a=True, check_finite=False)
        T = solve_triangular(R, V, overwrite_b=True, check_finite=False)
    T *= scale[:, None]
    return Basis(quadratic.L, T, 1.0 - balance * mu, mu)


class SpectralStep:
    """The W-step by two products with the d × d matrix T."""

    name = "spectral"

    def __init__(self, problem: Problem, basis: Basis) -> None:
        self.problem, self.basis = problem, basis
        self.rho: float | None = None
        self.corrects = False

    def factor(self, rho: float) -> None:
        """Set the eigenvalues for this ρ; Breakdown if the matrix is singular to rounding."""
        self.rho = None
        strength = self.problem.penalty.quadratic.strength
        values = rho * self.basis.gram + strength * self.basis.penalty
        rcond = float(values.min() / np.abs(values).max())
        if rcond < SMALLEST_CONDITION:
            raise Breakdown(f"spectral: reciprocal condition {rcond:.1e} at rho={rho:g}")
        self.corrects = rcond < CORRECTED_BELOW
        self.inverse = 1.0 / values
        self.rho = rho

    def solve(self, M: Array, start: Array) -> Solution:
        """W = T diag(…)⁻¹ Tᵀ M."""
        return Solution(self.precondition(M), None)

    def precondition(self, R: Array) -> Array:
        """H⁻¹R by the same products."""
        T = self.basis.T
        return _multiply(T, self.inverse[:, None] * _multiply(T.T, R))


def _multiply(A: Array, B: Array) -> Array:
    """A B, in our threads: BLAS's own keep spinning afterwards and slow down what follows."""
    cuts = np.linspace(0, len(A), PARTS + 1).astype(int)
    parts = [slice(int(i), int(j)) for i, j in pairwise(cuts)]
    operations = float(A.size) * B.shape[1]
    return np.concatenate(ordered_map(lambda rows: A[rows] @ B, parts, operations=operations))
