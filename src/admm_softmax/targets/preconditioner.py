"""One eigendecomposition that preconditions all targets, each with its own curvature and α."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads
from admm_softmax.problem import Problem
from admm_softmax.solvers.costs import LARGEST_EIGENPROBLEM
from admm_softmax.solvers.least_squares.base import Breakdown
from admm_softmax.solvers.least_squares.spectral import Spectral

#: Eigenvalues below this share of the largest are raised to it.
SMALLEST_SHARE = 1e-9


class SharedInverse:
    """(κₜ G + αₜ LᵀL)⁻¹ rₜ for many columns rₜ at once, G = X̃ᵀΩX̃ being shared.

    With TᵀGT and TᵀLᵀLT diagonal (`Spectral`) it is two products with T and a division. Where
    G + LᵀL is singular, or d is more than `LARGEST_EIGENPROBLEM`, the diagonals of G and LᵀL
    take the place of the matrices.
    """

    def __init__(self, problem: Problem) -> None:
        self.T: Array | None = None
        try:
            if problem.shape[0] > LARGEST_EIGENPROBLEM:
                raise Breakdown("too many columns for an eigendecomposition")
            basis = Spectral().prepare(problem).basis
            self.T, self.gram, self.penalty = basis.T, basis.gram, basis.penalty
        except Breakdown:
            self.gram = problem.column_squares()
            self.penalty = np.asarray(problem.penalty.quadratic.LtL.diagonal())

    def __call__(self, R: Array, curvature: Array, strength: Array) -> Array:
        """H⁻¹R for R of shape (d, columns), with a κ and an α for each column."""
        values = np.maximum(self.gram, 0.0)[:, None] * curvature
        values += np.maximum(self.penalty, 0.0)[:, None] * strength
        values = np.maximum(values, SMALLEST_SHARE * values.max(axis=0))
        values[values <= 0] = 1.0
        if self.T is None:
            return np.asarray(R / values)
        T: Any = self.T
        with blas_threads(operations=4.0 * len(T) * R.size):
            inner = T.T @ R
            inner /= values
            return np.asarray(T @ inner)
