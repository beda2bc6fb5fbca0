"""The nuclear norm: W of low rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.penalty.blocks import soft
from admm_softmax.penalty.rough import Rough

#: Singular values below this part of the largest are zero.
ZERO_SINGULAR_VALUE = 1e-10


@dataclass(frozen=True, eq=False)
class NuclearNorm(Rough):
    """α [ Σ singular values of W − W_ref + (ridge/2) ‖L (W − W_ref)‖² ]: W has low rank.

    The intercept takes no part, whether penalised or not.

    ridge, operator : a Tikhonov term besides, see `Rough`

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from admm_softmax import SoftmaxRegression, penalties
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = SoftmaxRegression(alpha=0.05, penalty=penalties.NuclearNorm(), tol=1e-3)
    >>> int(np.linalg.matrix_rank(clf.fit(X / 16, y).coef_)) < 9
    True
    """

    def _part(self, V: Array) -> Array:
        return V[: self.features.n_features]

    def rough_value(self, W: Array) -> float:
        """α Σ σᵢ."""
        values = np.linalg.svd(self._part(self._offset(W)), compute_uv=False)
        return self.alpha * float(values.sum())

    def prox(self, V: Array, step: float) -> Array:
        """Shrink the singular values."""
        return self._back(self._prox_by_rows(self._offset(V), np.full(len(V), step)))

    def _takes_steps(self, rows: Array) -> bool:
        return bool(np.ptp(self._part(rows)) == 0)

    def _prox_by_rows(self, offset: Array, steps: Array) -> Array:
        shrunk, d = offset.copy(), self.features.n_features
        shrunk[:d] = _with_values(shrunk[:d], lambda s: soft(s, steps[0] * self.alpha))
        return shrunk

    def optimality(self, W: Array, loss_gradient: Array) -> Array:
        """The element of the subdifferential with the smallest Frobenius norm.

        With W = U Σ Vᵀ the subdifferential of ‖W‖_* is UVᵀ + M, M orthogonal to U and V with
        singular values up to 1: the part of the gradient there is shrunk by α.
        """
        G = loss_gradient + self.gradient(W)
        d = self.features.n_features
        U, s, Vt = np.linalg.svd(self._part(self._offset(W)), full_matrices=False)
        rank = int((s > ZERO_SINGULAR_VALUE * max(s[0], 1e-300)).sum())
        U, Vt = U[:, :rank], Vt[:rank]
        inner = G[:d]
        left = inner - U @ (U.T @ inner)
        outside = left - (left @ Vt.T) @ Vt
        beyond = _with_values(outside, lambda s: soft(s, self.alpha))
        G[:d] = inner - outside + self.alpha * U @ Vt + beyond
        return G

    def alpha_max(self, loss_gradient: Array) -> float:
        """The largest singular value of ∇loss; infinite where only a ridge holds the intercept."""
        if loss_gradient[self.features.n_features :].any():
            return np.inf
        return float(np.linalg.norm(self._part(loss_gradient), 2))

    def _conjugate(self, V: Array, ridge: Array) -> float:
        d = self.features.n_features
        curvature = ridge[:d]
        if np.ptp(curvature) > 0 or V[d:].any():
            return np.inf
        values = np.linalg.svd(self._part(V), compute_uv=False)
        excess = np.maximum(values - self.alpha * (1 + 1e-12), 0.0)
        if curvature[0] == 0:
            return np.inf if excess.any() else 0.0
        return float((excess**2).sum() / (2 * curvature[0]))


def _with_values(A: Array, change: Callable[[Array], Array]) -> Array:
    """A with other singular values."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return np.asarray((U * change(s)) @ Vt)
