"""The row kernels: what happens to a block of X W between the two products with X.

`weights` are wᵢ = sᵢ / S throughout, so that every sum is already a mean.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from admm_softmax._arrays import Array, Labels
from admm_softmax.kernels.softmax import hits, label_scores, minus_labels, softmax
from admm_softmax.kernels.zstep import zstep

Outcome: TypeAlias = tuple[Array | None, tuple[Array, ...], Array]

NO_SUMS = np.zeros(0)


def predict(scores: Array) -> Outcome:
    """Hand the scores back as rows: X W itself."""
    return None, (scores,), NO_SUMS


def hand_over(scores: Array, R: Array) -> Outcome:
    """R as it is: with a W of no columns, the fold is the plain product X̃ᵀR."""
    return R, (), NO_SUMS


def evaluate(scores: Array, labels: Labels, weights: Array) -> Outcome:
    """Sums: loss, accuracy."""
    _, lse = softmax(scores)
    return None, (), _loss_and_accuracy(scores, lse, labels, weights)


def gradient(scores: Array, labels: Labels, weights: Array) -> Outcome:
    """R = w (P − C), whose product with Xᵀ is the gradient of the loss.

    Sums: loss, accuracy, and the mean curvature Σ w p(1−p) / K.
    """
    R, _, sums = linearise(scores, labels, weights)
    return R, (), sums


def linearise(scores: Array, labels: Labels, weights: Array) -> Outcome:
    """As `gradient`, and keeps P for Hessian products at the same W."""
    P, lse = softmax(scores)
    R = minus_labels(P, labels) * weights[:, None]
    sums = _loss_and_accuracy(scores, lse, labels, weights)
    return R, (P,), np.append(sums, _curvature(P, weights))


def hessian_product(scores: Array, P: Array, weights: Array) -> Outcome:
    """R = w (diag(p) − ppᵀ) xV, where `scores` are X V for a direction V."""
    R = P * (scores - np.einsum("ij,ij->i", P, scores)[:, None])
    return R * weights[:, None], (), NO_SUMS


def weigh(scores: Array, weights: Array) -> Outcome:
    """R = w · scores, whose product with Xᵀ is the Gram matrix applied to W."""
    return scores * weights[:, None], (), NO_SUMS


def start(scores: Array, labels: Labels, weights: Array) -> Outcome:
    """Z = X W₀ as rows, and R = [w (C − P(Z)), w Z], what a warm ADMM starts from."""
    P, _ = softmax(scores)
    R = np.concatenate([-minus_labels(P, labels), scores], axis=1)
    return R * weights[:, None], (scores,), NO_SUMS


def admm(
    scores: Array,
    labels: Labels,
    weights: Array,
    Z: Array,
    *,
    rho: float,
    relaxation: float,
    dual_is_zero: bool,
    with_gradient: bool = True,
) -> Outcome:
    """Relaxation, z-step and dual update of ADMM on one block.

    With Ẑ = γ XW + (1−γ) Z and U = (C − P(Z)) / ρ (or 0 at a cold start), this solves ::

        zᵢ⁺ = argmin logsumexp(z) − cᵢ·z + (ρ/2) ‖z − (ẑᵢ − uᵢ)‖²

    Optimality gives U⁺ = U + Z⁺ − Ẑ = (C − P(Z⁺)) / ρ, so the dual is never stored.

    R = [w (C − P(Z⁺)), w (P(XW) − C)]: the dual's contribution to the next right-hand
    side and, `with_gradient`, the gradient of the loss at W. The sums are, in order: loss
    and accuracy at W, Σ w‖z⁺ − xW‖², Σ w‖xW‖², Σ w‖z⁺‖², mean Newton steps, and
    Σ w p(1−p) / K, the mean curvature of the loss at W.
    """
    P, lse = softmax(scores)
    loss_and_accuracy = _loss_and_accuracy(scores, lse, labels, weights)
    V = scores if relaxation == 1.0 else relaxation * scores + (1.0 - relaxation) * Z
    if not dual_is_zero:
        V = V + scaled_residual(Z, labels, rho)
    Z_new, P_new, steps = zstep(V, labels, rho, Z)
    gap = Z_new - scores
    w = weights[:, None]
    R = -minus_labels(P_new, labels) * w
    if with_gradient:
        R = np.concatenate([R, minus_labels(P, labels) * w], axis=1)
    sums = np.array(
        [
            *loss_and_accuracy,
            _weighted_square(gap, weights),
            _weighted_square(scores, weights),
            _weighted_square(Z_new, weights),
            weights @ steps,
            _curvature(P, weights),
        ]
    )
    return R, (Z_new,), sums


def misfit(
    scores: Array, labels: Labels, weights: Array, Z: Array, *, rho: float, dual_is_zero: bool
) -> Outcome:
    """R = w ρ (Z + U − XW): ρ times the residual rows of the W-step's least squares.

    Forming the residual row by row before the product with Xᵀ is what gives the
    correction of semi-normal equations its accuracy (Björck, 1987).
    """
    R = rho * (Z - scores)
    if not dual_is_zero:
        R -= rho * scaled_residual(Z, labels, rho)
    return R * weights[:, None], (), NO_SUMS


def scaled_residual(Z: Array, labels: Labels, rho: float) -> Array:
    """Return (P(Z) − C) / ρ = −U, the one place where the dual is scaled by ρ."""
    P, _ = softmax(Z)
    return minus_labels(P, labels) / rho


def _loss_and_accuracy(scores: Array, lse: Array, labels: Labels, weights: Array) -> Array:
    loss = weights @ (lse - label_scores(scores, labels))
    return np.array([loss, weights @ hits(scores, labels)])


def _curvature(P: Array, weights: Array) -> float:
    """Σᵢ wᵢ mean_j p_ij (1 − p_ij), the mean diagonal of the loss's Hessian in the scores."""
    return float(weights @ (1.0 - np.einsum("ij,ij->i", P, P)) / P.shape[1])


def _weighted_square(rows: Array, weights: Array) -> float:
    return float(weights @ np.einsum("ij,ij->i", rows, rows))


def function_and_settings(kernel: Callable[..., Any]) -> tuple[Any, dict[str, Any]]:
    """A kernel, and the settings that `partial` has bound to it."""
    return (kernel.func, kernel.keywords) if isinstance(kernel, partial) else (kernel, {})


#: The kernels whose first row input is the labels.
LABELLED = frozenset({evaluate, gradient, linearise, start, admm, misfit})
