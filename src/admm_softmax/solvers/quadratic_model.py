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
#: Power iterations for the largest eigenvalue of a row's block of the metric.
BLOCK_POWER_STEPS = 8
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
        G = np.array(G, dtype=np.float64, order="C")
        means = None
        if centred:
            means = G[-1].copy()
            means[-1] = 0.0
            G[:-1, :-1] -= np.outer(means[:-1], means[:-1])
            G[-1, :-1] = G[:-1, -1] = 0.0
        return cls(G, G.diagonal().copy(), means)

    @classmethod
    def of_diagonal(cls, squares: Array, means: Array | None) -> Gram:
        """From the squares of the columns alone."""
        diagonal = squares if means is None else squares - means**2
        return cls(np.zeros((0, 0)), np.maximum(diagonal, 0.0), means)

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

    None of the three depends on the penalty, so fits under other penalties may use them.
    """

    s: Array
    y: Array
    Gs: Array

    @classmethod
    def between(cls, gram: Gram, step: Array, change: Array) -> Pair | None:
        """The pair of a step in W; None where rounding has spoilt it."""
        s, y = gram.centred(step), gram.centred_gradient(change)
        if float(np.vdot(s, y)) <= 1e-14 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return None
        return cls(s, y, gram.times(s))


class Model:
    """The metric at one point.

    gram : G
    curvature : κ, the mean curvature of the loss
    ridge : the diagonal of the smooth penalty's Hessian
    pairs : the last steps, oldest first
    """

    def __init__(self, gram: Gram, curvature: float, ridge: Array, pairs: Sequence[Pair]) -> None:
        self.gram, self.ridge = gram, ridge
        self.c = METRIC * max(curvature, 1e-8)
        self.base = self.c * gram.diagonal + ridge
        shape = (*pairs[0].s.shape, 2 * len(pairs)) if pairs else None
        if shape is None:
            self.N = self.Q = None
            return
        S = np.array([pair.s.ravel() for pair in pairs])
        weighted = [ridge[:, None] * pair.s for pair in pairs]
        Y = np.array([(p.y + w).ravel() for p, w in zip(pairs, weighted, strict=True)])
        BS = np.array([(self.c * p.Gs + w).ravel() for p, w in zip(pairs, weighted, strict=True)])
        SY = S @ Y.T
        lower = np.tril(SY, -1)
        middle = np.block([[S @ BS.T, lower], [lower.T, -np.diag(SY.diagonal())]])
        N = np.concatenate([BS, Y])
        self.N = N.T.reshape(shape)
        self.Q = np.linalg.solve(middle, N).T.reshape(shape)

    def minimise(self, V: Array, gradient: Array, blocks: Blocks, tol: float) -> Array:
        """The V that minimises the model plus h, from V; exact zeros are zeros of the result."""
        start = self.gram.centred(V)
        slope = self.gram.centred_gradient(gradient)
        descend = self._by_entries if blocks.group is None else self._by_groups
        found = descend(start, slope, blocks, tol)
        if self.gram.means is not None:
            found[-1] -= self.gram.means @ found
            # A shift of all intercepts changes nothing; without it solutions would not be unique.
            found[-1] -= found[-1].mean()
        return found

    def _pairs(self, shape: tuple[int, int]) -> tuple[Array, Array]:
        if self.N is None or self.Q is None:
            return np.zeros((*shape, 0)), np.zeros((*shape, 0))
        return self.N, self.Q

    def _by_entries(self, V: Array, slope: Array, blocks: Blocks, tol: float) -> Array:
        from admm_softmax.kernels.compiled.coordinates import descend_entries  # noqa: PLC0415

        N, Q = (np.ascontiguousarray(A.transpose(1, 0, 2)) for A in self._pairs(V.shape))
        curvature = self.base - np.einsum("kji,kji->kj", N, Q)
        curvature = np.maximum(curvature, LEAST_CURVATURE * max(curvature.max(), 1e-300))
        lower, upper = (
            np.zeros((0, 0)) if b is None else np.ascontiguousarray(np.broadcast_to(b, V.shape).T)
            for b in _limits(blocks)
        )
        W = np.array(V.T, order="C")
        descend_entries(
            self.gram.matrix, self.c, curvature, self._own(), blocks.l1, lower, upper,
            np.ascontiguousarray(slope.T), N, Q, W, np.zeros(W.shape), np.zeros(N.shape[2]),
            MOST_SWEEPS, tol,
        )  # fmt: skip
        return np.ascontiguousarray(W.T)

    def _by_groups(self, V: Array, slope: Array, blocks: Blocks, tol: float) -> Array:
        from admm_softmax.kernels.compiled.coordinates import descend_groups  # noqa: PLC0415

        assert blocks.l2 is not None
        order = np.argsort(blocks.group, kind="stable")
        sizes = np.bincount(blocks.group, minlength=len(blocks.l2))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        N, Q = (np.ascontiguousarray(A[order]) for A in self._pairs(V.shape))
        G = self.gram.matrix
        G = np.ascontiguousarray(G[np.ix_(order, order)]) if len(G) else G
        bounds = self._group_curvatures(G, order, starts, N, Q)
        W = np.array(V[order], order="C")
        descend_groups(
            G, self.c, bounds, self._own()[order], blocks.l1[order], blocks.l2, starts,
            np.ascontiguousarray(slope[order]), N, Q, W, np.zeros(W.shape), np.zeros(N.shape[2]),
            MOST_SWEEPS, tol, np.zeros((int(sizes.max()), V.shape[1])),
        )  # fmt: skip
        found = np.empty_like(W)
        found[order] = W
        return found

    def _own(self) -> Array:
        """What the kernels add to the derivative of a row for its own change."""
        return self.ridge if len(self.gram.matrix) else self.base

    def _group_curvatures(self, G: Array, order: Any, starts: Any, N: Array, Q: Array) -> Array:
        """A bound on the eigenvalues of B in every group: base, and the pairs' by its norm."""
        base, ridge = self.base[order], self.ridge[order]
        m2 = N.shape[2]
        if len(starts) == len(order) + 1 and m2:
            bounds = _largest_eigenvalues(base, N, Q)
            return np.asarray(np.maximum(bounds, LEAST_CURVATURE * max(bounds.max(), 1e-300)))
        bounds = np.maximum.reduceat(base, starts[:-1])
        for b in range(len(starts) - 1):
            rows = slice(starts[b], starts[b + 1])
            if starts[b + 1] - starts[b] > 1 and len(G):
                block = self.c * G[rows, rows] + np.diag(ridge[rows])
                bounds[b] = np.linalg.eigvalsh(block)[-1]
            if m2:
                left, right = N[rows].reshape(-1, m2), Q[rows].reshape(-1, m2)
                # ‖N Qᵀ‖² = tr (QᵀQ)(NᵀN)
                bounds[b] += np.sqrt(max(float(np.vdot(right.T @ right, left.T @ left)), 0.0))
        return np.asarray(np.maximum(bounds, LEAST_CURVATURE * max(bounds.max(), 1e-300)))


