"""Checks of the `Penalty` contract."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.contracts.agreement import require, require_close
from admm_softmax.penalty import Penalty

D, K = 6, 3
#: The step of finite differences, and the tolerance that goes with it.
STEP, DIFFERENCES = 1e-6, 1e-6


def check_penalty(penalty: Any) -> None:
    """Check that a penalty keeps the contract of `Penalty`.

    penalty : what is given to an estimator as `penalty=`: an object with the method `over`,
        which may refuse references and penalised intercepts with a ValueError

    >>> from admm_softmax import Tikhonov
    >>> check_penalty(Tikhonov)
    """
    rng = np.random.default_rng(0)
    cases = [(True, False, False), (False, False, False), (True, True, False), (True, False, True)]
    for intercept, penalized, referred in cases:
        settings: dict[str, Any] = {"intercept": intercept, "penalize_intercept": penalized}
        shape = (D + intercept, K)
        reference = 0.3 * rng.standard_normal(shape) if referred else None
        try:
            bound = penalty.over(D, 0.3, reference=reference, **settings)
        except ValueError:
            if penalized or referred:  # may be refused, in words
                continue
            raise
        require(isinstance(bound, Penalty), f"over must return a Penalty, got {type(bound)}")
        for _ in range(3):
            W, V = (_within(bound, rng.standard_normal(shape)) for _ in range(2))
            _check_arrays(bound, W, V)
            _check_smooth_part(bound, W, V)
            _check_convex(bound, W, V)
            _check_prox(bound, V, rng)
            _check_split(bound, W, V)
            _check_conjugate(bound, W, V)
            _check_strength(bound, W)
        if intercept and not penalized:
            _check_free_intercept(bound, _within(bound, rng.standard_normal(shape)))
        _check_alpha_max(bound, rng.standard_normal(shape))


def _within(penalty: Penalty, W: Array) -> Array:
    """W, moved to where the penalty is finite."""
    return W if np.isfinite(penalty.value(W)) else penalty.prox(W, 1.0)


def _check_arrays(penalty: Penalty, W: Array, V: Array) -> None:
    """What is given is not written to; the gradient is an array that its caller may write to."""
    given = W.copy(), V.copy()
    gradient = penalty.gradient(W)
    kept = gradient.copy()
    gradient += 1.0
    require_close(penalty.gradient(W), kept, "a gradient after the last one was written to", 0.0)
    penalty.value(W), penalty.prox(V, 0.7), penalty.optimality(W, V), penalty.hessian_product(V)
    for array, before in zip((W, V), given, strict=True):
        require_close(array, before, "an array that was given to a penalty", 0.0)


def _check_smooth_part(penalty: Penalty, W: Array, V: Array) -> None:
    """Gradient and Hessian of q by central differences; W-steps see the same q."""
    q = penalty.quadratic
    slope = (q.value(W + STEP * V) - q.value(W - STEP * V)) / (2 * STEP)
    require_close(np.vdot(penalty.gradient(W), V), slope, "the gradient of q", DIFFERENCES)
    bend = (penalty.gradient(W + V) - penalty.gradient(W - V)) / 2
    require_close(penalty.hessian_product(V), bend, "the Hessian of q", 1e-10)
    require_close(q.matrix @ V, penalty.hessian_product(V), "quadratic.matrix", 1e-12)
    total = q.value(W) + penalty.rough_value(W)
    require_close(penalty.value(W), total, "value = q + h", 1e-12)
    if penalty.is_smooth:
        g = np.ones_like(W)
        require_close(
            penalty.optimality(W, g), g + penalty.gradient(W), "optimality without h", 1e-12
        )


def _check_convex(penalty: Penalty, W: Array, V: Array) -> None:
    for share in (0.25, 0.5, 0.75):
        between = penalty.value(share * W + (1 - share) * V)
        chord = share * penalty.value(W) + (1 - share) * penalty.value(V)
        require(between <= chord + 1e-10 * abs(chord), "a penalty must be convex")


def _check_prox(penalty: Penalty, V: Array, rng: np.random.Generator) -> None:
    """The definition of the prox, and the optimality that follows from it."""
    for step in (0.1, 1.0, 30.0):
        P = penalty.prox(V, step)

        def cost(W: Array, step: float = step) -> float:
            return penalty.rough_value(W) + float(((W - V) ** 2).sum()) / (2 * step)

        best = cost(P)
        for size in (1e-3, 1e-1, 1.0):
            other = P + size * rng.standard_normal(P.shape)
            require(
                cost(other) >= best - 1e-9 * max(1.0, best), "prox must minimise its definition"
            )
        # 0 ∈ ∂h(P) + (P − V)/step: with that loss gradient, less ∇q, P is a solution.
        loss_gradient = (P - V) / step - penalty.gradient(P)
        residual = penalty.optimality(P, loss_gradient)
        require_close(residual, np.zeros_like(P), f"optimality at prox(V, {step:g})", 1e-9)


def _check_split(penalty: Penalty, W: Array, V: Array) -> None:
    """h(W) = g(LW): a prox of g must not raise g, which h measures where LW is it."""
    L, prox, back, with_quadratic = penalty.split
    if with_quadratic is not None:
        require(L is None, "a split with an L cannot take the quadratic part")
        P = with_quadratic(V, 0.7)
        residual = penalty.optimality(P, (P - V) / 0.7)
        require_close(residual, np.zeros_like(P), "optimality at the prox of g + q", 1e-9)
    if L is None:
        require_close(prox(V, 0.7), penalty.prox(V, 0.7), "the prox of the split", 1e-10)
        return
    require(L.shape[1] == len(W), f"the split's L must have {len(W)} columns, got {L.shape[1]}")
    require(back is not None, "a split with an L must say how to come back to a W")
    assert back is not None
    LW = np.asarray(L @ W)
    require_close(prox(LW, 0.0), LW, "the prox of the split with a step of zero", 1e-12)
    kink = np.zeros_like(LW) if penalty.reference is None else np.asarray(L @ penalty.reference)
    require_close(np.asarray(L @ back(W, kink)), kink, "L back(W, L W_ref)", 1e-8)


def _check_conjugate(penalty: Penalty, W: Array, V: Array) -> None:
    """Fenchel & Young: R(W) + R*(G) ≥ ⟨G, W⟩, with equality for a subgradient G at W.

    (V − P)/step is one of h at P = prox(V, step). Where the conjugate is infinite nothing is
    known; a value too small would make duality gaps that claim too much.
    """
    P = penalty.prox(V, 0.7)
    G = ((V - P) / 0.7 + penalty.gradient(P)) * (1.0 - 1e-12)
    found = penalty.conjugate(G)
    if not np.isfinite(found):
        return
    size = max(1.0, abs(found), float(np.abs(G).sum()))
    for name, point in (("W", W), ("V", V), ("prox(V)", P)):
        young = penalty.value(point) + found - float(np.vdot(G, point))
        require(young >= -1e-9 * size, f"conjugate is too small: R + R* − ⟨G, {name}⟩ = {young:g}")
    require(young <= 1e-8 * size, f"conjugate is too large at a subgradient, by {young:g}")


def _check_strength(penalty: Penalty, W: Array) -> None:
    other = penalty.with_alpha(2 * penalty.alpha)
    require(type(other) is type(penalty), "with_alpha must return the same kind of penalty")
    require(other.alpha == 2 * penalty.alpha, "with_alpha must set alpha")
    require_close(other.value(W), 2 * penalty.value(W), "value under twice the strength", 1e-12)
    require_close(
        other.gradient(W), 2 * penalty.gradient(W), "gradient under twice the strength", 1e-12
    )


def _check_free_intercept(penalty: Penalty, W: Array) -> None:
    moved = W.copy()
    moved[-1] += 1.0
    require_close(penalty.value(moved), penalty.value(W), "value with another intercept", 1e-12)


def _check_alpha_max(penalty: Penalty, loss_gradient: Array) -> None:
    """Above alpha_max the reference is a solution, below it is not."""
    W = np.zeros_like(loss_gradient) if penalty.reference is None else penalty.reference
    for j, row in enumerate(np.eye(len(loss_gradient))):
        moved = W + np.outer(row, np.ones(loss_gradient.shape[1]))
        if penalty.value(moved) == penalty.value(W):
            loss_gradient[j] = 0.0  # the intercept, or a free feature: at its optimum there
    largest = penalty.alpha_max(loss_gradient)
    require(largest > 0, f"alpha_max must be positive, got {largest}")
    if not np.isfinite(largest):
        return
    above = penalty.with_alpha(1.001 * largest).optimality(W, loss_gradient)
    below = penalty.with_alpha(0.999 * largest).optimality(W, loss_gradient)
    require(np.abs(above).max() <= 1e-12, "the reference must be a solution above alpha_max")
    require(np.abs(below).max() > 0, "the reference must not be a solution below alpha_max")
