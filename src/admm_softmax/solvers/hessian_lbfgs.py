"""The paper's ℓ-BFGS: pairs around the current Hessian instead of a multiple of the identity."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.problem import Linearisation, Problem
from admm_softmax.solvers.base import Chainable, Iterate, measured_at, start_at
from admm_softmax.solvers.lbfgs import Pair, remember, two_loop
from admm_softmax.solvers.line_search import Plateau, search
from admm_softmax.solvers.newton_cg import conjugate_gradients
from admm_softmax.solvers.preconditioner import Plain


@dataclass(frozen=True)
class HessianLBFGS(Chainable):
    """W⁺ = W − t B⁻¹∇F(W), the pairs of B⁻¹ correcting the inverse of ∇²F(W) itself.

    memory : pairs kept; the paper's 10.
    cg_max_iter, cg_tol : CG, which applies that inverse, stops at so many steps or at this
        relative residual; the paper's 20 and 1e-2.

    It is here to compare with. `LBFGS`, whose inner inverse costs no reads of X or one
    factorisation, gets further with the same time.
    """

    memory: int = 10
    cg_max_iter: int = 20
    cg_tol: float = 1e-2

    def __post_init__(self) -> None:
        check_count("memory", self.memory, "at least 1")
        check_count("cg_max_iter", self.cg_max_iter, "at least 1")
        if not 0 < self.cg_tol < 1:
            raise ValueError(f"cg_tol must lie between 0 and 1, got {self.cg_tol}")

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield the start, then one iterate a line search."""
        before = problem.design.reads
        point = problem.linearise(start_at(problem, W0))
        yield measured_at(point, problem.design.reads - before, step=0.0, cg_steps=0.0)
        pairs: deque[Pair] = deque(maxlen=self.memory)
        plateau = Plateau(problem.design.dtype.itemsize)
        while True:
            new, length, residuals = self._step(problem, point, pairs)
            if new is None and pairs:
                # An inexact inverse and old pairs disagree, or rounding has spoilt them.
                pairs.clear()
                new, length, more = self._step(problem, point, pairs)
                residuals += more
            if new is not None:
                remember(pairs, point, new)
                point = new
            stalled = plateau(point, new is not None)
            yield measured_at(
                plateau.best if stalled else point,
                problem.design.reads - before,
                stalled=stalled,
                inner_residuals=residuals,
                step=length,
                cg_steps=float(len(residuals)),
            )

    def _step(
        self, problem: Problem, point: Linearisation, pairs: deque[Pair]
    ) -> tuple[Linearisation | None, float, tuple[float, ...]]:
        """The next point, or None where no step goes down; its length; CG's residuals."""
        direction, residuals = self._direction(point, pairs)
        if not float(np.vdot(direction, point.gradient)) < 0:
            return None, 0.0, residuals
        itemsize = problem.design.dtype.itemsize
        new, length = search(problem.linearise, point, direction, rule="armijo", itemsize=itemsize)
        return new, length, residuals

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

        return -two_loop(point.gradient, pairs, inner), tuple(residuals)
