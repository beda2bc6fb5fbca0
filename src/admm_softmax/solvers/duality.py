"""Duality gaps: certificates of how far F(W) is from the minimum.

With the loss f(Z) = Σ wᵢ (logsumexp(zᵢ) − cᵢ·zᵢ) and any Θ (n × K) ::

    min F ≥ −f*(Θ) − R*(−X̃ᵀΘ),        f*(Θ) = Σ wᵢ Σ_k q_ik log q_ik,  q = c + θ/w in the simplex

At W the point Θ = ∇f(X̃W) = w (P − C) has f*(Θ) = ⟨W, ∇loss⟩ − loss (Fenchel & Young), so that no
pass over X is needed. Two corrections make it feasible, and f* is convex, which bounds their price:

- X̃ᵀΘ must vanish for an intercept without penalty. Mixed with Θ₀ = w (q 1ᵀ − C), the residuals of
  a model without features, it does, for (1 − t) ∇loss_b + t (q − π) = 0, π the class frequencies.
- R* may be finite only in a ball, that of the dual norm: Θ is scaled by s ≤ 1 into it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.kernels import rows
from admm_softmax.problem import Point, Problem


@dataclass(frozen=True)
class Anchor:
    """What the corrections need; it depends on rows and labels alone.

    entropy : f*(0) = Σ wᵢ Σ_k c_ik log c_ik, 0 for hard labels
    means : X̃ᵀw
    sums : X̃ᵀ diag(w) C;  its last row, for the intercept, holds π
    """

    entropy: float
    means: Array
    sums: Array

    @classmethod
    def of(cls, problem: Problem) -> Anchor:
        """Compute it, once for all penalties. Two reads of X."""
        return problem.prepared.anchor.get(lambda kept: True, lambda: cls._measure(problem))

    @classmethod
    def _measure(cls, problem: Problem) -> Anchor:
        design, (d, K) = problem.design, problem.shape
        fold = design.fold(np.zeros((d, K)), rows.gradient, (problem.labels, problem.weights))
        ones = design.map_rows(lambda w: w[:, None], problem.weights)
        means = design.transpose_product(ones)[:, 0]
        entropy = 0.0
        if problem.labels.columns is not None:
            entropy = design.total(
                design.map_rows(
                    lambda C, w: w * (C * np.log(np.where(C > 0, C, 1.0))).sum(axis=1),
                    problem.labels,
                    problem.weights,
                )
            )
        return cls(entropy, means, means[:, None] / K - fold.product)


def frequencies_start(problem: Problem) -> Array:
    """W = 0 but for the intercept, which predicts the class frequencies."""
    W = np.zeros(problem.shape)
    frequencies = Anchor.of(problem).sums[-1]
    W[-1] = np.log(np.maximum(frequencies, 1e-300))
    W[-1] -= W[-1].mean() if (frequencies > 0).all() else W[-1].max()
    return W


def leaves_intercept(problem: Problem) -> bool:
    """Whether there is an intercept, and the penalty does not see it."""
    if not problem.design.intercept:
        return False
    penalty = problem.penalty
    blocks, diagonal = penalty.blocks, penalty.quadratic.diagonal
    if blocks is not None and not blocks.is_bounded and diagonal is not None:
        return bool(blocks.free[-1] and penalty.quadratic.strength * diagonal[-1] == 0)
    one = np.zeros(problem.shape)
    one[-1] = 1.0
    return bool(penalty.value(one) == penalty.value(np.zeros(problem.shape)))


class Certificate:
    """The relative gap (F(W) − a lower bound of min F) / F(W), with the best bound so far."""

    def __init__(self, problem: Problem, lower: float = -np.inf) -> None:
        self.problem, self.lower = problem, lower
        self.leaves_intercept = leaves_intercept(problem)

    def gap(self, point: Point) -> float:
        """The gap at a point; NaN where the penalty has no cheap dual."""
        self.lower = max(self.lower, lower_bound(self.problem, point, self.leaves_intercept))
        if not np.isfinite(self.lower):
            return float("nan")
        return max(point.objective - self.lower, 0.0) / max(abs(point.objective), 1e-300)


def lower_bound(problem: Problem, point: Point, intercept_is_free: bool) -> float:
    """A lower bound of min F from the gradient at a point; −∞ where none is known."""
    anchor, penalty = Anchor.of(problem), problem.penalty
    gradient = point.loss_gradient
    conjugate = float(np.vdot(point.W, gradient)) - point.loss
    if intercept_is_free:
        gradient, conjugate = _mixed(anchor, gradient, conjugate)
    norm = penalty.alpha_max(gradient)
    is_outside = bool(np.isfinite(norm) and norm > penalty.alpha)
    bound = -np.inf
    if not is_outside or penalty.quadratic.strength > 0:
        bound = -conjugate - penalty.conjugate(-gradient)
    if is_outside:
        s = penalty.alpha / norm * (1 - 1e-15)
        mixture = s * conjugate + (1.0 - s) * anchor.entropy
        bound = max(bound, -mixture - penalty.conjugate(-s * gradient))
    return bound


def _mixed(anchor: Anchor, gradient: Array, conjugate: float) -> tuple[Array, float]:
    """Gradient and conjugate of a mixture whose intercept's row is zero."""
    frequencies, excess = anchor.sums[-1], gradient[-1]
    total = frequencies.sum()
    # q = π − excess (1 − t)/t must be in the simplex; the smallest such t costs least.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(excess > 0, excess / frequencies, 0.0)
    worst = float(np.max(ratios))
    if not np.isfinite(worst):
        return gradient, np.inf
    t = worst / (1.0 + worst)
    if t <= 1e-15:
        mixed = gradient.copy()
        mixed[-1] = 0.0
        return mixed, conjugate
    q = np.maximum(frequencies - excess * (1.0 - t) / t, 0.0) / total
    entropy = float((q * np.log(np.where(q > 0, q, 1.0))).sum())
    mixed = np.multiply.outer(t * anchor.means, q)
    mixed -= t * anchor.sums
    mixed += (1.0 - t) * gradient
    mixed[-1] = 0.0
    return mixed, (1.0 - t) * conjugate + t * entropy
