"""One factorisation for many penalties: H = ρ (X̃ᵀΩX̃ + τ LᵀL), and only τ = α/ρ matters to it."""

from __future__ import annotations

from collections import OrderedDict
from math import log

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.penalty import Tikhonov
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares.base import Solution, Strategy, WStep
from admm_softmax.solvers.scheduler import Scheduler

#: Ratios that agree to this many digits are the same.
RATIO_DIGITS = 9


class SharedFactors:
    """A strategy whose W-steps share factorisations of X̃ᵀΩX̃ + τ LᵀL, and solve together.

    problem : whose rows the Gram matrix is made of, whatever rows the users have. For a
        preconditioner that is close enough; an exact W-step needs the same rows.
    scheduler : of the jobs that use it, so that a factor is read once for all of them.
    strategy : makes the factorisations.
    spacing : τ is rounded to a power of this, so that penalties and curvatures that lie
        close share a factor; 1 takes τ as it is.
    held : how many factors are kept; two suffice for neighbours on a path.
    """

    def __init__(
        self,
        problem: Problem,
        scheduler: Scheduler,
        strategy: Strategy,
        spacing: float = 1.0,
        held: int = 2,
    ) -> None:
        self.problem, self.scheduler = problem, scheduler
        self.strategy, self.spacing, self.held = strategy, spacing, held
        self.factors: OrderedDict[float, Factor] = OrderedDict()

    def prepare(self, problem: Problem) -> SharedStep:
        """A W-step for the strength of this problem's penalty, whose L must be the factors' L."""
        quadratic = problem.penalty.quadratic
        if not quadratic.has_operator(self.problem.penalty.quadratic.L):
            raise ValueError(
                "shared factors are for one L: that of the problem they were made for has the "
                f"shape {self.problem.penalty.quadratic.L.shape}, and another one of the shape "
                f"{quadratic.L.shape} was given"
            )
        return SharedStep(self, quadratic.strength)

    def near(self, ratio: float) -> Factor:
        """The factor for about this τ, computed if it is not stored; Breakdown if it cannot be."""
        if self.spacing > 1.0 and ratio > 0.0:
            ratio = float(self.spacing ** round(log(ratio, self.spacing)))
        ratio = float(f"{ratio:.{RATIO_DIGITS}e}")
        if ratio not in self.factors:
            while len(self.factors) >= self.held:
                self.factors.popitem(last=False)
            step = self.strategy.prepare(self._with_strength(ratio))
            step.factor(1.0)
            self.factors[ratio] = Factor(ratio, step)
        self.factors.move_to_end(ratio)
        return self.factors[ratio]

    def _with_strength(self, ratio: float) -> Problem:
        """The problem whose penalty is (τ/2) ‖LW‖²."""
        quadratic = self.problem.penalty.quadratic.with_strength(ratio)
        return self.problem.with_penalty(Tikhonov.from_quadratic(quadratic))


class Factor:
    """X̃ᵀΩX̃ + τ LᵀL, factorised."""

    def __init__(self, ratio: float, step: WStep) -> None:
        self.ratio, self.step = ratio, step

    def solve(self, sides: list[Array]) -> list[Array]:
        """The solutions for several right-hand sides, computed together."""
        widths = np.cumsum([side.shape[1] for side in sides])[:-1]
        together = sides[0] if len(sides) == 1 else np.concatenate(sides, axis=1)
        return [
            np.ascontiguousarray(W)
            for W in np.split(self.step.precondition(together), widths, axis=1)
        ]


class SharedStep:
    """The W-step of one user: solutions of the shared factor, divided by ρ."""

    name = "shared"

    def __init__(self, factors: SharedFactors, strength: float) -> None:
        self.factors, self.strength = factors, strength
        self.rho: float | None = None
        self.factor_used: Factor | None = None

    @property
    def corrects(self) -> bool:
        """Whether the factor's solutions need a correction."""
        return self.factor_used is not None and self.factor_used.step.corrects

    def factor(self, rho: float) -> None:
        """Take the factor for about this ρ; `rho` is then the one that it fits."""
        self.rho, self.factor_used = None, None
        used = self.factors.near(self.strength / rho)
        exact = self.factors.spacing == 1.0 or used.ratio == 0.0
        self.rho = rho if exact else self.strength / used.ratio
        self.factor_used = used

    def solve(self, M: Array, start: Array) -> Solution:
        """H⁻¹M."""
        return Solution(self.precondition(M), None)

    def precondition(self, R: Array) -> Array:
        """H⁻¹R, solved together with the other jobs that wait for this factor."""
        assert self.factor_used is not None
        assert self.rho is not None
        answer: Array = self.factors.scheduler.ask(self.factor_used.solve, R)
        return answer / self.rho
