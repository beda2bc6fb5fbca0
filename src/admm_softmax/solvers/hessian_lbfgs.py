"""The paper's ℓ-BFGS: pairs around the current Hessian instead of a multiple of the identity."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax._vectors import Vectors
from admm_softmax.problem import Linearisation, Problem
from admm_softmax.solvers.base import (
    Chainable,
    Iterate,
    measured_at,
    require_smooth,
    start_at,
)
from admm_softmax.solvers.lbfgs import Memory, Pair, Step, descend, two_loop
from admm_softmax.solvers.line_search import search
from admm_softmax.solvers.newton_cg import conjugate_gradients
from admm_softmax.solvers.preconditioner import Plain
from admm_softmax.solvers.state import State


@dataclass(frozen=True)
class HessianLBFGS(Chainable):
    """W⁺ = W − t B⁻¹∇F(W), the pairs of B⁻¹ correcting the inverse of ∇²F(W) itself.

    memory : pairs kept; the paper's 10.
    cg_max_iter, cg_tol : CG, which applies that inverse, stops after this many steps or at this
        relative residual; the paper's 20 and 1e-2.

    It is here for comparison with the paper. `LBFGS`, whose inner inverse costs no reads of X
    or one factorisation, gets further in the same time.

    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import HessianLBFGS, Problem, run
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = Problem.of(X, y, alpha=1e-2)
    >>> run(problem, HessianLBFGS(), tol=1e-6).status.value
    'converged'
    """

    memory: int = 10
    cg_max_iter: int = 20
    cg_tol: float = 1e-2

    def __post_init__(self) -> None:
        check_count("memory", self.memory, "at least 1")
        check_count("cg_max_iter", self.cg_max_iter, "at least 1")
        if not 0 < self.cg_tol < 1:
            raise ValueError(f"cg_tol must lie between 0 and 1, got {self.cg_tol}")

    def iterates(
        self, problem: Problem, W0: Array | None, state: State | None = None
    ) -> Iterator[Iterate]:
        """Yield the start, then one iterate per line search."""
        require_smooth(self, problem)
        rounding = problem.design.rounding
        memory = Memory(self.memory, rounding, Vectors(problem.shape, np.float64))
        start = problem.linearise(start_at(problem, W0 if state is None else state["W"]))
        if state is None:
            yield measured_at(start, state=memory.state(start), step=0.0, cg_steps=0.0)
        else:
            memory.resume(state, start, problem.at)

        def step(point: Linearisation, pairs: deque[Pair]) -> Step[Linearisation]:
            direction, residuals = self._direction(point, pairs)
            if not float(np.vdot(direction, point.gradient)) < 0:
                return Step(None, 0.0, residuals)
            new, length = search(
                problem.linearise, point, direction, rule="armijo", rounding=rounding
            )
            return Step(new, length, residuals)

        for iterate in descend(start, step, memory):
            cg_steps = float(len(iterate.inner_residuals))
            yield replace(iterate, details={**iterate.details, "cg_steps": cg_steps})

    def _direction(
        self, point: Linearisation, pairs: deque[Pair]
    ) -> tuple[Array, tuple[float, ...]]:
        """−B⁻¹∇F, and CG's relative residuals."""
        residuals: list[float] = []

        def inner(q: Array) -> Array:
            solution = conjugate_gradients(
                point.hessian_product, q, Plain(), self.cg_max_iter, self.cg_tol
            )
            residuals.extend(solution.residuals)
            return solution.direction

        direction = two_loop(point.gradient, pairs, inner, np.empty(point.gradient.shape))
        return direction, tuple(residuals)
