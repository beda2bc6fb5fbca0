"""Newton's method with the whole Hessian, for problems that fit in a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.kernels import rows
from admm_softmax.kernels.softmax import hits, softmax
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Chainable, Iterate, measured_at, require_smooth, start_at
from admm_softmax.solvers.line_search import Plateau, search
from admm_softmax.solvers.newton_system import CurvedPoint, HessianBesideRows, NewtonSystem
from admm_softmax.solvers.state import State


@dataclass(frozen=True)
class Newton(Chainable):
    """W⁺ = W − t (∇²F)⁻¹ ∇F, with a dK × dK Hessian, factorised anew at every step.

    With A = [p₁X̃, …, p_K X̃], n × dK, whose row i holds p_ik x̃ᵢ, and Ω = diag(w) ::

        ∇²F = diag_k(X̃ᵀ diag(w p_k) X̃) − AᵀΩA + α I ⊗ LᵀL

    A step costs n (dK)² + (dK)³/3 operations, and there are about six: for small problems
    that is less than the calls of many passes. All rows are copied into memory once (`take`);
    where rows stay on their device, the Hessian's blocks are Gram matrices that are formed there.

    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import Newton, Problem, run
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = Problem.of(X, y, alpha=1e-2)
    >>> result = run(problem, Newton(), tol=1e-8)
    >>> result.status.value, result.n_iter < 10
    ('converged', True)
    """

    def iterates(
        self, problem: Problem, W0: Array | None, state: State | None = None
    ) -> Iterator[Iterate]:
        """Yield the start, then one iterate per step."""
        require_smooth(self, problem)
        small = HessianBesideRows(problem) if problem.design.rows_stay else _Dense(problem)
        point = small.at(start_at(problem, W0 if state is None else state["W"]))
        rounding = problem.design.rounding
        plateau = Plateau(rounding)
        if state is None:
            yield measured_at(point, state={"W": point.W, "plateau": plateau.state}, step=0.0)
        else:
            plateau.resume(state["plateau"], point, small.at)
        while True:
            direction = -small.solve(point)
            new, length = search(small.at, point, direction, rule="armijo", rounding=rounding)
            point = point if new is None else new
            stalled = plateau(point, new is not None)
            yield measured_at(
                plateau.best if stalled else point,
                stalled=stalled,
                state={"W": point.W, "plateau": plateau.state},
                step=length,
            )


class _Dense(NewtonSystem):
    """The problem with its rows as one dense matrix."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        design = problem.design
        d, K = problem.shape
        everything = np.arange(design.n_rows)
        small, (labels_here, weights_here) = design.take(
            everything, problem.labels, problem.weights
        )
        # A pass like any other, whose scores are the rows themselves.
        self.X: Array = np.asarray(
            small.gather(small.fold(np.eye(d), rows.predict).new_rows), dtype=np.float64
        )
        if not np.isfinite(np.vdot(self.X, self.X)):
            raise ValueError(
                "X is too large: the squares of its entries overflow; scale the features"
            )
        self.w: Array = small.gather(weights_here)
        labels = small.gather(labels_here)
        self.C = np.eye(K)[labels] if labels.ndim == 1 else labels
        self.labels = labels
        self.count: Callable[[], None] = lambda: design.count_read(1.0)

    def at(self, W: Array) -> CurvedPoint:
        """As `Problem.at`, without its calls."""
        penalty, w = self.problem.penalty, self.w
        self.count()
        scores = self.X @ W
        P, lse = softmax(scores)
        loss = float(w @ lse - w @ (self.C * scores).sum(axis=1))
        loss_gradient = self.X.T @ ((P - self.C) * w[:, None])
        loss_gradient -= loss_gradient.mean(axis=1, keepdims=True)  # zero but for rounding
        gradient = loss_gradient + penalty.gradient(W)
        return CurvedPoint(
            W=W,
            objective=loss + penalty.value(W),
            loss=loss,
            accuracy=float(w @ hits(scores, self.labels)),
            loss_gradient=loss_gradient,
            gradient=gradient,
            optimality=gradient,
            curvature=float(w @ (1.0 - (P * P).sum(axis=1))) / P.shape[1],
            P=P,
        )

    def hessian(self, P: Array) -> Array:
        """∇² of the loss, by one product of n × dK matrices."""
        X = self.X
        (n, d), K = X.shape, P.shape[1]
        A = (P[:, :, None] * X[:, None, :]).reshape(n, K * d)
        weighted = A * self.w[:, None]
        H: Array = -(A.T @ weighted)
        blocks = X.T @ weighted
        for k in range(K):
            block = slice(k * d, (k + 1) * d)
            H[block, block] += blocks[:, block]
        return H

    def product_of_two(self, P: Array) -> Array:
        """X̃ᵀ diag(w p₀ p₁) X̃."""
        of_rows = self.w * P[:, 0] * P[:, 1]
        return np.asarray(self.X.T @ (self.X * of_rows[:, None]))
