"""Choosing ρ: fixed, by the curvature of the loss, or by balancing residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from admm_softmax._checks import check_real
from admm_softmax.problem import Problem

#: No single change of ρ exceeds this factor.
LARGEST_CHANGE = 10.0
#: Residual balancing acts when one relative residual exceeds the other by this factor …
BALANCE_FACTOR = 10.0
#: … every BALANCE_EVERY iterations, up to iteration BALANCE_UNTIL.
BALANCE_EVERY = 5
BALANCE_UNTIL = 100
#: With rho="auto", ρ may change after these iterations only: it must settle for convergence.
FOLLOW_AT = (2, 4, 8, 16, 32, 64, 128, 256, 512)
#: … and only if ρ and the curvature differ by this factor.
FOLLOW_FACTOR = 1.5


@dataclass(frozen=True)
class Residuals:
    """Boyd's residuals of one iteration, their scales and tolerances, and the curvature."""

    primal: float
    dual: float
    primal_scale: float
    dual_scale: float
    primal_tolerance: float
    dual_tolerance: float
    #: Σᵢ wᵢ mean_j p_ij (1 − p_ij): the mean diagonal of the loss's Hessian in Z.
    curvature: float

    def met(self) -> bool:
        """Both residuals are within tolerances that are not zero."""
        within = self.primal <= self.primal_tolerance and self.dual <= self.dual_tolerance
        return within and self.primal_tolerance > 0 and self.dual_tolerance > 0


def check_rho(rho: Any) -> None:
    """Raise unless rho is "auto" or a positive number."""
    if isinstance(rho, str):
        if rho != "auto":
            raise ValueError(f"rho must be a positive number or 'auto', got {rho!r}")
    else:
        check_real("rho", rho, "a positive number or 'auto'", above=0.0)


def first_rho(rho: float | str, problem: Problem) -> float:
    """The ρ of the first iteration; for "auto", a quarter of the curvature at W = 0.

    The curvature falls as the fit improves, and too large a ρ slows its own correction.
    """
    if isinstance(rho, str):
        K = problem.n_classes
        return 0.25 * (1.0 - 1.0 / K) / K
    return float(rho)


def next_rho(
    setting: float | str, adaptive: bool, rho: float, iteration: int, residuals: Residuals
) -> float:
    """The ρ for the next iteration; usually the same, because a change costs a factorisation."""
    if adaptive:
        return _balanced(rho, iteration, residuals)
    if setting == "auto" and iteration in FOLLOW_AT:
        return _followed(rho, residuals.curvature)
    return rho


def _followed(rho: float, curvature: float) -> float:
    """ρ = mean curvature of the loss at W, once the two have drifted apart.

    Over seven data sets and α from 1e-1 to 1e-5 the ρ that needed the fewest iterations
    was the curvature at the solution within a factor of two, from 0.2 down to 2e-5.
    """
    if 1 / FOLLOW_FACTOR < curvature / rho < FOLLOW_FACTOR:
        return rho
    # An iterate that overshot has saturated probabilities and next to no curvature.
    return float(np.clip(curvature, rho / LARGEST_CHANGE, rho * LARGEST_CHANGE))


def _balanced(rho: float, iteration: int, residuals: Residuals) -> float:
    """Residual balancing with relative residuals (Wohlberg, arXiv 1704.06209).

    Relative, because the primal residual grows with √n and the dual one does not.
    """
    if iteration % BALANCE_EVERY or iteration > BALANCE_UNTIL:
        return rho
    primal = residuals.primal / max(residuals.primal_scale, 1e-300)
    dual = residuals.dual / max(residuals.dual_scale, 1e-300)
    if (
        max(primal, dual) < 1e-14
        or 1 / BALANCE_FACTOR < primal / max(dual, 1e-300) < BALANCE_FACTOR
    ):
        return rho
    change = float(np.sqrt(primal / max(dual, 1e-300)))
    return rho * float(np.clip(change, 1 / LARGEST_CHANGE, LARGEST_CHANGE))
