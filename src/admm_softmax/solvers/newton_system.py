"""The linear system of a step of Newton's method, and its Hessian where rows stay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from admm_softmax._arrays import Array
from admm_softmax.kernels import rows
from admm_softmax.problem import Point, Problem

#: What is added to the Hessian's diagonal, relative to its mean: directions without curvature
#: (a shift of all classes' intercepts) have no gradient either, and stay where they are.
SINGULAR_SHIFT = 1e-10
#: Where even that is not positive definite to rounding, it grows by this factor.
GROWTH = 1e3


@dataclass(frozen=True)
class CurvedPoint(Point):
    """A point, with the probabilities that its Hessian is made of: K × n, or a handle."""

    P: Any


class NewtonSystem(ABC):
    """(∇²F) D = ∇F, the Hessian in full: dK × dK, or d × d for two classes."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        quadratic = problem.penalty.quadratic
        self.penalty: Array = quadratic.strength * (
            quadratic.LtL.toarray() if quadratic.diagonal is None else np.diag(quadratic.diagonal)
        )
        self.free = ~self.penalty.any(axis=1)

    @abstractmethod
    def at(self, W: Array) -> CurvedPoint:
        """F and its gradient at W, with the probabilities."""

    @abstractmethod
    def hessian(self, P: Any) -> Array:
        """The Hessian of the loss, dK × dK: block (k, l) is X̃ᵀ diag(w p_k (δ_kl − p_l)) X̃."""

    @abstractmethod
    def product_of_two(self, P: Any) -> Array:
        """X̃ᵀ diag(w p₀ p₁) X̃."""

    def solve(self, point: CurvedPoint) -> Array:
        """The Hessian's inverse times the gradient."""
        step = self._solve_two(point) if point.W.shape[1] == 2 else self._solve_many(point)
        # What all classes share has no curvature where there is no penalty: leave it.
        free = step[self.free]
        step[self.free] = free - np.add.reduce(free, axis=1, keepdims=True) / free.shape[1]
        return step

    def _solve_many(self, point: CurvedPoint) -> Array:
        d, K = point.W.shape
        H = self.hessian(point.P)
        for k in range(K):
            block = slice(k * d, (k + 1) * d)
            H[block, block] += self.penalty
        step = positive_solution(H, point.gradient.T.reshape(-1))
        return np.ascontiguousarray(step.reshape(K, d).T)

    def _solve_two(self, point: CurvedPoint) -> Array:
        """For two classes sum and difference of the columns decouple, and the loss has no sum."""
        G = point.gradient
        H = 2.0 * self.product_of_two(point.P) + self.penalty
        half_difference = positive_solution(H, (G[:, 0] - G[:, 1]) / 2)
        half_sum = (G[:, 0] + G[:, 1]) / 2
        if half_sum.any():
            half_sum = positive_solution(self.penalty.copy(), half_sum)
        return np.stack([half_sum + half_difference, half_sum - half_difference], axis=1)


class HessianBesideRows(NewtonSystem):
    """The system of a design whose rows stay on their device.

    The blocks of the Hessian are Gram matrices with weights w p_k p_l, formed where the rows are;
    d × d numbers come here for each of the K (K + 1) / 2 pairs, and for each class.
    """

    def at(self, W: Array) -> CurvedPoint:
        """By one pass, whose probabilities stay beside the rows."""
        problem = self.problem
        fold = problem.design.fold(W, rows.linearise, (problem.labels, problem.weights))
        fold.product[...] -= fold.product.mean(axis=1, keepdims=True)  # zero but for rounding
        return CurvedPoint(**vars(problem.point(W, fold)), P=fold.new_rows)

    def hessian(self, P: Any) -> Array:
        """Block by block; those below the diagonal are those above it."""
        d, K = self.problem.shape
        H = np.zeros((K * d, K * d))
        for k in range(K):
            of_k = slice(k * d, (k + 1) * d)
            H[of_k, of_k] += self._weighted(P, k, None)
            for j in range(k, K):
                of_j = slice(j * d, (j + 1) * d)
                block = self._weighted(P, k, j)
                H[of_k, of_j] -= block
                if j > k:
                    H[of_j, of_k] -= block
        return H

    def product_of_two(self, P: Any) -> Array:
        """X̃ᵀ diag(w p₀ p₁) X̃."""
        return self._weighted(P, 0, 1)

    def _weighted(self, P: Any, k: int, other: int | None) -> Array:
        """X̃ᵀ diag(w p_k) X̃, or with p_k times the p of another class."""
        design = self.problem.design

        def weigh(w: Any, p: Any) -> Any:
            return w * p[:, k] if other is None else w * p[:, k] * p[:, other]

        found = np.asarray(design.gram(design.map_rows(weigh, self.problem.weights, P)))
        if not np.isfinite(found).all():
            raise ValueError(
                "X is too large: the squares of its entries overflow; scale the features"
            )
        return found


def positive_solution(H: Array, right: Array) -> Array:
    """H⁻¹ times a vector, H made positive definite where it is not; it is overwritten."""
    diagonal = H.reshape(-1)[:: len(H) + 1]
    ridge = SINGULAR_SHIFT * max(float(diagonal.sum()) / len(H), 1e-300)
    while True:
        diagonal += ridge
        _, solution, info = lapack.dposv(H, right)
        if info == 0 and np.isfinite(solution).all():
            return np.asarray(solution)
        ridge *= GROWTH
