"""Far fewer rows than columns: solve in the space that the rows span."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack, solve_triangular

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads
from admm_softmax.design import DenseDesign
from admm_softmax.kernels import rows
from admm_softmax.penalty import Tikhonov
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Chainable, Iterate, Solver, measured_at

#: W itself, which costs a pass and a half, is formed when the gradient has fallen so much.
FALL = 4.0
#: Iterations of the small problem without such a fall that end it.
PATIENCE = 60


@dataclass(frozen=True)
class RowSpace(Chainable):
    """Run `inner` on an equivalent problem of n × n instead of n × d.

    The loss sees W only through XW, and the penalty (α/2) tr WᵀDW, D diagonal and positive,
    is least among all W with the same XW where W = D⁻¹XᵀA. With the n × n matrix
    𝒦 = X D⁻¹ Xᵀ = B Bᵀ, and V = BᵀA ::

        XW = 𝒦A = B V,        tr WᵀDW = tr Aᵀ𝒦A = ‖V‖²

    so that the problem is softmax regression on the rows of B under a plain penalty. 𝒦 is
    formed in the data's precision: where rounding stops the small problem, another solver
    should go on (`RowSpace(...).then(...)`).
    """

    inner: Solver

    @staticmethod
    def applies(problem: Problem) -> bool:
        """Whether the penalty is of that form, and the data dense."""
        penalty, d = problem.penalty, problem.design.n_features - problem.design.intercept
        return (
            isinstance(problem.design, DenseDesign)
            and penalty.reference is None
            and penalty.alpha > 0
            and penalty.weights is not None
            and bool(penalty.weights[:d].min() > 0)
            and not penalty.weights[d:].any()
        )

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield a W every so often; each costs a pass and a half."""
        before = problem.design.reads
        small = _Small.of(problem)
        V0 = None if W0 is None else small.project(problem, W0)
        best, quiet = np.inf, 0
        for iterate in self.inner.iterates(small.problem, V0):
            size, quiet = iterate.gradient_norm, quiet + 1
            stalled = iterate.stalled or quiet > PATIENCE
            if size * FALL <= best or stalled:
                best, quiet = min(size, best), 0
                point = problem.at(small.lift(problem, iterate.W))
                yield measured_at(point, problem.design.reads - before, stalled=stalled)


@dataclass(frozen=True)
class _Basis:
    """B with 𝒦 = B Bᵀ. It depends on X and D alone: neither on α nor on the rows' weights."""

    #: 𝒦[pivots][:, pivots] = RᵀR, the pivots being the first rows of an order.
    R: Array
    order: Array
    scale: Array
    design: DenseDesign

    @classmethod
    def of(cls, problem: Problem) -> _Basis:
        """The basis of a problem's rows, made once."""
        design = problem.design
        assert isinstance(design, DenseDesign)
        d = design.n_features - design.intercept
        scale = 1.0 / problem.penalty.LtL.diagonal()[:d]
        kept: _Basis | None = design.kept.get("row_space")
        if kept is None or not np.array_equal(kept.scale, scale):
            kept = design.kept["row_space"] = cls._factorise(design, scale)
        return kept

    @classmethod
    def _factorise(cls, design: DenseDesign, scale: Array) -> _Basis:
        gram = design.row_gram(scale)
        factorise = lapack.spstrf if gram.dtype == np.float32 else lapack.dpstrf
        with blas_threads(design.n_threads):
            R, pivots, rank, _ = factorise(gram, lower=0, overwrite_a=1)
        order = pivots - 1
        R = np.triu(R)[:rank]
        corner = R[:, :rank].astype(np.float64)
        if rank == 0:  # X is zero: one column of zeros stands for all
            rank, R, corner = 1, np.zeros((1, design.n_rows)), np.eye(1)
        B = np.empty((design.n_rows, rank), design.dtype)
        B[order] = R.T
        small = DenseDesign(B, intercept=design.intercept, n_threads=design.n_threads)
        return cls(corner, order[:rank], scale, small)


@dataclass(frozen=True)
class _Small:
    """The small problem, and what takes its solutions back."""

    problem: Problem
    basis: _Basis

    @classmethod
    def of(cls, problem: Problem) -> _Small:
        """The small problem; with its Gram matrix it is kept, whatever α may be."""
        kept: _Small | None = problem.cache.get("row_space")
        if kept is None:
            basis = _Basis.of(problem)
            reduced = Problem(
                basis.design,
                problem.labels,
                problem.weights,
                problem.total_weight,
                Tikhonov.over(len(basis.order), 1.0, intercept=problem.design.intercept),
                problem.n_classes,
            )
            kept = problem.cache["row_space"] = cls(reduced, basis)
        return replace(kept, problem=kept.problem.with_alpha(problem.penalty.alpha))

    def lift(self, problem: Problem, V: Array) -> Array:
        """W = D⁻¹XᵀA for an A with BᵀA = V, zero but for the pivots. Half a pass."""
        basis, K = self.basis, V.shape[1]
        A = np.zeros((problem.design.n_rows, K))
        A[basis.order] = solve_triangular(basis.R, V[: len(basis.order)])
        W = problem.design.fold(np.zeros((problem.shape[0], 0)), rows.hand_over, (A,)).product
        W[: len(basis.scale)] *= basis.scale[:, None]
        if problem.design.intercept:
            W[-1] = V[-1]
        return W

    def project(self, problem: Problem, W: Array) -> Array:
        """V with BV = XW at the pivots. One pass."""
        (scores,) = problem.design.fold(W, rows.predict).rows
        if problem.design.intercept:
            scores = scores - W[-1]
        V = solve_triangular(self.basis.R, scores[self.basis.order], trans="T")
        return np.vstack([V, W[-1:]]) if problem.design.intercept else np.asarray(V)
