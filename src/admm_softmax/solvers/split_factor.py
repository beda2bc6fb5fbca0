"""The matrix of ADMM's second split, factorised once for many penalties and alphas.

Divided by ρ it is ::

    X̃ᵀΩX̃ + r LᵀL + ∇²q / ρ,      r = σ/ρ

No h is in it, and no α where q = 0 or where the V-step has q: the fits of a path share it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax.penalty import Quadratic, Tikhonov
from admm_softmax.problem import Problem
from admm_softmax.solvers.duality import leaves_intercept
from admm_softmax.solvers.least_squares import Solution, Strategy, WStep
from admm_softmax.solvers.least_squares.base import StepOfAnother


class Parts(NamedTuple):
    """The second split of a problem.

    L : None for the identity
    q : what the W-step has of the smooth penalty
    prox : of g, and of what the W-step does not have of q
    back : see `Split`
    leaves_intercept : for L = I, whether V has no intercept. It follows W's there: with σ on
        it, features that are far from zero mean, which share its direction, converge slowly.
    """

    L: Any
    q: Quadratic
    prox: Callable[[Array, float], Array]
    back: Callable[[Array, Array], Array] | None
    leaves_intercept: bool

    @classmethod
    def of(cls, problem: Problem) -> Parts:
        """What the penalty says, with q in the V-step if that has a formula."""
        split, q = problem.penalty.split, problem.penalty.quadratic
        free = split.L is None and leaves_intercept(problem)
        if q.strength > 0 and split.with_quadratic is not None:
            return cls(split.L, q.with_strength(0.0), split.with_quadratic, split.back, free)
        return cls(split.L, q, split.prox, split.back, free)

    def to_V(self, W: Array) -> Array:
        """LW."""
        return W if self.L is None else np.asarray(self.L @ W)

    def back_to_W(self, V: Array) -> Array:
        """LᵀV; what is not in V is zero."""
        if self.L is not None:
            return np.asarray(self.L.T @ V)
        if not self.leaves_intercept:
            return V
        return np.concatenate([V[:-1], np.zeros_like(V[-1:])])


@dataclass(frozen=True)
class SplitFactor:
    """A factorisation, and what it is of.

    strategy : made it
    ratio : r
    quadratic : q / ρ, of strength 0 where there is none
    parts : whose L it has
    step : the W-step at ρ = 1; runs use views of it
    """

    strategy: Strategy
    ratio: float
    quadratic: Quadratic
    parts: Parts
    step: WStep

    @classmethod
    def of(
        cls, problem: Problem, strategy: Strategy, parts: Parts, ratio: float, rho: float
    ) -> ScaledStep:
        """The W-step for ρ: on the last factorisation to these rows, if that is of this matrix.

        A factorisation of another matrix is dropped first: two may not fit into memory.
        """
        share = parts.q.with_strength(parts.q.strength / rho)
        slot = problem.prepared.split_factor
        kept = slot.last()
        if kept is not None and not kept.is_of(strategy, parts, ratio, share):
            kept = None
            slot.drop()
        joined = _joined(problem, parts, ratio, share)
        view = None if kept is None else viewed(kept.step, joined)
        if view is None:
            step = strategy.prepare(joined)
            step.factor(1.0)
            view = viewed(step, joined)
            if view is None:  # a strategy of the caller's, whose steps are for one run
                return ScaledStep(step, rho)
            slot.keep(cls(strategy, ratio, share, parts, step))
        return ScaledStep(view, rho)

    def is_of(self, strategy: Strategy, parts: Parts, ratio: float, q: Quadratic) -> bool:
        """Whether this is the factorisation, by this strategy, of the matrix with these parts."""
        mine = self.quadratic
        same_q = mine.strength == q.strength and (q.strength == 0.0 or mine.has_operator(q.L))
        mine_L, L = self.parts.L, parts.L
        same_L = mine_L is L or (
            mine_L is not None and L is not None and Quadratic(1.0, mine_L).has_operator(L)
        )
        same_L = same_L and self.parts.leaves_intercept == parts.leaves_intercept
        return self.strategy == strategy and self.ratio == ratio and same_q and same_L


def viewed(step: WStep, problem: Problem) -> WStep | None:
    """The factorisation of a W-step for another run; None where the step cannot be shared."""
    view = getattr(step, "view", None)
    return None if view is None else view(problem)


class ScaledStep(StepOfAnother):
    """The W-step for ρ on a factorisation for ρ = 1: both sides are divided by ρ."""

    def __init__(self, step: WStep, rho: float) -> None:
        self.step, self.rho = step, rho

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


def _joined(problem: Problem, parts: Parts, ratio: float, q: Quadratic) -> Problem:
    """The problem whose penalty is (r/2) ‖LW‖² + q, as one quadratic."""
    ones = np.ones(problem.shape[0])
    if parts.leaves_intercept:
        ones[-1] = 0.0
    if parts.L is None and (q.strength == 0.0 or q.diagonal is not None):
        squares = ratio * ones
        if q.strength > 0.0 and q.diagonal is not None:
            squares += q.strength * q.diagonal
        quadratic = Quadratic.scaled(1.0, np.sqrt(squares))
        return problem.with_penalty(Tikhonov.from_quadratic(quadratic))
    blocks = [np.sqrt(ratio) * (sp.diags_array(ones, format="csr") if parts.L is None else parts.L)]
    if q.strength > 0:
        blocks.append(np.sqrt(q.strength) * q.L)
    stacked = sp.csr_array(sp.vstack(blocks))
    return problem.with_penalty(Tikhonov.from_quadratic(Quadratic(1.0, stacked)))
