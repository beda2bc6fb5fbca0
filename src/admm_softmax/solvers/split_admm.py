"""ADMM's second split, for penalties with kinks.

With h(W) = g(LW), L = I for most penalties ::

    min Σ wᵢ f(zᵢ) + q(W) + g(V)      subject to  Z = X̃W,  V = LW

    W-step   (ρ X̃ᵀΩX̃ + σ LᵀL + ∇²q) W = ρ X̃ᵀΩ(Z + U) + σ Lᵀ(V + T) + ∇²q W_ref
    relax    Ẑ = γ X̃W + (1−γ) Z,   V̂ = γ LW + (1−γ) V
    z-step   as without the split
    V-step   V = prox(V̂ − T, 1/σ) of g
    dual     U = U + Z − Ẑ,   T = T + V − V̂

Where the prox of g + q has a formula, q is in the V-step instead. Up to a factor the matrix then
depends on σ/ρ alone: one factorisation (`SplitFactor`) serves every h and every α, and a fit
factorises anew only when it changes σ/ρ. A fit that is given a start also begins with the ρ, σ/ρ
and dual that the last fit to the same rows has ended with.

What is yielded is V as a W, with its exact zeros: V itself where L = I, else the nearest W with
LW = 0 where V = 0. A pass measures it, so there is one after every LOOK_EVERY iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Iterate, measured_at
from admm_softmax.solvers.duality import Certificate
from admm_softmax.solvers.least_squares import as_strategy
from admm_softmax.solvers.rho import first_rho, next_rho
from admm_softmax.solvers.split_factor import Parts, ScaledStep, SplitFactor
from admm_softmax.solvers.state import State
from admm_softmax.solvers.working_set import LastPass

if TYPE_CHECKING:
    from admm_softmax.solvers.admm import ADMM

#: Iterations between two iterates.
LOOK_EVERY = 5
#: At first σ LᵀL is this times ρ X̃ᵀΩX̃, see `_scale`; eigenvalues have a floor, as a part of
#: their mean, and matrices of more columns only their diagonal.
SIGMA_SHARE, FLOOR, LARGEST_SCALED = 1.0, 1e-2, 5_000
#: Mean squares of features below this are taken for zero: their products would underflow.
SMALLEST_SQUARE = 1e-140
#: After these iterations σ/ρ follows the residuals of the second split, by at most CHANGE, where
#: ‖LW − V‖ over the last step of V differs from AIM by more than UNBALANCED. Both are in units of
#: V, so that a small α does not count. Looking from the tenth iteration on, with residuals
#: relative to V and to the dual, took 90 factorisations for twelve paths (lasso, groups and
#: nuclear norm on four data sets) instead of one or two each, and no fewer iterations.
AIM, UNBALANCED, CHANGE = 0.3, 5.0, 4.0
BALANCE_AT = (80, 160, 320, 640)


def split_iterates(
    admm: ADMM, problem: Problem, W0: Array | None, state: State | None = None
) -> Iterator[Iterate]:
    """Yield the start, then iterates of ADMM with both splits."""
    parts = Parts.of(problem)
    certificate = Certificate(problem)
    if state is None:
        state = _first_state(admm, problem, W0)
        point = LastPass.at(problem, state["W"])
        yield measured_at(point, gap=certificate.gap(point), state=state)
    certificate.lower = state.get("lower", certificate.lower)
    now, iteration = admm.variables(problem, state), state["iteration"]
    V, T, rho, ratio = _second_split(admm, problem, parts, state)
    step: ScaledStep | None = None
    strategy = as_strategy(admm.least_squares)
    while True:
        iteration += 1
        sigma = ratio * rho
        if step is None:
            step = SplitFactor.of(problem, strategy, parts, ratio, rho)
        pull = sigma * parts.back_to_W(V + T) + parts.q.pull(problem.n_classes)

        def slope(W: Array, pull: Array = pull, sigma: float = sigma) -> Array:
            return sigma * parts.back_to_W(parts.to_V(W)) + parts.q.product(W) - pull

        W, left_over = admm.w_step(problem, step, now, rho, pull, slope)
        outcome = admm.pass_over(problem, W, now, rho, with_gradient=False)
        back = slope(W) + left_over
        now, residuals = admm.dual_bookkeeping(problem, W, back, now, outcome, rho)
        LW = parts.to_V(W)
        hat = admm.relaxation * LW + (1.0 - admm.relaxation) * V
        V_new = parts.prox(hat - T, 1.0 / sigma)
        T = T + V_new - hat
        if parts.leaves_intercept:
            V_new[-1], T[-1] = W[-1], 0.0
        apart = float(np.linalg.norm(LW - V_new)), float(np.linalg.norm(V_new - V))
        V, used = V_new, (rho, ratio)
        ratio = _next_ratio(ratio, iteration, *apart)
        rho = next_rho(admm.rho, admm.adaptive_rho, rho, iteration, residuals)
        if (rho, ratio) != used:
            T, step = T * sigma / (ratio * rho), None  # σT is the dual itself
        if iteration % LOOK_EVERY == 0 or iteration == 1:
            iterate = _iterate(problem, certificate, parts, W, V, used[0], sigma, apart)
            second = _SecondSplit(V, T, rho, ratio)
            problem.prepared.last_split.keep(LastSplit(parts.L, second))
            more = second._asdict() | {"lower": certificate.lower}
            yield replace(iterate, state={**now._asdict(), **more, "iteration": iteration})


class _SecondSplit(NamedTuple):
    """What one iteration hands to the next, beside ADMM's own: V, T, ρ and σ/ρ."""

    V: Array
    T: Array
    rho: float
    ratio: float


