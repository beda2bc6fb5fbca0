"""Cholesky factors that live on the device, and their solves."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from admm_softmax._arrays import Array
from admm_softmax.design.torch.arrays import to_device

#: Steps of the estimate of ‖H⁻¹‖₁; it seldom takes more than three.
ESTIMATE_STEPS = 5


class DeviceFactor:
    """H = L Lᵀ on a device; right-hand sides go there, and solutions come back.

    info : 0, or the order of the first leading minor that is not positive
    rcond : an estimate of 1 / (‖H‖₁ ‖H⁻¹‖₁), 0 where H is not positive definite
    """

    def __init__(self, H: Any) -> None:
        self.L, info = torch.linalg.cholesky_ex(H)
        self.info = int(info)
        self.rcond = 0.0
        if self.info == 0:
            norm = float(H.abs().sum(dim=0).max()) * _norm_of_inverse(self._solved, H)
            self.rcond = 1.0 / norm if np.isfinite(norm) and norm > 0 else 0.0

    def solve(self, B: Array) -> Array:
        """H⁻¹B, of B's type."""
        there = to_device(B, self.L.dtype, self.L.device)
        return np.asarray(self._solved(there).cpu().numpy(), dtype=B.dtype)

    def _solved(self, B: Any) -> Any:
        half = torch.linalg.solve_triangular(self.L, B, upper=False)
        return torch.linalg.solve_triangular(self.L.mT, half, upper=True)


def factorised(H: Array, device: Any, double: bool) -> DeviceFactor | None:
    """The factor of a symmetric matrix; None where the device has no room, or no such precision."""
    if H.dtype == np.float64 and not double:
        return None
    try:
        return DeviceFactor(torch.from_numpy(H).to(device))
    except (torch.OutOfMemoryError, NotImplementedError):
        return None


def _norm_of_inverse(solve: Any, H: Any) -> float:
    """‖H⁻¹‖₁ from below, by a few solves (Hager, *SIAM J. Sci. Stat. Comput.* 5, 1984)."""
    x = H.new_full((len(H), 1), 1.0 / len(H))
    for _ in range(ESTIMATE_STEPS):
        y = solve(x)
        z = solve(torch.where(y < 0, -1.0, 1.0).to(y.dtype))
        steepest = int(z.abs().argmax())
        if float(z[steepest].abs()) <= float((z * x).sum()):
            break
        x = torch.zeros_like(x)
        x[steepest] = 1.0
    return float(y.abs().sum())
