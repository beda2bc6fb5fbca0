"""A factor per class for fits side by side, and for those under neighbouring penalties."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem
from admm_softmax.solvers.class_factors import ByClass, FactorSet, Origin, SetMaker
from admm_softmax.solvers.least_squares import GramStrategy
from admm_softmax.solvers.preconditioner import Gram
from admm_softmax.solvers.scheduler import Scheduler

#: A factor per class serves penalties within this factor of the one that it was made for.
#: With 1.2, 4 and 16 paths of 20 penalties over 60,000 × 100 images and 200,000 × 50 take 824, 541
#: and 549, and 895, 765 and 758 ms on Zen 4, and five folds of the first 1,150, 1,240 and 1,300.
SETS_SPACING = 4.0


class SharedSets:
    """Sets of one factor per class for the fits of a path or of folds.

    Fits begin near their ends: predictions at their starts tell which rows are uncertain, and
    those of all folds tell nearly the same. All sets may cost a share of the steps so far, as in a
    single fit (`class_factors`), and steps of all fits count.

    problem : with the rows of all fits
    strategy, seed : of the Gram preconditioner
    """

    def __init__(self, problem: Problem, strategy: GramStrategy, seed: int) -> None:
        self.problem = problem
        self.maker = SetMaker(strategy, seed)
        #: Steps of all fits so far.
        self.steps = 0
        #: The penalty of the newest set, and what it is made from; made when a fit asks for it.
        self.alpha: float | None = None
        self.origin: Origin | None = None
        self._newest: FactorSet | None = None

    def look_at(self, alphas: Sequence[float], starts: Sequence[Array | None]) -> None:
        """Before fits under these penalties: plan a set if no other suits, and it is paid."""
        alpha = float(np.median(alphas))
        if self._suits(alpha):
            return
        self.alpha = self.origin = self._newest = None
        known = [start for start in starts if start is not None]
        if known:
            problem = self.problem.with_alpha(alpha)
            self.origin = self.maker.buy(problem, np.mean(known, axis=0), self.steps)
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

    def _suits(self, alpha: float) -> bool:
        made = self.alpha
        return made is not None and made <= SETS_SPACING * alpha and alpha <= SETS_SPACING * made


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
