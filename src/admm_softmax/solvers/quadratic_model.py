"""A quadratic model of the loss from its Gram matrix and the last steps, and its minimum.

Near W, the loss is modelled by its gradient and the metric ::

    B = I ⊗ (c G + diag(ridge)) + what the pairs (s, y) correct,      y = B s for the last pairs

in the compact form of L-BFGS (Byrd, Nocedal & Schnabel, Math. Program. 63, 1994). G is the Gram
matrix of the features, or its diagonal where the matrix would be too large. The model plus a
block penalty is minimised by coordinate descent, which costs no pass over X.

With an intercept that is not penalised, features are taken relative to their means μ: the
intercept b becomes b + μᵀW. Features then do not share the direction of the constant column,
which would slow coordinate descent down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.penalty import Blocks

#: c in units of the mean curvature κ. Measured on 20,000 × 784 pixels: with 2 the passes to a
#: relative gap of 1e-4 are fewer than with 1, with c of the last pair, or of all pairs.
METRIC = 2.0
#: Sweeps of coordinate descent in one step.
MOST_SWEEPS = 200
#: Power iterations for the largest eigenvalue of a row's block of the metric. With 50 classes,
#: computing all eigenvalues took nearly as long as the descent.
BLOCK_POWER_STEPS = 8
#: Rows of a Gram matrix that are centred at once, so that what is subtracted stays in the cache.
CENTRED_AT_ONCE = 64
#: Curvatures below this part of the largest are raised to it.
LEAST_CURVATURE = 1e-8


@dataclass(frozen=True)
class Gram:
    """G in centred coordinates: a matrix, or only its diagonal.

    matrix : d × d, empty (0 × 0) where only the diagonal is known
    diagonal : d
    means : μ with 0 for the intercept; None where nothing is centred
    """

    matrix: Array
    diagonal: Array
    means: Array | None

    @classmethod
    def of(cls, G: Any, centred: bool) -> Gram:
        """From the Gram matrix of X̃, whose last column is constant if `centred`."""
        # By columns or by rows is the same, as it is symmetric: a copy in its own order is faster.
        G = np.array(G.T if G.flags.f_contiguous else G, dtype=np.float64, order="C")
        means = None
        if centred:
            means = G[-1].copy()
            means[-1] = 0.0
            for first in range(0, len(G) - 1, CENTRED_AT_ONCE):
                rows = slice(first, first + CENTRED_AT_ONCE)
                G[rows] -= np.outer(means[rows], means)
            G[-1, :-1] = G[:-1, -1] = 0.0
        return cls(G, G.diagonal().copy(), means)

    @classmethod
    def of_diagonal(cls, squares: Array, means: Array | None) -> Gram:
        """From the squares of the columns alone."""
        diagonal = squares if means is None else squares - means**2
        return cls(np.zeros((0, 0)), np.maximum(diagonal, 0.0), means)

    def norms(self, blocks: Blocks) -> Array:
        """The largest eigenvalue of G over each group of features."""
        kept = self.__dict__.get("_norms")
        if kept is None or kept[0] is not blocks.group:
            members, starts = blocks.members
            found = np.maximum.reduceat(self.diagonal[members], starts[:-1])
            for b in np.flatnonzero(np.diff(starts) > 1) if len(self.matrix) else ():
                rows = members[starts[b] : starts[b + 1]]
                found[b] = np.linalg.eigvalsh(self.matrix[np.ix_(rows, rows)])[-1]
            kept = self.__dict__["_norms"] = (blocks.group, found)
        return np.asarray(kept[1])

    def times(self, S: Array) -> Array:
        """G S."""
        return self.matrix @ S if len(self.matrix) else self.diagonal[:, None] * S

    def centred_gradient(self, G: Array) -> Array:
        """A gradient in W as one in centred coordinates."""
        return G if self.means is None else G - np.outer(self.means, G[-1])

    def centred(self, D: Array) -> Array:
        """A step in W in centred coordinates."""
        if self.means is None:
            return D
        D = D.copy()
        D[-1] += self.means @ D
        return D

    def uncentred(self, D: Array) -> Array:
        """The inverse of `centred`."""
        if self.means is None:
            return D
        D = D.copy()
        D[-1] -= self.means @ D
        return D


@dataclass(frozen=True)
class Pair:
    """A step and the change of the loss's gradient over it, in centred coordinates; and G s.

    Class by class (K × d), and scaled so that ⟨s, y⟩ = 1, which changes no metric. None of the
    three depends on the penalty, so fits under other penalties may use them.
    """

    s: Array
    y: Array
    Gs: Array

    @classmethod
    def between(
        cls, gram: Gram, step: Array, change: Array, product: Array | None = None
    ) -> Pair | None:
        """The pair of a step in W; None where rounding has spoilt it.

        product : G s, if it is known but for its last row where features are centred: the model
            shifts the intercepts afterwards, which have no part in the other rows
        """
        s, y = gram.centred(step), gram.centred_gradient(change)
        slope = float(np.vdot(s, y))
        if slope <= 1e-14 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return None
        scale = 1.0 / np.sqrt(slope)
        if product is None:
            product = np.ascontiguousarray(gram.times(s).T)
        elif gram.means is not None:
            product[:, -1] = gram.diagonal[-1] * s[-1]
        s, y = np.ascontiguousarray(s.T), np.ascontiguousarray(y.T)
        return cls(s * scale, y * scale, product * scale)


class Model:
    """The metric at one point.

    gram : G
    curvature : κ, the mean curvature of the loss
    ridge : the diagonal of the smooth penalty's Hessian
    pairs : the last steps, oldest first

    After `minimise`, `product` is G times its step, in centred coordinates (K × d).
    """

    product: Array

    def __init__(self, gram: Gram, curvature: float, ridge: Array, pairs: Sequence[Pair]) -> None:
        self.gram, self.ridge, self.pairs = gram, ridge, pairs
        self.c = METRIC * max(curvature, 1e-8)
        self.base = self.c * gram.diagonal + ridge

    def minimise(self, V: Array, gradient: Array, blocks: Blocks, tol: float) -> Array:
        """The V that minimises the model plus h, from V; exact zeros are zeros of the result."""
        start = np.array(self.gram.centred(V).T, order="C")
        slope = np.ascontiguousarray(self.gram.centred_gradient(gradient).T)
        descend = self._by_entries if blocks.group is None else self._by_groups
        before, product = start.copy(), np.zeros(start.shape)
        descend(start, slope, blocks, tol, product)
        product -= self.ridge * (start - before)
        self.product = np.divide(product, self.c, out=product)
        found = np.ascontiguousarray(start.T)
        if self.gram.means is not None:
            found[-1] -= self.gram.means @ found
            # A shift of all intercepts changes nothing; without it solutions would not be unique.
            found[-1] -= found[-1].mean()
        return found

    def corrections(self, shape: tuple[int, int]) -> tuple[Array, Array, Array]:
        """N and Q (K × d × 2m), which the pairs add to the metric; and its diagonal (K × d)."""
        from admm_softmax.kernels.compiled.coordinates import loop  # noqa: PLC0415

        m = len(self.pairs)
        N = np.empty((*shape, 2 * m))
        if not m:
            return N, N, np.broadcast_to(self.base, shape)
        S, Y, GS = (np.array([getattr(p, name) for p in self.pairs]) for name in ("s", "y", "Gs"))
        flat = S.reshape(m, -1)
        own = (self.ridge * S).reshape(m, -1) @ flat.T if self.ridge.any() else 0.0
        SY = flat @ Y.reshape(m, -1).T + own
        middle = np.empty((2 * m, 2 * m))
        middle[:m, :m] = self.c * (flat @ GS.reshape(m, -1).T) + own
        middle[:m, m:] = np.tril(SY, -1)
        middle[m:, :m] = middle[:m, m:].T
        middle[m:, m:] = -np.diag(SY.diagonal())
        loop("spread_pairs")(S, Y, GS, self.c, self.ridge, N)
        Q = (N.reshape(-1, 2 * m) @ np.linalg.inv(middle)).reshape(N.shape)
        return N, Q, self.base - np.einsum("kji,kji->kj", N, Q)

    def _by_entries(self, V: Array, slope: Array, blocks: Blocks, tol: float, E: Array) -> None:
        from admm_softmax.kernels.compiled.coordinates import loop  # noqa: PLC0415

        N, Q, curvature = self.corrections(V.shape)
        lower, upper = (
            np.zeros((0, 0)) if b is None else np.ascontiguousarray(np.broadcast_to(b.T, V.shape))
            for b in _limits(blocks)
        )
        loop("descend_entries")(
            self.gram.matrix, self.c, _raised(curvature), self._own(), blocks.l1, lower, upper,
            slope, N, Q, V, E, np.zeros(N.shape[2]), MOST_SWEEPS, tol,
        )  # fmt: skip

    def _by_groups(self, V: Array, slope: Array, blocks: Blocks, tol: float, E: Array) -> None:
        from admm_softmax.kernels.compiled.coordinates import loop  # noqa: PLC0415

        assert blocks.l2 is not None
        members, starts = blocks.members
        N, Q, _ = self.corrections(V.shape)
        alive = np.logical_or.reduceat(np.any(V, axis=0)[members], starts[:-1])
        loop("descend_groups")(
            self.gram.matrix, self.c, self._group_curvatures(blocks, N, Q), self._own(),
            blocks.l1, blocks.l2, members, starts, slope, N, Q, V, E,
            np.zeros(N.shape[2]), MOST_SWEEPS, tol,
            np.zeros((int(np.diff(starts).max()), len(V))), alive,
        )  # fmt: skip

    def _own(self) -> Array:
        """What the kernels add to the derivative of a row for its own change."""
        return self.ridge if len(self.gram.matrix) else self.base

    def _group_curvatures(self, blocks: Blocks, N: Array, Q: Array) -> Array:
        """A bound on the eigenvalues of B in every group: base, and the pairs' by its norm."""
        from admm_softmax.kernels.compiled.coordinates import loop  # noqa: PLC0415

        members, starts = blocks.members
        K, d, m2 = N.shape
        if len(starts) == d + 1:
            bounds = self.base.copy()
            if m2:
                loop("bound_rows")(
                    self.base, N, Q, BLOCK_POWER_STEPS, np.empty(K), np.empty(K), np.empty(m2),
                    bounds,
                )  # fmt: skip
            return _raised(bounds[members])
        ridges = np.maximum.reduceat(self.ridge[members], starts[:-1])
        bounds = self.c * self.gram.norms(blocks) + ridges
        for b in range(len(starts) - 1 if m2 else 0):
            rows = members[starts[b] : starts[b + 1]]
            left, right = N[:, rows].reshape(-1, m2), Q[:, rows].reshape(-1, m2)
            # ‖N Qᵀ‖² = tr (QᵀQ)(NᵀN)
            bounds[b] += np.sqrt(max(float(np.vdot(right.T @ right, left.T @ left)), 0.0))
        return _raised(bounds)


def _raised(curvature: Array) -> Array:
    """Curvatures, none far below the largest."""
    return np.asarray(np.maximum(curvature, LEAST_CURVATURE * max(curvature.max(), 1e-300)))


def _limits(blocks: Blocks) -> tuple[Array | None, Array | None]:
    """Both bounds, or neither."""
    if not blocks.is_bounded:
        return None, None
    rows = (len(blocks.l1), 1)
    lower = np.full(rows, -np.inf) if blocks.lower is None else blocks.lower
    upper = np.full(rows, np.inf) if blocks.upper is None else blocks.upper
    return lower, upper
