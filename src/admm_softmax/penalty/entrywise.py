"""Penalties that treat every entry of W alone: lasso, elastic net, bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._cached import cached_property
from admm_softmax.penalty.blocks import Blocks
from admm_softmax.penalty.rough import (
    Rough,
    check_factors,
    check_share,
    quadratic_over,
)


@dataclass(frozen=True, eq=False)
class Lasso(Rough):
    """α [ Σ f_j |W_jk| + (ridge/2) Σ f_j W_jk² ]: many entries of W are exactly zero.

    factors : f_j ≥ 0, one per feature, 1 by default; 0 leaves a feature free
    ridge, operator : a Tikhonov term besides, see `Rough`

    With a reference, W − W_ref takes the place of W.

    >>> Lasso().over(2, 0.5, intercept=False, penalize_intercept=False, reference=None).prox(
    ...     np.array([[2.0], [-0.3]]), 1.0)
    array([[1.5],
           [0. ]])
    """

    factors: Any = field(default=None, kw_only=True)

    @property
    def l1_share(self) -> float:
        """What Σ f|W| is multiplied by, beside α."""
        return 1.0

    @property
    def thresholds(self) -> Array:
        """One per row of W."""
        return self.alpha * self.l1_share * self.scale

    @cached_property
    def blocks(self) -> Blocks:
        """Entries, each with its threshold."""
        return Blocks(l1=self.thresholds)

    def alpha_max(self, loss_gradient: Array) -> float:
        """max |∇loss| / f over the features that are not free."""
        factors = self.l1_share * self.scale
        held = factors > 0
        if not held.any():
            return np.inf
        # Free features become zero: maxima over rows that are short would take longer.
        return float(np.abs(loss_gradient / np.where(held, factors, np.inf)[:, None]).max())

    def _row_factors(self, n_features: int) -> Array:
        return check_factors(self.factors, n_features)

    def _conjugate(self, V: Array, ridge: Array) -> float:
        thresholds = self.thresholds[:, None] * (1 + 1e-12)
        if not ridge.any():
            return 0.0 if (np.abs(V) <= thresholds).all() else np.inf
        excess = np.maximum(np.abs(V) - thresholds, 0.0)
        return quadratic_over(excess, np.broadcast_to(ridge[:, None], V.shape))


@dataclass(frozen=True, eq=False)
class ElasticNet(Lasso):
    """α [ r Σ f_j |W_jk| + ((1 − r)/2) Σ f_j W_jk² ], with r = l1_ratio.

    l1_ratio : r from 0 (Tikhonov's penalty) to 1 (the lasso)
    factors : f_j ≥ 0, one per feature, 1 by default; 0 leaves a feature free
    operator : L of the second term, ((1 − r)/2) ‖L (W − W_ref)‖²

    >>> ElasticNet(0.9).l1_share
    0.9
    """

    l1_ratio: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("l1_ratio", self.l1_ratio)
        if self.ridge:
            raise ValueError(f"ElasticNet has its ridge from l1_ratio, got ridge={self.ridge}")

    @property
    def l1_share(self) -> float:
        """r."""
        return self.l1_ratio

    @property
    def ridge_share(self) -> float:
        """1 − r."""
        return 1.0 - self.l1_ratio


@dataclass(frozen=True, eq=False)
class Bounds(Rough):
    """lower ≤ W ≤ upper, with Tikhonov's penalty (α ridge/2) ‖L (W − W_ref)‖² within.

    lower, upper : numbers, or one per feature, or d × K; infinite where there is none.
        The default is W ≥ 0. The intercept has no bounds.
    ridge, operator : of the Tikhonov term; ridge=0 leaves the bounds alone

    >>> from sklearn.datasets import load_digits
    >>> from admm_softmax import SoftmaxRegression, penalties
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = SoftmaxRegression(alpha=1e-2, penalty=penalties.Bounds(lower=0)).fit(X / 16, y)
    >>> bool(clf.coef_.min() >= 0)
    True
    """

    lower: Any = 0.0
    upper: Any = np.inf
    ridge: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        lower, upper = (np.asarray(b, dtype=np.float64) for b in (self.lower, self.upper))
        for name, bound in (("lower", lower), ("upper", upper)):
            if bound.ndim > 2 or np.isnan(bound).any():
                raise ValueError(f"{name} must be a number, one per feature, or d × K, got {bound}")

    @property
    def includes_zero(self) -> bool:
        """Whether W = 0 is within the bounds."""
        return bool((np.asarray(self.lower) <= 0).all() and (np.asarray(self.upper) >= 0).all())

    @property
    def limits(self) -> tuple[Array, Array]:
        """Lower and upper bounds, rows of W by 1 or K; infinite for the intercept."""
        return self._limits(self.lower, -np.inf, "lower"), self._limits(self.upper, np.inf, "upper")

    def _limits(self, given: Any, none: float, name: str) -> Array:
        d, rows = self.features.n_features, len(self.scale)
        bound = np.asarray(given, dtype=np.float64)
        bound = bound[:, None] if bound.ndim == 1 else np.atleast_2d(bound)
        if len(bound) not in (1, d):
            raise ValueError(
                f"{name} must have one entry per feature, {d} in all, got {len(bound)}"
            )
        whole = np.full((rows, bound.shape[1]), none)
        whole[:d] = bound
        return whole

    @cached_property
    def blocks(self) -> Blocks:
        """Entries within limits."""
        lower, upper = self.limits
        if (lower > upper).any():
            raise ValueError(f"lower must be ≤ upper, got {self.lower} and {self.upper}")
        if self.reference is not None:
            lower, upper = lower - self.reference, upper - self.reference
        return Blocks(l1=np.zeros(len(self.scale)), lower=lower, upper=upper)

    def resolution(self, tol: float) -> float:
        """Return `tol`: the bounds have no strength."""
        return tol

    def conjugate(self, V: Array) -> float:
        """Σ v w − (ridge/2)(w − w_ref)² at the best w within the bounds."""
        ridge = self._ridge_rows()
        if ridge is None:
            return np.inf
        lower, upper = self.limits
        curvature = np.broadcast_to(ridge[:, None], V.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(V == 0, 0.0, V / curvature)
        best = np.clip(self._back(steps), lower, upper)
        if not np.isfinite(best).all():
            return np.inf
        return float(np.vdot(V, best) - 0.5 * (curvature * self._offset(best) ** 2).sum())

    def _conjugate(self, V: Array, ridge: Array) -> float:
        raise NotImplementedError("Bounds has its own conjugate")
