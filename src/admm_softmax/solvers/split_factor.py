"""The matrix of ADMM's second split, factorised once for many penalties and alphas.

Divided by ρ it is ::

    X̃ᵀΩX̃ + r LᵀL + ∇²q / ρ,      r = σ/ρ

No h is in it, and no α where q = 0 or where the V-step has q: the fits of a path share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax.penalty import Quadratic, Tikhonov
from admm_softmax.problem import Problem
from admm_softmax.solvers.least_squares import Solution, Strategy, WStep


@dataclass(frozen=True)
class SplitFactor:
    """A factorisation, and what it is of.

    strategy : made it
    ratio : r
    quadratic : q / ρ, of strength 0 where there is none
    L : of the second split; None for the identity
    step : the W-step at ρ = 1; runs use views of it
    """

    strategy: Strategy
    ratio: float
    quadratic: Quadratic
    L: Any
    step: WStep

    @classmethod
    def of(
        cls, problem: Problem, strategy: Strategy, L: Any, ratio: float, q: Quadratic, rho: float
    ) -> ScaledStep:
        """The W-step for ρ: on the last factorisation to these rows, if that is of this matrix.

        A factorisation of another matrix is dropped first: two may not fit into memory.
        """
        share = q.with_strength(q.strength / rho)
        slot = problem.prepared.split_factor
        kept = slot.last()
        if kept is not None and not kept.is_of(strategy, L, ratio, share):
            kept = None
            slot.drop()
        joined = _joined(problem, L, ratio, share)
        view = None if kept is None else viewed(kept.step, joined)
        if view is None:
            step = strategy.prepare(joined)
            step.factor(1.0)
            view = viewed(step, joined)
            if view is None:  # a strategy of the caller's, whose steps are for one run
                return ScaledStep(step, rho)
            slot.keep(cls(strategy, ratio, share, L, step))
        return ScaledStep(view, rho)

    def is_of(self, strategy: Strategy, L: Any, ratio: float, q: Quadratic) -> bool:
        """Whether this is the factorisation, by this strategy, of the matrix with these parts."""
        mine = self.quadratic
        same_q = mine.strength == q.strength and (q.strength == 0.0 or mine.has_operator(q.L))
        same_L = self.L is L or (
            self.L is not None and L is not None and Quadratic(1.0, self.L).has_operator(L)
        )
        return self.strategy == strategy and self.ratio == ratio and same_q and same_L


def viewed(step: WStep, problem: Problem) -> WStep | None:
    """The factorisation of a W-step for another run; None where the step cannot be shared."""
    view = getattr(step, "view", None)
    return None if view is None else view(problem)


class ScaledStep:
    """The W-step for ρ on a factorisation for ρ = 1: both sides are divided by ρ."""

    def __init__(self, step: WStep, rho: float) -> None:
        self.step, self.rho = step, rho

    @property
    def name(self) -> str:
        """The strategy's name."""
        return self.step.name

    @property
    def corrects(self) -> bool:
        """Whether solutions need a correction by residual rows."""
        return self.step.corrects

    def factor(self, rho: float) -> None:
        """Take another ρ, with σ/ρ as it is."""
        self.rho = rho

    def solve(self, M: Array, start: Array) -> Solution:
        """H⁻¹M."""
        W, residual = self.step.solve(M / self.rho, start)
        return Solution(W, None if residual is None else self.rho * residual)

    def precondition(self, R: Array) -> Array:
        """H⁻¹R, to the precision of the factor."""
        return self.step.precondition(R) / self.rho


def _joined(problem: Problem, L: Any, ratio: float, q: Quadratic) -> Problem:
    """The problem whose penalty is (r/2) ‖LW‖² + q, as one quadratic."""
    if L is None and (q.strength == 0.0 or q.diagonal is not None):
        squares = np.full(problem.shape[0], ratio)
        if q.strength > 0.0 and q.diagonal is not None:
            squares += q.strength * q.diagonal
        return problem.with_penalty(
            Tikhonov.from_quadratic(Quadratic.scaled(1.0, np.sqrt(squares)))
        )
    parts = [np.sqrt(ratio) * (sp.eye_array(problem.shape[0], format="csr") if L is None else L)]
    if q.strength > 0:
        parts.append(np.sqrt(q.strength) * q.L)
    stacked = sp.csr_array(sp.vstack(parts))
    return problem.with_penalty(Tikhonov.from_quadratic(Quadratic(1.0, stacked)))
