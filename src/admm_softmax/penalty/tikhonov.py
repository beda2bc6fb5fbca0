"""The Tikhonov term of the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax._cached import cached_property
from admm_softmax._checks import check_real
from admm_softmax._validation import refuse_complex, refuse_masked
from admm_softmax.penalty.base import Penalty, Quadratic


@dataclass(frozen=True)
class Tikhonov(Penalty):
    """(α/2) ‖L (W − W_ref)‖²_F, with its gradient α LᵀL (W − W_ref).

    L : p × d sparse, d counting the intercept; W_ref : d × K, or None for zero.
    Build one with `Tikhonov.over`, which adds the intercept to an L over the features. For an
    estimator `Tikhonov()` is enough: it has alpha, operator and reference itself.

    >>> import numpy as np
    >>> from admm_softmax import Tikhonov, operators
    >>> penalty = Tikhonov.over(64, alpha=0.1, operator=operators.laplacian((8, 8)))
    >>> penalty.value(np.zeros((65, 10)))  # the intercept is the last row
    0.0
    """

    alpha: float = 1.0
    L: Any = None
    reference: Array | None = None

    @classmethod
    def over(  # unlike Penalty.over a class method, and with an operator
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
        intercept is then penalised by 1 or not at all. An operator with one more
        column determines how the intercept is penalised.

        >>> Tikhonov.over(4, 0.1).L.diagonal()
        array([1., 1., 1., 1., 0.])
        """
        alpha = check_alpha(alpha)
        penalised = intercept and penalize_intercept
        if operator is None or (isinstance(operator, str) and operator == "identity"):
            scale = np.ones(n_features + bool(intercept))
            scale[n_features:] = penalised
            return cls.from_quadratic(Quadratic.scaled(alpha, scale, reference))
        L = as_operator(operator)
        if L.shape[1] == n_features + 1 and penalised:
            return cls(alpha, L, reference)
        if L.shape[1] != n_features:
            raise ValueError(_wrong_columns(L.shape[1], n_features, penalised))
        if intercept:
            last = sp.csr_array([[1.0]]) if penalised else sp.csr_array((1, 1))
            L = sp.csr_array(sp.block_diag([L, last]))
        return cls(alpha, L, reference)

    @cached_property
    def quadratic(self) -> Quadratic:
        """The whole penalty, which is quadratic."""
        if self.L is None:
            raise ValueError("Tikhonov needs features first: call over")
        return Quadratic(self.alpha, self.L, self.reference)

    @classmethod
    def from_quadratic(cls, quadratic: Quadratic) -> Tikhonov:
        """The Tikhonov penalty with this strength, L and W_ref."""
        penalty = cls(quadratic.strength, quadratic.L, quadratic.reference)
        penalty.__dict__["quadratic"] = quadratic
        return penalty

    def with_alpha(self, alpha: float) -> Tikhonov:
        """The same operator and reference with another strength."""
        return self.from_quadratic(self.quadratic.with_strength(check_alpha(alpha)))


def check_alpha(alpha: float) -> float:
    """Return alpha as a float, or say why it cannot be one."""
    return check_real("alpha", alpha, "a finite number ≥ 0", above=0.0, closed=True)


def as_operator(operator: Any) -> Any:
    """A matrix of any kind as float64 CSR, or an error that says what is wrong with it."""
    if isinstance(operator, str):
        raise ValueError(f"operator must be 'identity' or a matrix, got {operator!r}")
    if not sp.issparse(operator) and not isinstance(operator, np.ndarray):
        operator = _assembled(operator)
    if not sp.issparse(operator):
        operator = np.asarray(operator)
        if operator.ndim != 2 or operator.dtype.kind not in "fiub":
            raise TypeError(
                "operator must be None, 'identity', or a two-dimensional sparse or dense "
                f"matrix, got {type(operator).__name__} of shape {operator.shape} "
                f"and type {operator.dtype}"
            )
    refuse_masked(operator, "operator")
    refuse_complex(operator, "operator")
    L = sp.csr_array(operator).astype(np.float64)
    if not np.isfinite(L.data).all():
        raise ValueError("operator contains NaN or infinity")
    return L


def _assembled(operator: Any, size: int = 512) -> Any:
    """The sparse matrix of a LinearOperator, from its action on unit vectors; others unchanged."""
    from scipy.sparse.linalg import LinearOperator  # noqa: PLC0415  (slow to load)

    if not isinstance(operator, LinearOperator):
        return operator
    d = operator.shape[1]
    columns = [
        sp.csc_array(operator.matmat(np.eye(d, min(size, d - i), -i))) for i in range(0, d, size)
    ]
    return sp.hstack(columns, format="csr")


def _wrong_columns(got: int, n_features: int, penalised: bool) -> str:
    if penalised:
        return (
            f"operator must have {n_features} columns, one per feature, or {n_features + 1} "
            f"with the intercept's; got {got}"
        )
    return f"operator must have {n_features} columns, one per feature; got {got}"
