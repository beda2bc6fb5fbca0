"""One factorisation for many penalties: H = ρ (X̃ᵀΩX̃ + τ LᵀL), and only τ = α/ρ matters to it."""

from __future__ import annotations

from collections import OrderedDict
from math import log

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares.base import Solution, Strategy, WStep
from admm_softmax.solvers.together import Meeting

#: Ratios that agree to so many digits are the same.
DIGITS = 9


class SharedFactors:
    """A strategy whose W-steps share factorisations of X̃ᵀΩX̃ + τ LᵀL, and solve together.

    problem : whose rows make the Gram matrix, whatever rows the users have. For a
        preconditioner that is close enough; an exact W-step wants the same rows.
    meeting : where users wait for each other, so that a factor is read once for all.
    strategy : what factorises.
    spacing : τ is rounded to a power of this, so that penalties and curvatures that lie
        close share a factor; 1 takes τ as it is.
    held : how many factors are kept: two for neighbours on a path.
    """

    def __init__(
        self,
        problem: Problem,
        meeting: Meeting,
        strategy: Strategy,
        spacing: float = 1.0,
        held: int = 2,
    ) -> None:
        self.problem, self.meeting = problem, meeting
        self.strategy, self.spacing, self.held = strategy, spacing, held
        self.factors: OrderedDict[float, Factor] = OrderedDict()

    def prepare(self, problem: Problem) -> SharedStep:
        """A W-step for this problem's α."""
        return SharedStep(self, problem.penalty.alpha)

    def near(self, ratio: float) -> Factor:
        """The factor for about this τ, made if it is not there; Breakdown if it cannot be."""
        if self.spacing > 1.0:
            ratio = float(self.spacing ** round(log(ratio, self.spacing)))
        ratio = float(f"{ratio:.{DIGITS}e}")
        if ratio not in self.factors:
            while len(self.factors) >= self.held:
                self.factors.popitem(last=False)
            step = self.strategy.prepare(self.problem.with_alpha(ratio))
            step.factor(1.0)
            self.factors[ratio] = Factor(ratio, step)
        self.factors.move_to_end(ratio)
        return self.factors[ratio]


class Factor:
    """X̃ᵀΩX̃ + τ LᵀL, factorised."""

    def __init__(self, ratio: float, step: WStep) -> None:
        self.ratio, self.step = ratio, step

    def solve(self, sides: list[Array]) -> list[Array]:
        """The solutions for several right-hand sides, in one go."""
        widths = np.cumsum([side.shape[1] for side in sides])[:-1]
        together = sides[0] if len(sides) == 1 else np.concatenate(sides, axis=1)
        return [
            np.ascontiguousarray(W)
            for W in np.split(self.step.precondition(together), widths, axis=1)
        ]


class SharedStep:
    """The W-step of one user: solutions of the shared factor, over ρ."""

    name = "shared"

    def __init__(self, factors: SharedFactors, alpha: float) -> None:
        self.factors, self.alpha = factors, alpha
        self.rho: float | None = None
        self.factor_used: Factor | None = None

    @property
    def corrects(self) -> bool:
        """As the factor does."""
        return self.factor_used is not None and self.factor_used.step.corrects

    def factor(self, rho: float) -> None:
        """Take the factor for about this ρ; `rho` is then the one that it fits."""
        self.rho, self.factor_used = None, None
        used = self.factors.near(self.alpha / rho)
        self.rho = rho if self.factors.spacing == 1.0 else self.alpha / used.ratio
        self.factor_used = used

    def solve(self, M: Array, start: Array) -> Solution:
        """H⁻¹M."""
        return Solution(self.precondition(M), None)

    def precondition(self, R: Array) -> Array:
        """H⁻¹R, together with whoever else waits for this factor."""
        assert self.factor_used is not None
        assert self.rho is not None
        answer: Array = self.factors.meeting.ask(self.factor_used.solve, R)
        return answer / self.rho
