"""ADMM's second split, for penalties with kinks.

With h(W) = g(LW), L = I for most penalties ::

    min Σ wᵢ f(zᵢ) + q(W) + g(V)      subject to  Z = X̃W,  V = LW

    W-step   (ρ X̃ᵀΩX̃ + σ LᵀL + ∇²q) W = ρ X̃ᵀΩ(Z + U) + σ Lᵀ(V + T) + ∇²q W_ref
    relax    Ẑ = γ X̃W + (1−γ) Z,   V̂ = γ LW + (1−γ) V
    z-step   as without the split
    V-step   V = prox(V̂ − T, 1/σ) of g
    dual     U = U + Z − Ẑ,   T = T + V − V̂

Up to a factor the matrix depends on σ/ρ and on q/ρ, not on h: only the V-step sees h, so that
anything with a prox will do. A fit factorises anew when ρ or σ/ρ changes, and the fits of a path
each factorise for themselves.

What is yielded is V as a W, with its exact zeros: V itself where L = I, else the nearest W with
LW = 0 where V = 0. A pass measures it, so there is one after every LOOK_EVERY iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax.penalty import Quadratic, Split, Tikhonov
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Iterate, measured_at, unmeasured
from admm_softmax.solvers.duality import Certificate
from admm_softmax.solvers.least_squares import WStep, as_strategy
from admm_softmax.solvers.rho import first_rho, next_rho
from admm_softmax.solvers.state import State

if TYPE_CHECKING:
    from admm_softmax.solvers.admm import ADMM

#: Iterations between two iterates.
LOOK_EVERY = 5
#: σ LᵀL is this times ρ X̃ᵀΩX̃, in the mean of their diagonals.
SIGMA_SHARE = 1.0
#: Where one residual of the second split exceeds the other by this factor, σ/ρ follows, by at
#: most CHANGE, after these iterations.
UNBALANCED, CHANGE = 5.0, 4.0
BALANCE_AT = (10, 20, 40, 80, 160, 320)


def split_iterates(
    admm: ADMM, problem: Problem, W0: Array | None, state: State | None = None
) -> Iterator[Iterate]:
    """Yield the start, then iterates of ADMM with both splits."""
    if state is None:
        state = _first_state(admm, problem, W0)
        yield unmeasured(state["W"], state=state)
    split = problem.penalty.split
    L = sp.eye_array(problem.shape[0], format="csr") if split.L is None else split.L
    now, iteration = admm.variables(problem, state), state["iteration"]
    V, T, rho, ratio = _second_split(admm, problem, L, state)
    step: WStep | None = None
    certificate = Certificate(problem, state.get("lower", -np.inf))
    while True:
        iteration += 1
        sigma = ratio * rho
        if step is None or step.rho != rho:
            joined = _joined(problem, L, sigma)
            step = as_strategy(admm.least_squares).prepare(joined)
            step.factor(rho)
        pull = sigma * (L.T @ (V + T)) + problem.penalty.quadratic.pull(problem.n_classes)

        def slope(W: Array, pull: Array = pull, problem: Problem = joined) -> Array:
            return problem.penalty.hessian_product(W) - pull

        W, left_over = admm.w_step(problem, step, now, rho, pull, slope)
        outcome = admm.pass_over(problem, W, now, rho, with_gradient=False)
        back = slope(W) + left_over
        now, residuals = admm.dual_bookkeeping(problem, W, back, now, outcome, rho)
        LW = np.asarray(L @ W)
        hat = admm.relaxation * LW + (1.0 - admm.relaxation) * V
        V_new = split.prox(hat - T, 1.0 / sigma)
        T = T + V_new - hat
        apart = float(np.linalg.norm(LW - V_new)), sigma * float(np.linalg.norm(V_new - V))
        V, used = V_new, (rho, ratio)
        ratio = _next_ratio(ratio, iteration, apart, LW, sigma * T)
        rho = next_rho(admm.rho, admm.adaptive_rho, rho, iteration, residuals)
        if (rho, ratio) != used:
            T, step = T * sigma / (ratio * rho), None  # σT is the dual itself
        if iteration % LOOK_EVERY == 0 or iteration == 1:
            iterate = _iterate(problem, certificate, split, W, V, used[0], sigma, apart)
            more = _SecondSplit(V, T, rho, ratio)._asdict() | {"lower": certificate.lower}
            yield replace(iterate, state={**now._asdict(), **more, "iteration": iteration})


class _SecondSplit(NamedTuple):
    """What one iteration hands to the next, beside ADMM's own: V, T, ρ and σ/ρ."""

    V: Array
    T: Array
    rho: float
    ratio: float


def _first_state(admm: ADMM, problem: Problem, W0: Array | None) -> State:
    """ADMM's own, at a W where the penalty is finite."""
    state, penalty = admm.first_state(problem, W0), problem.penalty
    W = state["W"]
    return {**state, "W": W if np.isfinite(penalty.value(W)) else penalty.prox(W, 0.0)}


def _second_split(admm: ADMM, problem: Problem, L: Any, state: State) -> _SecondSplit:
    if state["iteration"]:
        return _SecondSplit(**{name: state[name] for name in _SecondSplit._fields})
    V = np.asarray(L @ state["W"])
    ratio = SIGMA_SHARE * _scale(problem, L)
    return _SecondSplit(V, np.zeros_like(V), first_rho(admm.rho, problem), ratio)


def _scale(problem: Problem, L: Any) -> float:
    """The mean diagonal of the Gram matrix over that of LᵀL, without the intercept."""
    features = slice(0, problem.design.n_features - problem.design.intercept)
    of_L = np.asarray(L.multiply(L).sum(axis=0)).ravel()[features].mean()
    return float(problem.column_squares()[features].mean() / max(of_L, 1e-300))


def _joined(problem: Problem, L: Any, sigma: float) -> Problem:
    """The problem of the W-step: (σ/2) ‖LW‖² + q, as one quadratic penalty."""
    q = problem.penalty.quadratic
    parts = [np.sqrt(sigma) * L]
    if q.strength > 0:
        parts.append(np.sqrt(q.strength) * q.L)
    stacked = sp.csr_array(sp.vstack(parts))
    return problem.with_penalty(Tikhonov.from_quadratic(Quadratic(1.0, stacked)))


def _next_ratio(
    ratio: float, iteration: int, apart: tuple[float, float], LW: Array, dual: Array
) -> float:
    """σ/ρ, larger where V and LW are too far apart, smaller where V moves too much."""
    if iteration not in BALANCE_AT:
        return ratio
    primal = apart[0] / max(float(np.linalg.norm(LW)), 1e-300)
    moved = apart[1] / max(float(np.linalg.norm(dual)), 1e-300)
    if primal > UNBALANCED * moved:
        return ratio * min(CHANGE, float(np.sqrt(primal / max(moved, 1e-300))))
    if moved > UNBALANCED * primal:
        return ratio / min(CHANGE, float(np.sqrt(moved / max(primal, 1e-300))))
    return ratio


def _iterate(
    problem: Problem,
    certificate: Certificate,
    split: Split,
    W: Array,
    V: Array,
    rho: float,
    sigma: float,
    apart: tuple[float, float],
) -> Iterate:
    point = problem.at(V if split.back is None else split.back(W, V))
    return measured_at(
        point,
        rho=rho,
        sigma=sigma,
        split_residual=apart[0],
        split_dual_residual=apart[1],
        gap=certificate.gap(point),
    )
