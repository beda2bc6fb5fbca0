"""Penalties on groups of features: a group leaves all classes at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._cached import cached_property
from admm_softmax.penalty.blocks import Blocks, soft
from admm_softmax.penalty.rough import (
    Rough,
    check_factors,
    check_share,
    quadratic_over,
)

#: Halvings of an interval that holds a dual norm: to rounding.
HALVINGS = 60


@dataclass(frozen=True, eq=False)
class GroupLasso(Rough):
    """α [ Σ_g f_g ‖W_g‖ + (ridge/2) Σ_g f_g ‖W_g‖² ], W_g the rows of W in group g.

    groups : the features of each group, [[0, 1, 2], [3], …], or a group's number for each
        feature; None makes every feature a group, so that it leaves all classes at once
    factors : f_g ≥ 0, one per group, by default the root of its number of features; 0 leaves
        a group free
    ridge, operator : a Tikhonov term besides, see `Rough`

    >>> from sklearn.datasets import load_digits
    >>> from admm_softmax import SoftmaxRegression, penalties
    >>> X, y = load_digits(return_X_y=True)
    >>> lines = penalties.GroupLasso([range(8 * i, 8 * i + 8) for i in range(8)])
    >>> clf = SoftmaxRegression(alpha=0.05, penalty=lines).fit(X / 16, y)
    >>> (clf.coef_.reshape(10, 8, 8) != 0).any(axis=(0, 2))  # lines that are not zero
    array([False, False,  True,  True,  True,  True, False, False])
    """

    groups: Any = None
    factors: Any = field(default=None, kw_only=True)

    @property
    def entry_share(self) -> float:
        """The share of Σ f |W|; the group norms have the rest."""
        return 0.0

    def _row_factors(self, n_features: int) -> Array:
        codes = group_codes(self.groups, n_features)
        counts = np.bincount(codes)
        if self.factors is None:
            return np.asarray(np.sqrt(counts)[codes])
        return np.asarray(check_factors(self.factors, len(counts), each="group")[codes])

    @cached_property
    def codes(self) -> Any:
        """The number of each row's group; the intercept is a group of its own."""
        codes = group_codes(self.groups, self.features.n_features)
        return np.append(codes, codes.max() + 1) if len(self.scale) > len(codes) else codes

    @cached_property
    def _group_factors(self) -> Array:
        factors = np.zeros(self.codes.max() + 1)
        factors[self.codes] = self.scale
        return factors

    @cached_property
    def blocks(self) -> Blocks:
        """Groups, each with a threshold on its norm and one on its entries."""
        share = self.entry_share
        return Blocks(
            l1=self.alpha * share * self.scale,
            l2=self.alpha * (1.0 - share) * self._group_factors,
            group=self.codes,
        )

    def alpha_max(self, loss_gradient: Array) -> float:
        """The dual norm: max_g ‖∇loss_g‖ / f_g without entries' share, else by bisection."""
        factors = self._group_factors
        held = factors > 0
        if not held.any():
            return np.inf
        share = self.entry_share
        norms_of = self.blocks.norms
        norms = norms_of(loss_gradient)
        if share == 0.0:
            return float((norms[held] / factors[held]).max())
        # ‖soft(G_g, α r f)‖ ≤ α (1 − r) f: both sides are monotone in α.
        low, high = np.zeros(len(norms)), norms / np.where(held, factors, 1.0) / max(share, 1e-3)
        high = np.maximum(high, norms / np.where(held, factors, 1.0) / max(1.0 - share, 1e-3))
        for _ in range(HALVINGS):
            alpha = 0.5 * (low + high)
            rest = norms_of(soft(loss_gradient, (alpha * factors)[self.codes][:, None] * share))
            enough = rest <= alpha * (1.0 - share) * factors
            low, high = np.where(enough, low, alpha), np.where(enough, alpha, high)
        return float(high[held].max())

    def _conjugate(self, V: Array, ridge: Array) -> float:
        blocks = self.blocks
        l2 = self.alpha * (1.0 - self.entry_share) * self._group_factors
        rest = soft(V, blocks.l1[:, None]) if self.entry_share else V
        excess = blocks.norms(rest) - l2 * (1 + 1e-12)
        if not ridge.any():
            return np.inf if (excess > 0).any() else 0.0
        if not blocks.is_constant(ridge):
            return np.inf
        curvature = np.zeros(len(excess))
        curvature[self.codes] = ridge
        return quadratic_over(np.maximum(excess, 0.0), curvature)


@dataclass(frozen=True, eq=False)
class SparseGroupLasso(GroupLasso):
    """α [ r Σ f |W| + (1 − r) Σ_g f_g ‖W_g‖ ], with r = l1_ratio: zeros within groups, too.

    groups, factors, ridge, operator : as for `GroupLasso`
    l1_ratio : r from 0 (the group lasso) to 1 (the lasso)

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from admm_softmax import SoftmaxRegression, penalties
    >>> X, y = load_digits(return_X_y=True)
    >>> penalty = penalties.SparseGroupLasso(np.arange(64) // 8, l1_ratio=0.3)
    >>> clf = SoftmaxRegression(alpha=0.03, penalty=penalty).fit(X / 16, y)
    >>> bool(clf.n_nonzero_ < 10 * len(clf.selected_features_))
    True
    """

    l1_ratio: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("l1_ratio", self.l1_ratio)

    @property
    def entry_share(self) -> float:
        """r."""
        return self.l1_ratio


def group_codes(groups: Any, n_features: int) -> Any:
    """The number of each feature's group.

    >>> group_codes([[0, 2], [1]], 3)
    array([0, 1, 0])
    >>> group_codes(["a", "a", "b"], 3)
    array([0, 0, 1])
    """
    if groups is None:
        return np.arange(n_features)
    if not len(groups):
        raise ValueError(f"groups must hold each of {n_features} features once, got no group")
    lists = [np.atleast_1d(np.asarray(g)) for g in groups] if np.ndim(groups[0]) else None
    if lists is None:
        codes = np.asarray(groups)
        if codes.shape != (n_features,):
            raise ValueError(
                f"groups must number all {n_features} features, got {codes.size} numbers"
            )
        return np.unique(codes, return_inverse=True)[1]
    for number, group in enumerate(lists):
        if not len(group):
            raise ValueError(f"groups must have a feature each, and group {number} has none")
    members = np.concatenate(lists)
    if not np.array_equal(np.sort(members), np.arange(n_features)):
        raise ValueError(_not_covered(members, n_features))
    codes = np.empty(n_features, np.intp)
    for number, group in enumerate(lists):
        codes[group] = number
    return codes


def _not_covered(members: Any, n_features: int) -> str:
    missing = np.setdiff1d(np.arange(n_features), members)
    rule = f"groups must hold each of {n_features} features once"
    if len(missing):
        return f"{rule}, and feature {missing[0]} is in none"
    return f"{rule}, got {len(members)} entries from {members.min()} to {members.max()}"
