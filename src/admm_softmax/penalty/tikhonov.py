"""The Tikhonov term of the objective."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from admm_softmax._arrays import Array
from admm_softmax._checks import check_real


@dataclass(frozen=True)
class Tikhonov:
    """(α/2) ‖L (W − W_ref)‖²_F, with its gradient α LᵀL (W − W_ref).

    L : p × d sparse, d counting the intercept; W_ref : d × K, or None for zero.
    Build one with `Tikhonov.over`, which adds the intercept to an L over the features.
    """

    alpha: float
    L: Any
    reference: Array | None = None

    @classmethod
    def over(
        cls,
        n_features: int,
        alpha: float,
        *,
        operator: Any = None,
        reference: Array | None = None,
        intercept: bool = True,
        penalize_intercept: bool = False,
    ) -> Tikhonov:
        """Build the term for `n_features` columns of X and, perhaps, an intercept.

        `operator` is None or "identity", or a matrix with `n_features` columns; the
        intercept is then penalised by 1 or not at all. An operator with one column
        more says itself how the intercept is penalised.

        >>> Tikhonov.over(4, 0.1).L.diagonal()
        array([1., 1., 1., 1., 0.])
        """
        alpha = check_alpha(alpha)
        L = _as_operator(operator, n_features)
        penalised = intercept and penalize_intercept
        if L.shape[1] == n_features + 1 and penalised:
            return cls(alpha, L, reference)
        if L.shape[1] != n_features:
            raise ValueError(_wrong_columns(L.shape[1], n_features, penalised))
        if intercept:
            last = sp.csr_array([[1.0]]) if penalised else sp.csr_array((1, 1))
            L = sp.csr_array(sp.block_diag([L, last]))
        return cls(alpha, L, reference)

    @cached_property
    def LtL(self) -> Any:
        """LᵀL, sparse d × d, without α."""
        return sp.csr_array(self.L.T @ self.L)

    @cached_property
    def weights(self) -> Array | None:
        """The diagonal of LᵀL as a column where it has nothing else, else None."""
        diagonal = self.LtL.diagonal()
        return diagonal[:, None] if self.LtL.nnz == np.count_nonzero(diagonal) else None

    def value(self, W: Array) -> float:
        """(α/2) ‖L (W − W_ref)‖²."""
        if self.weights is not None:
            offset = self._offset(W)
            return 0.5 * self.alpha * float(np.vdot(offset, self.weights * offset))
        difference = self.L @ self._offset(W)
        return 0.5 * self.alpha * float(np.vdot(difference, difference))

    def gradient(self, W: Array) -> Array:
        """α LᵀL (W − W_ref)."""
        return self.hessian_product(self._offset(W))

    def hessian_product(self, V: Array) -> Array:
        """α LᵀL V."""
        if self.weights is not None:
            return np.asarray((self.alpha * self.weights) * V)
        return np.asarray(self.alpha * (self.LtL @ V))

    def pull(self, n_classes: int) -> Array:
        """α LᵀL W_ref, the penalty's share of the W-step's right-hand side."""
        if self.reference is None:
            return np.zeros((self.L.shape[1], n_classes))
        return np.asarray(self.alpha * (self.LtL @ self.reference))

    def with_alpha(self, alpha: float) -> Tikhonov:
        """The same operator and reference with another strength."""
        return replace(self, alpha=check_alpha(alpha))

    def _offset(self, W: Array) -> Array:
        return W if self.reference is None else W - self.reference


def check_alpha(alpha: float) -> float:
    """Return alpha as a float, or say why it cannot be one."""
    return check_real("alpha", alpha, "a finite number ≥ 0", above=0.0, closed=True)


def _as_operator(operator: Any, n_features: int) -> Any:
    if operator is None or (isinstance(operator, str) and operator == "identity"):
        return sp.eye_array(n_features, format="csr")
    if isinstance(operator, str):
        raise ValueError(f"operator must be 'identity' or a matrix, got {operator!r}")
    if isinstance(operator, LinearOperator):
        operator = _assembled(operator)
    if not sp.issparse(operator):
        operator = np.asarray(operator)
        if operator.ndim != 2 or operator.dtype.kind not in "fiub":
            raise TypeError(
                "operator must be None, 'identity', or a two-dimensional sparse or dense "
                f"matrix, got {type(operator).__name__} of shape {operator.shape} "
                f"and type {operator.dtype}"
            )
    L = sp.csr_array(operator).astype(np.float64)
    if not np.isfinite(L.data).all():
        raise ValueError("operator contains NaN or infinity")
    return L


def _assembled(operator: LinearOperator, size: int = 512) -> Any:
    """The sparse matrix of a LinearOperator, from its action on unit vectors."""
    d = operator.shape[1]
    columns = [
        sp.csc_array(operator.matmat(np.eye(d, min(size, d - i), -i))) for i in range(0, d, size)
    ]
    return sp.hstack(columns, format="csr")


def _wrong_columns(got: int, n_features: int, penalised: bool) -> str:
    if penalised:
        return (
            f"operator must have {n_features} columns, one a feature, or {n_features + 1} "
            f"with the intercept's; got {got}"
        )
    return f"operator must have {n_features} columns, one a feature; got {got}"
