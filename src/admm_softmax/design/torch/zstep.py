"""The z-step of all rows of a block at once, on the device: `kernels.zstep`, in torch.

The equations and the safeguard are those of `kernels.zstep`. Rows that have converged stay where
they are while the others go on: leaving them out would need their number on this machine at every
step. Wright's ω is had from its logarithm y, the root of eʸ + y = x, by Newton from the right,
where the function is convex and increasing: no step passes the root.
"""

from __future__ import annotations

from typing import Any

import torch

from admm_softmax.kernels.zstep import MOST_NEWTON_STEPS, MOST_ROOT_STEPS

#: Newton's steps to log ω; from the starts below, six reach rounding in double.
OMEGA_STEPS = 8


def softmax(scores: Any) -> tuple[Any, Any]:
    """P = softmax(scores) row by row, and the row's logsumexp."""
    top = scores.amax(dim=1, keepdim=True)
    P = torch.exp(scores - top)
    total = P.sum(dim=1, keepdim=True)
    return P / total, (torch.log(total) + top)[:, 0]


def minus_labels(P: Any, labels: Any) -> Any:
    """P − C as a new tensor; labels are codes or soft labels."""
    if labels.ndim == 2:
        return P - labels
    return P.scatter_add(1, labels[:, None], P.new_full((len(P), 1), -1.0))


def zstep(V: Any, labels: Any, rho: float, Z: Any) -> tuple[Any, Any, Any]:
    """Z⁺, P = softmax(Z⁺) and the number of Newton steps of each row, starting from Z."""
    Z, P, steps, hard = _newton(V, labels, rho, Z)
    rows = hard.nonzero()[:, 0]
    if len(rows):
        start = _from_scalar_equation(V[rows], labels[rows], rho)
        own, P_own, more, _ = _newton(V[rows], labels[rows], rho, start)
        Z, P = Z.index_copy(0, rows, own), P.index_copy(0, rows, P_own)
        steps = steps.index_add(0, rows, more)
    return Z, P, steps


def _newton(V: Any, labels: Any, rho: float, Z: Any) -> tuple[Any, Any, Any, Any]:
    """Newton on all rows; also which rows have stopped improving before they converged."""
    P, G = _gradient(Z, V, labels, rho)
    size = G.abs().amax(dim=1)
    steps = torch.zeros_like(size)
    active = size > _rounding(Z, V, rho)
    hard = torch.zeros_like(active)
    for _ in range(MOST_NEWTON_STEPS):
        if not bool(active.any()):
            break
        Z_new = Z - _newton_direction(P, G, rho)
        P_new, G_new = _gradient(Z_new, V, labels, rho)
        size_new = G_new.abs().amax(dim=1)
        steps += active
        moves = active & (size_new < size)  # not where it is NaN
        hard |= active & ~moves
        column = moves[:, None]
        Z, P, G = (
            torch.where(column, new, old) for new, old in ((Z_new, Z), (P_new, P), (G_new, G))
        )
        size = torch.where(moves, size_new, size)
        active = moves & (size > _rounding(Z, V, rho))
    return Z, P, steps, hard | active


def _gradient(Z: Any, V: Any, labels: Any, rho: float) -> tuple[Any, Any]:
    P, _ = softmax(Z)
    return P, minus_labels(P, labels) + rho * (Z - V)


def _newton_direction(P: Any, G: Any, rho: float) -> Any:
    q = P / (P + rho)
    common = (q * G).sum(dim=1) / (rho * q.sum(dim=1))
    return G / (P + rho) + q * common[:, None]


def _rounding(Z: Any, V: Any, rho: float) -> Any:
    """The size at which a row's gradient is rounding noise, in the precision of Z."""
    z, v = Z.abs().amax(dim=1), V.abs().amax(dim=1)
    return 4.0 * torch.finfo(Z.dtype).eps * (1.0 + z + rho * (z + v))


def _from_scalar_equation(V: Any, labels: Any, rho: float) -> Any:
    """Solve φ(λ) = 0 by Newton from the left, and return z = λ + log p."""
    A = V - minus_labels(torch.zeros_like(V), labels) / rho
    log_rho = torch.log(V.new_tensor(rho))
    lam = A.amax(dim=1) - 1.0 / rho
    eps = torch.finfo(V.dtype).eps
    for _ in range(MOST_ROOT_STEPS):
        omega = torch.exp(_log_omega(A - (lam + log_rho)[:, None]))
        excess = rho * omega.sum(dim=1) - 1.0
        step = excess / (rho * (omega / (1.0 + omega)).sum(dim=1))
        lam = lam + step.clamp(min=0.0)  # a negative step is rounding: the root is reached
        if bool((step <= 2.0 * eps * (1.0 + lam.abs())).all()):
            break
    base = (lam + log_rho)[:, None]
    return base + _log_omega(A - base)


def _log_omega(x: Any) -> Any:
    """log ω(x), the root y of eʸ + y = x."""
    y = torch.where(x > 1.0, torch.log(x.clamp(min=1.0)), x.clamp(max=0.0))
    for _ in range(OMEGA_STEPS):
        e = torch.exp(y)
        y = y - (e + y - x) / (1.0 + e)
    return y
