"""What penalties with kinks share: binding to features, the quadratic part, the reference."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._cached import cached_property
from admm_softmax._checks import check_real
from admm_softmax.penalty.base import Penalty, Quadratic, Split
from admm_softmax.penalty.blocks import Blocks
from admm_softmax.penalty.tikhonov import Tikhonov, check_alpha

#: No fit is asked for more than this because α is small; float32 data can still give it.
FINEST = 1e-6


class Bound(NamedTuple):
    """A penalty's features: one factor per row of W, and q with the strength 1.

    scale : factors of the rows, 0 for rows that are free, the intercept among them
    quadratic : ½ ‖L (W − W_ref)‖²
    n_features : rows without the intercept
    """

    scale: Array
    quadratic: Quadratic
    n_features: int


@dataclass(frozen=True, eq=False)
class Rough(Penalty):
    """α [ h₁(W − W_ref) + (ridge/2) ‖L (W − W_ref)‖² ], h₁ convex and with kinks.

    ridge : the Tikhonov term's share, 0 for none
    operator : its L, as in `Tikhonov.over`; None is the identity, times √factor where the
        penalty has factors
    alpha : the strength; an estimator sets it
    """

    ridge: float = field(default=0.0, kw_only=True)
    operator: Any = field(default=None, kw_only=True)
    alpha: float = field(default=1.0, kw_only=True)
    bound: Bound | None = field(default=None, kw_only=True, repr=False)

    is_smooth = False

    def __post_init__(self) -> None:
        check_real("ridge", self.ridge, "a number ≥ 0", above=0.0, closed=True)
        check_alpha(self.alpha)

    def over(
        self, n_features: int, alpha: float, *, intercept: bool, penalize_intercept: bool,
        reference: Array | None,
    ) -> Self:  # fmt: skip
        """The penalty for `n_features` columns of X and, perhaps, an intercept."""
        factors = self._row_factors(n_features)
        last = np.full(int(intercept), float(penalize_intercept))
        scale = np.concatenate([factors, last])
        if self.operator is None:
            quadratic = Quadratic.scaled(1.0, np.sqrt(scale), reference)
        else:
            quadratic = Tikhonov.over(
                n_features,
                1.0,
                operator=self.operator,
                reference=reference,
                intercept=intercept,
                penalize_intercept=penalize_intercept,
            ).quadratic
        return replace(self, alpha=alpha, bound=Bound(scale, quadratic, n_features))

    def with_alpha(self, alpha: float) -> Self:
        """The same penalty with another strength."""
        return replace(self, alpha=alpha)

    def _row_factors(self, n_features: int) -> Array:
        """One factor per feature."""
        return np.ones(n_features)

    @property
    def ridge_share(self) -> float:
        """What the Tikhonov term is multiplied by, beside α."""
        return self.ridge

    @property
    def features(self) -> Bound:
        """What `over` has found out about the features."""
        if self.bound is None:
            raise ValueError(f"{type(self).__name__} needs features first: call over")
        return self.bound

    @property
    def scale(self) -> Array:
        """The factor of every row of W."""
        return self.features.scale

    @cached_property
    def quadratic(self) -> Quadratic:
        """(α ridge/2) ‖L (W − W_ref)‖²."""
        return self.features.quadratic.with_strength(self.alpha * self.ridge_share)

    def _offset(self, W: Array) -> Array:
        return W if self.reference is None else W - self.reference

    def _back(self, offset: Array) -> Array:
        return offset if self.reference is None else offset + self.reference

    def _ridge_rows(self) -> Array | None:
        """The diagonal of q's Hessian, None where it is not diagonal."""
        diagonal = self.features.quadratic.diagonal
        return None if diagonal is None else self.alpha * self.ridge_share * diagonal

    def conjugate(self, V: Array) -> float:
        """R*(V) = sup ⟨V, W⟩ − R(W), infinite where there is no cheap formula."""
        ridge = self._ridge_rows()
        if ridge is None:
            return np.inf
        shift = 0.0 if self.reference is None else float(np.vdot(V, self.reference))
        return shift + self._conjugate(V, ridge)

    def resolution(self, tol: float) -> float:
        """A tenth of α at most: a looser fit would not decide which entries are zero."""
        return min(tol, max(0.1 * self.alpha, FINEST)) if self.alpha > 0 else tol

    def rough_value(self, W: Array) -> float:
        """h(W), from the blocks."""
        return self._parts.value(self._offset(W))

    def prox(self, V: Array, step: float) -> Array:
        """The W that minimises h(W) + ‖W − V‖² / (2 step), from the blocks."""
        return self._back(self._parts.prox(self._offset(V), step))

    @property
    def split(self) -> Split:
        """V = W. The V-step takes q too, where that is a ridge that the prox has a formula for.

        h(v) + (r/2) v² + (v − u)²/(2s) is, up to a constant, h(v) + (v − u/(1 + rs))²/(2s′) with
        s′ = s/(1 + rs): the prox of h with other steps.
        """
        ridge = self._ridge_rows()
        if ridge is None or not self._takes_steps(ridge):
            return Split(None, self.prox)

        def prox(V: Array, step: float) -> Array:
            shrink = 1.0 / (1.0 + step * ridge)
            return self._back(self._prox_by_rows(shrink[:, None] * self._offset(V), step * shrink))

        return Split(None, self.prox, with_quadratic=prox)

    def _takes_steps(self, rows: Array) -> bool:
        """Whether the prox has a formula where every row has such a step of its own."""
        return self._parts.is_constant(rows)

    def _prox_by_rows(self, offset: Array, steps: Array) -> Array:
        """The prox around W_ref = 0 with a step per row."""
        return self._parts.prox(offset, steps)

    def optimality(self, W: Array, loss_gradient: Array) -> Array:
        """The smallest element of ∇loss + ∂R(W), from the blocks."""
        smooth = loss_gradient
        if self.quadratic.strength:
            smooth = loss_gradient + self.gradient(W)
        return self._parts.optimality(self._offset(W), smooth)

    @property
    def _parts(self) -> Blocks:
        assert self.blocks is not None, f"{type(self).__name__} is not a sum over blocks"
        return self.blocks

    @abstractmethod
    def _conjugate(self, V: Array, ridge: Array) -> float:
        """The conjugate around W_ref = 0, with (ridge/2) w² on the entries of every row."""


def check_share(name: str, value: Any) -> float:
    """Return a number between 0 and 1, or say why it cannot be one."""
    share = check_real(name, value, "a number from 0 to 1", above=0.0, closed=True)
    if share > 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {value}")
    return share


def check_factors(factors: Any, count: int, name: str = "factors", each: str = "feature") -> Array:
    """Return factors ≥ 0, `count` of them; None makes them all one."""
    if factors is None:
        return np.ones(count)
    values = np.asarray(factors, dtype=np.float64)
    if values.shape != (count,):
        raise ValueError(
            f"{name} must have one entry per {each}, {count} in all, got shape {values.shape}"
        )
    if not (np.isfinite(values).all() and values.min(initial=0.0) >= 0):
        raise ValueError(f"{name} must be finite and ≥ 0, got {values.min()}")
    return values


def quadratic_over(excess: Array, curvature: Array) -> float:
    """Σ excess² / (2 curvature); infinite where excess > 0 and the curvature is zero."""
    if (excess[curvature <= 0] > 0).any():
        return np.inf
    inside = excess > 0
    return float((excess[inside] ** 2 / (2.0 * curvature[inside])).sum())