def _largest_eigenvalues(base: Array, N: Array, Q: Array) -> Array:
    """The largest eigenvalue of base_j I − N_j Q_jᵀ for every row j, or little more.

    By power iteration on all rows at once; the residual is added to the Rayleigh quotient, as
    the largest eigenvalue is within it once the vector has turned there. A proximal step needs
    no more: it descends with anything above half of the eigenvalue. With 50 classes, computing
    all eigenvalues took nearly as long as the descent.
    """
    v = np.einsum("jki,ji->jk", N, Q[np.arange(len(Q)), np.abs(N).sum(axis=2).argmax(axis=1)])
    v += 1e-3 * np.linalg.norm(v, axis=1, keepdims=True)
    for _ in range(BLOCK_POWER_STEPS):
        last = v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
        v = base[:, None] * last - (N @ (last[:, None, :] @ Q).transpose(0, 2, 1))[:, :, 0]
    quotient = np.einsum("jk,jk->j", v, last)
    residual = np.linalg.norm(v - quotient[:, None] * last, axis=1)
    # Classes that the pairs do not reach have the base alone.
    return np.asarray(np.maximum(quotient + residual, base))


def _limits(blocks: Blocks) -> tuple[Array | None, Array | None]:
    """Both bounds, or neither."""
    if not blocks.is_bounded:
        return None, None
    rows = (len(blocks.l1), 1)
    lower = np.full(rows, -np.inf) if blocks.lower is None else blocks.lower
    upper = np.full(rows, np.inf) if blocks.upper is None else blocks.upper
    return lower, upper
