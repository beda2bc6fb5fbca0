"""Which W-step strategy to use, and what to do when one breaks down."""

from __future__ import annotations

import logging
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem
from admm_softmax.solvers.costs import LARGEST_FACTOR, TYPICAL_ITERATIONS
from admm_softmax.solvers.least_squares.base import (
    Breakdown,
    Solution,
    StepOfAnother,
    Strategy,
    WStep,
)
from admm_softmax.solvers.least_squares.cholesky import Cholesky, Precision
from admm_softmax.solvers.least_squares.pcg import PCG
from admm_softmax.solvers.least_squares.qr import QR
from admm_softmax.solvers.least_squares.woodbury import Woodbury

logger = logging.getLogger("admm_softmax")


@dataclass(frozen=True)
class Auto:
    """Cholesky or, where a count of operations says so, Woodbury; PCG if d is too large.

    When a factorisation breaks down, the next strategy that can take the problem is used, with
    a line in the log. `seed` is PCG's; `precision` is Cholesky's, and where single precision is
    asked for and breaks down, double is tried next.
    """

    seed: int = 0
    precision: Precision = "auto"

    def prepare(self, problem: Problem) -> AutoStep:
        """Choose, and read X as the choice needs."""
        return AutoStep(problem, self.preferences(problem))

    def preferences(self, problem: Problem) -> list[Strategy]:
        """The strategies to try, in order.

        d × d costs n d² + d³/3 to set up and 2 d² K per iteration; n × n costs d n² + n³/3 to
        set up and 2 n² K + 4 n d K (X V, and Xᵀ times what comes of it) per iteration, the latter
        twice where X is not in memory and these two products read it from elsewhere. Thin
        products count as others do: reads of the factor slow solves down as much as passes are
        slower than a Gram matrix. Whole runs of 100 iterations by n × n over those by d × d take,
        on an Emerald Rapids, with five classes 1.16 (500 × 700), 0.97 (500 × 1,000), 1.14
        (1,000 × 1,300) and 0.88 (1,000 × 2,000), with ten 1.36 (2,000 × 2,600) and 0.74
        (2,000 × 4,000), with twenty 0.93 (1,000 × 2,000). Held to AVX2 the first three and the last
        are 1.23, 0.97, 1.14 and 0.53.
        """
        (d, K), n = problem.shape, problem.design.n_rows
        by_columns = n * d**2 + d**3 / 3 + TYPICAL_ITERATIONS * 2 * d**2 * K
        products = (4 if problem.design.is_in_memory else 8) * n * d
        by_rows = d * n**2 + n**3 / 3 + TYPICAL_ITERATIONS * (2 * n**2 + products) * K
        order: list[Strategy] = []
        if Woodbury.may_apply(problem) and by_rows < by_columns and n <= LARGEST_FACTOR:
            order.append(Woodbury())
        if d <= LARGEST_FACTOR:
            again = [Cholesky("double")] if self.precision == "single" else []
            return [*order, Cholesky(self.precision), *again, QR()]
        return [*order, PCG(seed=self.seed)]

    def forms_gram(self, problem: Problem) -> bool:
        """Whether its first choice is to factorise the d × d matrix."""
        return self.preferences(problem)[0] == Cholesky(self.precision)

    def gram_of(self, problem: Problem) -> Any:
        """The Gram matrix of all rows, in double unless single precision is asked for."""
        return problem.gram(np.float32 if self.precision == "single" else np.float64)

    def has_gram_of(self, problem: Problem) -> bool:
        """Whether a W-step has formed it."""
        return problem.prepared.has_gram


@dataclass(frozen=True)
class FirstOf:
    """The first of some strategies that can take the problem."""

    strategies: tuple[Strategy, ...]

    def prepare(self, problem: Problem) -> AutoStep:
        """Try them in order."""
        return AutoStep(problem, list(self.strategies))


STRATEGIES: dict[str, Strategy] = {
    "auto": Auto(),
    "cholesky": Cholesky(),
    "qr": QR(),
    "pcg": PCG(),
    "woodbury": Woodbury(),
}


def as_strategy(strategy: str | Strategy) -> Strategy:
    """Look a strategy up by name; a strategy object passes through."""
    if not isinstance(strategy, str):
        if isinstance(strategy, type) or not hasattr(strategy, "prepare"):
            raise TypeError(f"least_squares must be a name or a strategy, got {strategy!r}")
        return strategy
    if strategy not in STRATEGIES:
        raise ValueError(f"least_squares must be one of {sorted(STRATEGIES)}, got {strategy!r}")
    return STRATEGIES[strategy]


def shared_step(
    problem: Problem, strategy: Strategy | None = None, default: Strategy | None = None
) -> WStep:
    """The W-step of a problem, prepared once and handed from solver to solver.

    The run keeps the last one prepared, with its factorisation. Without a strategy the kept
    one is returned, whatever its strategy, or else the default is prepared.
    """
    kept = problem.workspace.w_step
    if kept is not None and strategy in (None, kept[0]):
        step: WStep = kept[1]
        return step
    strategy = strategy or default or Auto()
    problem.workspace.w_step = None  # free its factor first: two may not fit into memory
    step = strategy.prepare(problem)
    problem.workspace.w_step = strategy, step
    return step


class AutoStep(StepOfAnother):
    """The first strategy that works, and those to try after it."""

    def __init__(self, problem: Problem, order: list[Strategy]) -> None:
        self.problem = problem
        self.order = order
        self.step = self._next()

    @property
    def rho(self) -> float | None:
        """The ρ of the current factorisation, if any."""
        return self.step.rho

    def factor(self, rho: float) -> None:
        """Factorise with the current strategy, or move on to the next."""
        while True:
            try:
                return self.step.factor(rho)
            except Breakdown as reason:
                if not self.order:
                    raise
                following = self.order[0]
                level = logging.INFO if following == Cholesky("double") else logging.WARNING
                logger.log(
                    level, "%s; the W-step falls back to %s", reason, type(following).__name__
                )
                self.step = self._next()

    def solve(self, M: Array, start: Array) -> Solution:
        """Solve with the current strategy."""
        return self.step.solve(M, start)

    def precondition(self, R: Array) -> Array:
        """Precondition with the current strategy."""
        return self.step.precondition(R)

    def view(self, problem: Problem) -> AutoStep | None:
        """The same factor for another run; None where the step in use has no view."""
        view = getattr(self.step, "view", None)
        if view is None:
            return None
        other = copy(self)
        other.problem, other.order, other.step = problem, list(self.order), view(problem)
        return other

    def _next(self) -> WStep:
        while True:
            strategy = self.order.pop(0)
            try:
                return strategy.prepare(self.problem)
            except Breakdown as reason:
                if not self.order:
                    raise
                logger.info("%s; trying %s", reason, type(self.order[0]).__name__)
