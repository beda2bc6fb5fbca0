"""Total variation: ‖LW‖₁ for any matrix L."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import null_space

from admm_softmax._arrays import Array
from admm_softmax.penalty.base import Split
from admm_softmax.penalty.blocks import soft
from admm_softmax.penalty.rough import Rough
from admm_softmax.penalty.tikhonov import as_operator

#: Differences below this part of the largest coefficient are zero.
ZERO_DIFFERENCE = 1e-9
#: Up to so many features, the null space of D is computed.
LARGEST_NULL_SPACE = 3_000
#: Up to so many rows, bounded least squares are solved by active sets, one class after the other;
#: beyond, by L-BFGS-B for all together (112 rows, ten classes: two to three times as fast a fit).
EXACT_ROWS = 60


@dataclass(frozen=True, eq=False)
class TotalVariation(Rough):
    """α [ ‖D (W − W_ref)‖₁ + (ridge/2) ‖L (W − W_ref)‖² ]: D W is exactly zero in many places.

    differences : D, a matrix with one column per feature. `operators.gradient(d)` makes the
        fused lasso, `operators.gradient((28, 28))` the (anisotropic) total variation of images;
        stacked with the identity, single coefficients vanish too.
    ridge, operator : a Tikhonov term besides, see `Rough`

    The prox of this penalty has no formula: solvers split V = DW instead (`split`).

    >>> from sklearn.datasets import load_digits
    >>> from admm_softmax import SoftmaxRegression, operators, penalties
    >>> X, y = load_digits(return_X_y=True)
    >>> penalty = penalties.TotalVariation(operators.gradient((8, 8)))
    >>> clf = SoftmaxRegression(alpha=0.01, penalty=penalty, tol=1e-3).fit(X / 16, y)
    >>> clf.status_.value
    'converged'
    """

    differences: Any = None
    D: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.differences is None:
            raise TypeError("TotalVariation needs a matrix, such as operators.gradient(d)")

    def over(
        self, n_features: int, alpha: float, *, intercept: bool, penalize_intercept: bool,
        reference: Array | None,
    ) -> Self:  # fmt: skip
        """The penalty for `n_features` columns of X; the intercept is never in D."""
        D = as_operator(self.differences)
        if D.shape[1] != n_features:
            raise ValueError(
                f"differences must have one column per feature, {n_features} in all, got "
                f"{D.shape[1]}"
            )
        D = D.copy()
        D.eliminate_zeros()  # Kronecker products store some
        if intercept:
            D = sp.csr_array(sp.hstack([D, sp.csr_array((D.shape[0], 1))]))
        settings: dict[str, Any] = {
            "intercept": intercept,
            "penalize_intercept": penalize_intercept,
            "reference": reference,
        }
        return replace(super().over(n_features, alpha, **settings), D=D)

    @property
    def split(self) -> Split:
        """V = DW, where the penalty is α ‖V − D W_ref‖₁."""
        center = 0.0 if self.reference is None else self.D @ self.reference

        def shrink(V: Array, step: float) -> Array:
            return np.asarray(center + soft(V - center, step * self.alpha))

        def back(W: Array, V: Array) -> Array:
            return self._back(constant_where(self.D, self._offset(W), center == V))

        return Split(self.D, shrink, back)

    def rough_value(self, W: Array) -> float:
        """α ‖D (W − W_ref)‖₁."""
        return self.alpha * float(np.abs(self.D @ self._offset(W)).sum())

    def prox(self, V: Array, step: float) -> Array:
        """V − step DᵀY, where Y within ±α makes that smallest (the dual problem)."""
        offset = self._offset(V)
        bound = np.full((self.D.shape[0], V.shape[1]), self.alpha)
        Y = bounded_least_squares(step * self.D.T, offset, -bound, bound)
        return self._back(offset - step * (self.D.T @ Y))

    def optimality(self, W: Array, loss_gradient: Array) -> Array:
        """∇loss + ∇q + DᵀY with the smallest norm: Y is ±α where DW ≠ 0, between elsewhere."""
        G, change = loss_gradient + self.gradient(W), self.D @ self._offset(W)
        rounding = (
            ZERO_DIFFERENCE * float(np.abs(self._offset(W)).max()) * float(np.abs(self.D).max())
        )
        signs = np.where(np.abs(change) > rounding, np.sign(change), 0.0)
        lower = np.where(signs == 0, -self.alpha, self.alpha * signs)
        upper = np.where(signs == 0, self.alpha, self.alpha * signs)
        Y = bounded_least_squares(self.D.T, -G, lower, upper)
        return np.asarray(G + self.D.T @ Y)

    def unseen(self) -> Array | None:
        """The null space of D, without the intercept; None where a ridge sees it."""
        if self.ridge > 0:
            return None
        d, D = self.features.n_features, self.D[:, : self.features.n_features]
        N = np.zeros((self.D.shape[1], 0))
        if d <= LARGEST_NULL_SPACE:
            basis = null_space(D.toarray())
            N = np.zeros((self.D.shape[1], basis.shape[1]))
            N[:d] = basis
        return N

    def alpha_max(self, loss_gradient: Array) -> float:
        """The least max|Y| with DᵀY = −∇loss, by linear programming; infinite without one."""
        p, d = self.D.shape
        size = float(np.abs(loss_gradient).max())
        if size == 0 or self.ridge > 0:
            return 0.0 if size == 0 else np.inf
        from scipy.optimize import linprog  # noqa: PLC0415  (slow to load)

        cost = np.append(np.zeros(p), 1.0)
        equal = sp.hstack([self.D.T, sp.csr_array((d, 1))], format="csc")
        rows = sp.eye_array(p)
        last = sp.csr_array(-np.ones((p, 1)))
        within = sp.vstack([sp.hstack([rows, last]), sp.hstack([-rows, last])], format="csc")
        found = [
            linprog(
                cost, A_ub=within, b_ub=np.zeros(2 * p), A_eq=equal, b_eq=-column / size,
                bounds=[(None, None)] * p + [(0, None)],
            )
            for column in loss_gradient.T
        ]  # fmt: skip
        return size * max(float(f.fun) if f.status == 0 else np.inf for f in found)

    def _conjugate(self, V: Array, ridge: Array) -> float:
        return np.inf


def constant_where(D: Any, W: Array, zero: Any) -> Array:
    """The W nearest to this one with (DW)_ik = 0 wherever `zero` says so.

    Rows of D that are differences of two features join them; the mean of all that are joined is
    nearest. Rows of D of another form need a least-squares problem per class.
    """
    D = sp.csr_array(D, copy=True)
    D.eliminate_zeros()
    counts = np.diff(D.indptr)
    pairs = counts == 2
    sums = np.abs(D @ np.ones(D.shape[1]))
    simple = bool((pairs | (counts <= 1)).all() and (sums[pairs] <= 1e-12 * np.abs(D).max()).all())
    join = _joined_means if simple else _nearest
    return np.column_stack([join(D, W[:, k], zero[:, k]) for k in range(W.shape[1])])


def _joined_means(D: Any, w: Array, zero: Any) -> Array:
    """Means over the features that rows of D join; zero where a row holds one feature alone."""
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  (slow to load)

    d, counts = D.shape[1], np.diff(D.indptr)
    edges = D.indices[np.repeat(zero & (counts == 2), counts)].reshape(-1, 2)
    graph = sp.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(d, d))
    n_parts, part = connected_components(graph.tocsr(), directed=False)
    sizes = np.bincount(part, minlength=n_parts)
    means = np.bincount(part, weights=w, minlength=n_parts) / sizes
    means[part[D.indices[np.repeat(zero & (counts == 1), counts)]]] = 0.0
    return np.where(sizes[part] > 1, means[part], np.where(means[part] == 0, 0.0, w))


def _nearest(D: Any, w: Array, zero: Any) -> Array:
    rows = D[zero]
    if not rows.shape[0]:
        return w
    from scipy.sparse.linalg import lsmr  # noqa: PLC0415  (slow to load)

    return np.asarray(w - lsmr(rows, rows @ w, atol=1e-15, btol=1e-15, maxiter=10_000)[0])


def bounded_least_squares(A: Any, B: Array, lower: Array, upper: Array) -> Array:
    """The Y between bounds that minimises ‖AY − B‖², for each column of B."""
    p = A.shape[1]
    if p <= EXACT_ROWS:
        dense = A.toarray()
        return np.column_stack(
            [_exact(dense, B[:, k], lower[:, k], upper[:, k]) for k in range(B.shape[1])]
        )
    from scipy.optimize import minimize  # noqa: PLC0415  (slow to load)

    def value(flat: Array) -> tuple[float, Array]:
        rest = A @ flat.reshape(lower.shape) - B
        return 0.5 * float(np.vdot(rest, rest)), (A.T @ rest).ravel()

    limits = list(zip(lower.ravel(), upper.ravel(), strict=True))
    start = np.clip(np.zeros(lower.size), lower.ravel(), upper.ravel())
    settings = {"maxiter": 500, "maxfun": 1000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 20}
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=limits, options=settings)
    return np.asarray(found.x.reshape(lower.shape))


def _exact(A: Array, b: Array, lower: Array, upper: Array) -> Array:
    fixed = lower == upper
    Y = np.where(fixed, lower, 0.0)
    free = ~fixed & (upper > lower)
    if free.any():
        from scipy.optimize import lsq_linear  # noqa: PLC0415  (slow to load)

        rest = b - A @ Y
        found = lsq_linear(
            A[:, free], rest, (lower[free], upper[free]), method="bvls", tol=1e-15, max_iter=1000
        )
        Y[free] = found.x
    return Y
