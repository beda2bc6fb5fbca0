"""The row kernels in torch. `kernels.rows` and `kernels.targets` have the formulas and derivations.

Every function takes scores and row tensors of one block, in the precision that the design computes
in, and returns R, new rows and the sums as one tensor: nothing leaves the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from admm_softmax.design.torch.zstep import minus_labels, softmax, zstep
from admm_softmax.kernels.row_kernel import RowKernel

#: R (or None), new rows (or None), and the sums.
Outcome: TypeAlias = tuple[Any, Any, Any]


def run(kernel: RowKernel, scores: Any, *rows: Any) -> Outcome:
    """The torch version of a kernel on a block, with its settings."""
    function = KERNELS.get(kernel.name)
    if function is None:
        raise NotImplementedError(
            f"the kernel {kernel.name} has no torch version: use an X in this machine's memory"
        )
    settings = dict(zip(kernel.settings, kernel.values, strict=True))
    return function(scores, *rows, **settings)


def _predict(scores: Any) -> Outcome:
    return None, scores, scores.new_zeros(0)


def _hand_over(scores: Any, R: Any) -> Outcome:
    return R, None, R.new_zeros(0)


def _evaluate(scores: Any, labels: Any, weights: Any) -> Outcome:
    _, lse = softmax(scores)
    return None, None, torch.stack(_loss_and_accuracy(scores, lse, labels, weights))


def _gradient(scores: Any, labels: Any, weights: Any) -> Outcome:
    R, _, sums = _linearise(scores, labels, weights)
    return R, None, sums


def _linearise(scores: Any, labels: Any, weights: Any) -> Outcome:
    P, lse = softmax(scores)
    R = minus_labels(P, labels) * weights[:, None]
    sums = _loss_and_accuracy(scores, lse, labels, weights)
    return R, P, torch.stack([*sums, _curvature(P, weights)])


def _hessian_product(scores: Any, P: Any, weights: Any) -> Outcome:
    R = P * (scores - (P * scores).sum(dim=1, keepdim=True))
    return R * weights[:, None], None, scores.new_zeros(0)


def _weigh(scores: Any, weights: Any) -> Outcome:
    return scores * weights[:, None], None, scores.new_zeros(0)


def _start(scores: Any, labels: Any, weights: Any) -> Outcome:
    P, _ = softmax(scores)
    R = torch.cat([-minus_labels(P, labels), scores], dim=1)
    return R * weights[:, None], scores, scores.new_zeros(0)


def _admm(scores: Any, labels: Any, weights: Any, Z: Any, **settings: float) -> Outcome:
    R, P, Z_new, sums = _admm_rows(scores, labels, weights, Z, **settings)
    of_gradient = minus_labels(P, labels) * weights[:, None]
    return torch.cat([R, of_gradient], dim=1), Z_new, sums


def _admm_without_gradient(
    scores: Any, labels: Any, weights: Any, Z: Any, **settings: float
) -> Outcome:
    R, _, Z_new, sums = _admm_rows(scores, labels, weights, Z, **settings)
    return R, Z_new, sums


def _admm_rows(
    scores: Any,
    labels: Any,
    weights: Any,
    Z: Any,
    *,
    rho: float,
    relaxation: float,
    dual_is_zero: float,
) -> tuple[Any, Any, Any, Any]:
    """w (C − P(Z⁺)), P(XW), Z⁺ and the sums."""
    P, lse = softmax(scores)
    V = scores if relaxation == 1.0 else relaxation * scores + (1.0 - relaxation) * Z
    if not dual_is_zero:
        V = V + _scaled_residual(Z, labels, rho)
    Z_new, P_new, steps = zstep(V, labels, rho, Z)
    sums = torch.stack(
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


def _misfit(
    scores: Any, labels: Any, weights: Any, Z: Any, *, rho: float, dual_is_zero: float
) -> Outcome:
    R = rho * (Z - scores)
    if not dual_is_zero:
        R = R - rho * _scaled_residual(Z, labels, rho)
    return R * weights[:, None], None, scores.new_zeros(0)


def _two_class_rows(scores: Any, C: Any) -> Outcome:
    weights, margins = C.abs(), torch.where(C > 0, scores, -scores)
    e = torch.exp(-margins.abs())
    inverse = 1.0 / (1.0 + e)
    of_other = torch.where(margins > 0, e * inverse, inverse)
    loss = weights * (torch.log1p(e) + (-margins).clamp(min=0.0))
    curvature = weights * e * inverse**2
    hits = weights * ((scores > 0) == (C > 0))
    sums = torch.cat([part.sum(dim=0) for part in (loss, curvature, hits)])
    return -C * of_other, None, sums


def _softmax_rows(scores: Any, C: Any, *, width: float) -> Outcome:
    b, k = len(scores), int(width)
    flat, labels = scores.reshape(-1, k), C.reshape(-1, k)
    P, lse = softmax(flat)
    w = labels.sum(dim=1)
    loss = w * lse - (labels * flat).sum(dim=1)
    curvature = w * (1.0 - (P * P).sum(dim=1)) / k
    found = labels.gather(1, flat.argmax(dim=1, keepdim=True))[:, 0]
    sums = torch.cat([part.reshape(b, -1).sum(dim=0) for part in (loss, curvature, found)])
    return (w[:, None] * P - labels).reshape(b, -1), None, sums


def _scaled_residual(Z: Any, labels: Any, rho: float) -> Any:
    """(P(Z) − C) / ρ = −U."""
    P, _ = softmax(Z)
    return minus_labels(P, labels) / rho


def _loss_and_accuracy(scores: Any, lse: Any, labels: Any, weights: Any) -> list[Any]:
    if labels.ndim == 1:
        own, truth = scores.gather(1, labels[:, None])[:, 0], labels
    else:
        own, truth = (scores * labels).sum(dim=1), labels.argmax(dim=1)
    hits = (scores.argmax(dim=1) == truth).to(scores.dtype)
    return [weights @ (lse - own), weights @ hits]


def _curvature(P: Any, weights: Any) -> Any:
    return weights @ (1.0 - (P * P).sum(dim=1)) / P.shape[1]


def _weighted_square(rows: Any, weights: Any) -> Any:
    return weights @ (rows * rows).sum(dim=1)


#: By the names of the kernels.
KERNELS: dict[str, Callable[..., Outcome]] = {
    "predict": _predict,
    "hand_over": _hand_over,
    "evaluate": _evaluate,
    "gradient": _gradient,
    "linearise": _linearise,
    "hessian_product": _hessian_product,
    "weigh": _weigh,
    "start": _start,
    "admm": _admm,
    "admm_without_gradient": _admm_without_gradient,
    "misfit": _misfit,
    "two_class_rows": _two_class_rows,
    "softmax_rows": _softmax_rows,
}