@dataclass(frozen=True)
class LastSplit:
    """How the last fit to the same rows has ended, under whatever penalty."""

    L: Any
    second: _SecondSplit


def _first_state(admm: ADMM, problem: Problem, W0: Array | None) -> State:
    """ADMM's own, at a W where the penalty is finite."""
    state, penalty = admm.first_state(problem, W0), problem.penalty
    W = state["W"]
    return {**state, "W": W if np.isfinite(penalty.value(W)) else penalty.prox(W, 0.0)}


def _second_split(admm: ADMM, problem: Problem, parts: Parts, state: State) -> _SecondSplit:
    """That of the state; at first V = LW₀, with a dual of zero or, from a start, that of W₀."""
    if state["iteration"]:
        return _SecondSplit(**{name: state[name] for name in _SecondSplit._fields})
    W, rho, ratio = state["W"], first_rho(admm.rho, problem), SIGMA_SHARE * _scale(problem, parts.L)
    V = parts.to_V(W)
    if state["dual_is_zero"]:
        return _SecondSplit(V, np.zeros_like(V), rho, ratio)
    last = problem.prepared.last_split.last()
    if last is not None and last.L is parts.L and last.second.V.shape == V.shape:
        ratio = last.second.ratio
        rho = last.second.rho if admm.rho == "auto" else rho
    if parts.L is None:  # the W-step's equation at W₀, with the dual U that W₀ has
        dual = parts.back_to_W(LastPass.at(problem, W).loss_gradient + parts.q.gradient(W))
        return _SecondSplit(V, dual / (ratio * rho), rho, ratio)
    if last is None or last.second.V.shape != V.shape:
        return _SecondSplit(V, np.zeros_like(V), rho, ratio)
    before = last.second
    return _SecondSplit(V, before.T * (before.rho * before.ratio) / (rho * ratio), rho, ratio)


def _scale(problem: Problem, L: Any) -> float:
    """The scale of the Gram matrix without means, over the mean diagonal of LᵀL.

    Where the matrix is to be factorised anyway: between the mean and the geometric mean of its
    eigenvalues, as √(λ_min λ_max) would be best for a quadratic loss. For correlated features it
    is much less than the mean alone, with which iris took 200 iterates and more instead of 30.
    Otherwise the mean of the diagonal.
    """
    design = problem.design
    d = design.n_features - design.intercept
    of_L = 1.0 if L is None else float(np.asarray(L.multiply(L).sum(axis=0)).ravel()[:d].mean())
    if d > min(design.n_rows, LARGEST_SCALED):
        squares = float(problem.column_squares()[:d].mean())
        return (squares if squares > SMALLEST_SQUARE else 1.0) / max(of_L, 1e-300)
    G = np.array(problem.gram(np.float64), dtype=np.float64)
    means = G[d, :d] if design.intercept else np.zeros(d)
    G = G[:d, :d]
    noise = np.finfo(np.float64).eps * float(np.trace(G))
    G -= np.outer(means, means)
    # What columns without spread leave is rounding; columns of zeros, or as small, say nothing.
    mean = max(float(np.trace(G)) / d, noise)
    mean = mean if mean > SMALLEST_SQUARE else 1.0
    G[np.diag_indices(d)] += max(FLOOR * mean, noise)
    try:
        geometric = np.exp(2.0 * np.log(np.linalg.cholesky(G).diagonal()).mean())
    except np.linalg.LinAlgError:  # more rounding than that
        geometric = FLOOR * mean
    return float(np.sqrt(mean) * np.sqrt(geometric)) / max(of_L, 1e-300)


def _next_ratio(ratio: float, iteration: int, apart: float, moved: float) -> float:
    """σ/ρ, larger where V and LW are too far apart, smaller where V moves too much."""
    if iteration not in BALANCE_AT or not (apart > 0 and moved > 0):
        return ratio
    excess = apart / moved / AIM
    if 1 / UNBALANCED < excess < UNBALANCED:
        return ratio
    return ratio * float(np.clip(np.sqrt(excess), 1 / CHANGE, CHANGE))


def _iterate(
    problem: Problem,
    certificate: Certificate,
    parts: Parts,
    W: Array,
    V: Array,
    rho: float,
    sigma: float,
    apart: tuple[float, float],
) -> Iterate:
    point = LastPass.at(problem, V if parts.back is None else parts.back(W, V))
    return measured_at(
        point,
        rho=rho,
        sigma=sigma,
        split_residual=apart[0],
        split_dual_residual=sigma * apart[1],
        gap=certificate.gap(point),
    )
