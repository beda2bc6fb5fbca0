"""A factor per class for fits side by side, and for those under neighbouring penalties."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem
from admm_softmax.solvers.class_factors import ByClass, FactorSet, Origin, SetMaker
from admm_softmax.solvers.least_squares import GramStrategy
from admm_softmax.solvers.preconditioner import Gram
from admm_softmax.solvers.scheduler import Scheduler

#: A factor per class serves penalties within this factor of the one that it was made for.
SETS_SPACING = 4.0
#: It may cost this share of the steps that the fits which it will serve probably take.
SERVED_SHARE = 0.5
#: And it is made at a start that comes from a penalty within this factor: further away other rows
#: are uncertain than at the end.
FARTHEST_START = 20.0


class SharedSets:
    """Sets of one factor per class for the fits of a path or of folds.

    Fits begin near their ends: predictions at their starts tell which rows are uncertain, and
    those of all folds tell nearly the same. All sets may cost a share of the steps so far, as in a
    single fit (`class_factors`), and steps of all fits count; and each a share of those that the
    fits which it serves probably take, as many as the last ones took.

    problem : with the rows of all fits
    strategy, seed : of the Gram preconditioner
    """

    def __init__(self, problem: Problem, strategy: GramStrategy, seed: int) -> None:
        self.problem = problem
        self.maker = SetMaker(strategy, seed)
        #: Steps of all fits so far, and of one of the last.
        self.steps, self.steps_each = 0, 0.0
        #: The penalty that was looked at before.
        self.before: float | None = None
        #: The penalty of the newest set, and what it is made from; made when a fit asks for it.
        self.alpha: float | None = None
        self.origin: Origin | None = None
        self._newest: FactorSet | None = None

    def count(self, steps: Sequence[int]) -> None:
        """After fits that took so many steps each."""
        self.steps += sum(steps)
        self.steps_each = sum(steps) / len(steps)

    def look_at(self, alphas: Sequence[float], starts: Sequence[Array | None]) -> None:
        """Before fits under these penalties: plan a set if no other suits, and it is paid."""
        alpha, before = float(np.median(alphas)), self.before
        self.before = alpha
        if self.alpha is not None and _within(SETS_SPACING, self.alpha, alpha):
            return
        self.alpha = self.origin = self._newest = None
        known = [start for start in starts if start is not None]
        if known and before is not None and _within(FARTHEST_START, before, alpha):
            served = len(starts) * _neighbours(before, alpha)
            self.origin = self.maker.buy(
                self.problem.with_alpha(alpha),
                np.mean(known, axis=0),
                self.steps,
                at_most=SERVED_SHARE * self.steps_each * served,
            )
        if self.origin is not None:
            self.alpha = alpha

    def newest(self) -> FactorSet | None:
        """The set for the penalty that was looked at last; None where one factor is in use.

        Made at the first call, so that fits that are taken from checkpoints cost nothing.
        """
        if self.origin is not None:
            assert self.alpha is not None
            self._newest = self.maker.make(self.problem.with_alpha(self.alpha), self.origin)
            self.origin = None
        return self._newest


def _within(factor: float, a: float, b: float) -> bool:
    return a <= factor * b and b <= factor * a


def _neighbours(before: float, alpha: float) -> int:
    """How many penalties a set made for α serves, if those that follow are as far apart."""
    if not 0.0 < alpha < before:
        return 1
    return 1 + int(math.log(SETS_SPACING) / math.log(before / alpha) + 1e-9)


class SharedClassFactors(ByClass):
    """One fit's use of a set: solved together with the other fits that wait for it."""

    def __init__(
        self, problem: Problem, shared: Gram, made: FactorSet, scheduler: Scheduler
    ) -> None:
        super().__init__(problem, shared, made)
        self.scheduler = scheduler

    @property
    def curvature(self) -> float:
        """κ of `shared`, which a checkpoint keeps: the set is made again from the starts."""
        return self.shared.curvature

    def _solve(self, factors: FactorSet, B: Array) -> Array:
        answer: Array = self.scheduler.ask(factors.solve, B)
        return answer
