"""The row kernels: what happens to a block of X W between the two products with X.

`weights` are wᵢ = sᵢ / S throughout, so that every sum is already a mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array, Labels
from admm_softmax.kernels.row_kernel import Outcome, declared
from admm_softmax.kernels.softmax import hits, label_scores, minus_labels, softmax
from admm_softmax.kernels.zstep import zstep

NO_SUMS = np.zeros(0)
_TWINS = "admm_softmax.kernels.compiled.rows"


@declared(twin=f"{_TWINS}:predict", new_rows=1)
def predict(scores: Array) -> Outcome:
    """Return the scores X W themselves, as new rows."""
    return None, scores, NO_SUMS


@declared(twin=f"{_TWINS}:hand_over", inputs=("state",), results=1)
def hand_over(scores: Array, R: Array) -> Outcome:
    """R is the state: with a W of no columns, the fold is the plain product X̃ᵀR."""
    return R, None, NO_SUMS


@declared(twin=f"{_TWINS}:evaluate", inputs=("labels", "weights"), sums=("loss", "accuracy"))
def evaluate(scores: Array, labels: Labels, weights: Array) -> Outcome:
    """Loss and accuracy alone."""
    _, lse = softmax(scores)
    return None, None, _loss_and_accuracy(scores, lse, labels, weights)


@declared(
    twin=f"{_TWINS}:gradient",
    single="admm_softmax.kernels.compiled.single_rows:gradient",
    inputs=("labels", "weights"),
    results=1,
    sums=("loss", "accuracy", "curvature"),
)
def gradient(scores: Array, labels: Labels, weights: Array) -> Outcome:
    """R = w (P − C), whose product with Xᵀ is the gradient of the loss.

    The curvature is the mean Σ w p(1−p) / K.
    """
    R, _, sums = _linearise(scores, labels, weights)
    return R, None, sums


@declared(
    twin=f"{_TWINS}:linearise",
    inputs=("labels", "weights"),
    results=1,
    new_rows=1,
    sums=("loss", "accuracy", "curvature"),
)
def linearise(scores: Array, labels: Labels, weights: Array) -> Outcome:
    """As `gradient`, and keeps P for Hessian products at the same W."""
    return _linearise(scores, labels, weights)


def _linearise(scores: Array, labels: Labels, weights: Array) -> Outcome:
    P, lse = softmax(scores)
    R = minus_labels(P, labels) * weights[:, None]
    sums = _loss_and_accuracy(scores, lse, labels, weights)
    return R, P, np.append(sums, _curvature(P, weights))


@declared(twin=f"{_TWINS}:hessian_product", inputs=("state", "weights"), results=1)
def hessian_product(scores: Array, P: Array, weights: Array) -> Outcome:
    """R = w (diag(p) − ppᵀ) xV, where `scores` are X V for a direction V."""
    R = P * (scores - np.einsum("ij,ij->i", P, scores)[:, None])
    return R * weights[:, None], None, NO_SUMS


@declared(twin=f"{_TWINS}:weigh", inputs=("weights",), results=1)
def weigh(scores: Array, weights: Array) -> Outcome:
    """R = w · scores, whose product with Xᵀ is the Gram matrix applied to W."""
    return scores * weights[:, None], None, NO_SUMS


@declared(twin=f"{_TWINS}:start", inputs=("labels", "weights"), results=2, new_rows=1)
def start(scores: Array, labels: Labels, weights: Array) -> Outcome:
    """Z = X W₀ as new rows, and R = [w (C − P(Z)), w Z], what a warm ADMM starts from."""
    P, _ = softmax(scores)
    R = np.concatenate([-minus_labels(P, labels), scores], axis=1)
    return R * weights[:, None], scores, NO_SUMS


#: Facts that both forms of ADMM's kernel share.
_ADMM: dict[str, Any] = {
    "inputs": ("labels", "weights", "state"),
    "new_rows": 1,
    "sums": ("loss", "accuracy", "gap", "size_scores", "size_state", "newton_steps", "curvature"),
    "settings": ("rho", "relaxation", "dual_is_zero"),
    "twin": f"{_TWINS}:admm",
    # Z = XW with the dual that belongs to it: a start like any other (docs/decisions/0019-dask.md).
    "restart": predict,
}


@declared(results=2, **_ADMM)
def admm(scores: Array, labels: Labels, weights: Array, Z: Array, **settings: float) -> Outcome:
    """Relaxation, z-step and dual update of ADMM on one block, and the gradient at W.

    With Ẑ = γ XW + (1−γ) Z and U = (C − P(Z)) / ρ (or 0 at a cold start), this solves ::

        zᵢ⁺ = argmin logsumexp(z) − cᵢ·z + (ρ/2) ‖z − (ẑᵢ − uᵢ)‖²

    Optimality gives U⁺ = U + Z⁺ − Ẑ = (C − P(Z⁺)) / ρ, so the dual is never stored.

    R = [w (C − P(Z⁺)), w (P(XW) − C)]: the dual's contribution to the next right-hand
    side, and the gradient of the loss at W. The sums are loss and accuracy at W,
    Σ w‖z⁺ − xW‖², Σ w‖xW‖², Σ w‖z⁺‖², the mean number of Newton steps, and
    Σ w p(1−p) / K, the mean curvature of the loss at W.
    """
    R, P, Z_new, sums = _admm(scores, labels, weights, Z, **settings)
    gradient_rows = minus_labels(P, labels) * weights[:, None]
    return np.concatenate([R, gradient_rows], axis=1), Z_new, sums


@declared(results=1, **_ADMM)
def admm_without_gradient(
    scores: Array, labels: Labels, weights: Array, Z: Array, **settings: float
) -> Outcome:
    """As `admm`, with R = w (C − P(Z⁺)) alone: a third less work."""
    R, _, Z_new, sums = _admm(scores, labels, weights, Z, **settings)
    return R, Z_new, sums


def _admm(
    scores: Array,
    labels: Labels,
    weights: Array,
    Z: Array,
    *,
    rho: float,
    relaxation: float,
    dual_is_zero: float,
) -> tuple[Array, Array, Array, Array]:
    """w (C − P(Z⁺)), P(XW), Z⁺ and the sums."""
    P, lse = softmax(scores)
    V = scores if relaxation == 1.0 else relaxation * scores + (1.0 - relaxation) * Z
    if not dual_is_zero:
        V = V + scaled_residual(Z, labels, rho)
    Z_new, P_new, steps = zstep(V, labels, rho, Z)
    sums = np.array(
        [
            *_loss_and_accuracy(scores, lse, labels, weights),
            _weighted_square(Z_new - scores, weights),
            _weighted_square(scores, weights),
            _weighted_square(Z_new, weights),
            weights @ steps,
            _curvature(P, weights),
        ]
    )
    return -minus_labels(P_new, labels) * weights[:, None], P, Z_new, sums


@declared(
    twin=f"{_TWINS}:misfit",
    inputs=("labels", "weights", "state"),
    results=1,
    settings=("rho", "dual_is_zero"),
)
def misfit(
    scores: Array, labels: Labels, weights: Array, Z: Array, *, rho: float, dual_is_zero: float
) -> Outcome:
    """R = w ρ (Z + U − XW): ρ times the residual rows of the W-step's least squares.

    Forming the residual row by row before the product with Xᵀ is what gives the
    correction of semi-normal equations its accuracy (Björck, 1987).
    """
    R = rho * (Z - scores)
    if not dual_is_zero:
        R -= rho * scaled_residual(Z, labels, rho)
    return R * weights[:, None], None, NO_SUMS


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
