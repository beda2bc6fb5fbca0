"""The contract of penalties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array, add_multiple, inner
from admm_softmax._cached import cached_property
from admm_softmax.penalty.blocks import Blocks


@dataclass(frozen=True)
class Quadratic:
    """q(W) = (σ/2) ‖L (W − W_ref)‖²_F: the part of a penalty that a W-step factorises.

    strength : σ ≥ 0
    L : p × d sparse, d counting the intercept
    reference : W_ref, d × K, or None for zero
    """

    strength: float
    L: Any
    reference: Array | None = None

    @classmethod
    def scaled(cls, strength: float, scale: Array, reference: Array | None = None) -> Quadratic:
        """(σ/2) ‖diag(scale) (W − W_ref)‖², whose matrices need no sparse products."""
        n = len(scale)
        L = sp.csr_array((scale, np.arange(n), np.arange(n + 1)), shape=(n, n))
        quadratic = cls(strength, L, reference)
        quadratic.__dict__["diagonal"] = scale**2
        return quadratic

    @cached_property
    def LtL(self) -> Any:
        """LᵀL, sparse d × d, without σ."""
        return sp.csr_array(self.L.T @ self.L)

    @cached_property
    def diagonal(self) -> Array | None:
        """The diagonal of LᵀL where it has nothing else, else None."""
        diagonal = self.LtL.diagonal()
        return diagonal if self.LtL.nnz == np.count_nonzero(diagonal) else None

    @property
    def matrix(self) -> Any:
        """σ LᵀL, sparse."""
        return self.strength * self.LtL

    def value(self, W: Array) -> float:
        """(σ/2) ‖L (W − W_ref)‖²."""
        offset = self._offset(W)
        if self.diagonal is not None:
            return 0.5 * self.strength * inner(offset, self.diagonal[:, None] * offset)
        difference = self.L @ offset
        return 0.5 * self.strength * inner(difference, difference)

    def gradient(self, W: Array) -> Array:
        """σ LᵀL (W − W_ref)."""
        return self.product(self._offset(W))

    def value_given(self, W: Array, gradient: Array) -> float:
        """q(W) = ½ ⟨W − W_ref, ∇q(W)⟩, where that does not cancel: for a diagonal LᵀL."""
        if self.diagonal is None:
            return self.value(W)
        return 0.5 * inner(self._offset(W), gradient)

    def add_gradient(self, W: Array, total: Array) -> float:
        """Add ∇q(W) to an array in place; returns q(W)."""
        offset = self._offset(W)
        factors = None if self.diagonal is None else self.strength * self.diagonal
        if factors is None or not _is_uniform(factors) or offset.dtype != total.dtype:
            pull = self.product(offset)
            total += pull
            return self.value_given(W, pull)
        first, last = float(factors[0]), float(factors[-1])
        add_multiple(total[:-1], first, offset[:-1])
        total[-1] += last * offset[-1]
        squares = [inner(part, part) for part in (offset[:-1], offset[-1:])]
        return 0.5 * (first * squares[0] + last * squares[1])

    def product(self, V: Array) -> Array:
        """σ LᵀL V."""
        if self.diagonal is not None:
            return _scaled_rows((self.strength * self.diagonal).astype(V.dtype, copy=False), V)
        return np.asarray(self.strength * (self.LtL @ V))

    def pull(self, n_classes: int) -> Array:
        """σ LᵀL W_ref, the penalty's term in a W-step's right-hand side."""
        if self.reference is None:
            return np.zeros((self.L.shape[1], n_classes))
        return np.asarray(self.strength * (self.LtL @ self.reference))

    def with_strength(self, strength: float) -> Quadratic:
        """The same L and W_ref with another σ; LᵀL and its diagonal are not computed again."""
        other = replace(self, strength=strength)
        for name in ("LtL", "diagonal"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    def has_operator(self, L: Any) -> bool:
        """Whether this quadratic has the same L, entry by entry."""
        return self.L is L or (self.L.shape == L.shape and (self.L != L).nnz == 0)

    def _offset(self, W: Array) -> Array:
        return W if self.reference is None else W - self.reference


def _scaled_rows(factors: Array, V: Array) -> Array:
    """diag(factors) V, where most factors are one number, all but the intercept's.

    Then it is a product with a number: three times as fast as one with a column where V has
    few columns (30,001 × 20 in double, Zen 3: 0.35 instead of 1.0 ms).
    """
    if not _is_uniform(factors):
        return np.asarray(factors[:, None] * V)
    out = np.asarray(factors[0] * V)
    np.multiply(factors[-1], V[-1], out=out[-1])
    return out


def _is_uniform(factors: Array) -> bool:
    """Whether all factors but the last are the same number."""
    return len(factors) > 1 and not (factors[1:-1] != factors[0]).any()


class Split(NamedTuple):
    """h(W) = g(LW): the matrix L, None for the identity, and prox(V, step) of g.

    back(W, V) is the W nearest to one whose LW is zero where V is; None where L = I.
    with_quadratic(V, step) is the prox of g + q, for L = I; None where it has no formula.
    """

    L: Any
    prox: Callable[[Array, float], Array]
    back: Callable[[Array, Array], Array] | None = None
    with_quadratic: Callable[[Array, float], Array] | None = None


class Penalty(ABC):
    """The second term of the objective: R(W) = q(W) + h(W), q quadratic, h convex.

    h may have kinks; it is zero for the penalties that are smooth. A new penalty defines
    `quadratic`, `with_alpha`, and for an h of its own `is_smooth = False`, `rough_value`,
    `prox` and `optimality`. Its strength is `alpha`.

    An object given to an estimator as `penalty=` also needs `over`, which builds the penalty
    for a number of features.
    """

    alpha: float
    #: Whether h is zero, so that `gradient` is the gradient of the whole penalty.
    is_smooth: bool = True

    @property
    @abstractmethod
    def quadratic(self) -> Quadratic:
        """q, the smooth part."""

    @abstractmethod
    def with_alpha(self, alpha: float) -> Self:
        """The same penalty with another strength."""

    def over(
        self, n_features: int, alpha: float, *, intercept: bool, penalize_intercept: bool,
        reference: Array | None,
    ) -> Penalty:  # fmt: skip
        """The penalty for `n_features` columns of X and, perhaps, an intercept."""
        raise TypeError(f"{type(self).__name__} does not say what it is for {n_features} features")

    def rough_value(self, W: Array) -> float:
        """h(W)."""
        return 0.0

    def prox(self, V: Array, step: float) -> Array:
        """The W that minimises h(W) + ‖W − V‖² / (2 step)."""
        return V

    @property
    def includes_zero(self) -> bool:
        """Whether W = 0 is allowed: strong penalties lead there, and a path begins there."""
        return True

    @property
    def blocks(self) -> Blocks | None:
        """h as a sum over blocks of W − W_ref; None where it is not one."""
        return None

    @property
    def split(self) -> Split:
        """h as a function of LW whose prox is cheap; here W itself and `prox`."""
        return Split(None, self.prox)

    def conjugate(self, V: Array) -> float:
        """R*(V) = sup ⟨V, W⟩ − R(W), for duality gaps; infinite where no formula is known."""
        return np.inf

    def optimality(self, W: Array, loss_gradient: Array) -> Array:
        """The smallest element, entry by entry, of ∇loss + ∂R(W); zero at a solution.

        `tol` bounds its largest absolute entry. For a smooth penalty it is ∇F.
        """
        return loss_gradient + self.gradient(W)

    def alpha_max(self, loss_gradient: Array) -> float:
        """The strength from which on W_ref is the solution, given ∇loss there.

        Infinite where no finite strength is enough.
        """
        return np.inf

    def resolution(self, tol: float) -> float:
        """The accuracy that a fit to `tol` should have: finer where `tol` would blur kinks."""
        return tol

    def unseen(self) -> Array | None:
        """Directions, rows of W × any number, that R does not see; None where they are rows.

        The intercept, if it is not penalised, need not be among them.
        """
        return None

    @property
    def reference(self) -> Array | None:
        """W_ref, or None for zero."""
        return self.quadratic.reference

    def value(self, W: Array) -> float:
        """R(W)."""
        return self.quadratic.value(W) + self.rough_value(W)

    def gradient(self, W: Array) -> Array:
        """∇q(W), in an array of its own that may be written to."""
        return self.quadratic.gradient(W)

    def hessian_product(self, V: Array) -> Array:
        """∇²q V."""
        return self.quadratic.product(V)
