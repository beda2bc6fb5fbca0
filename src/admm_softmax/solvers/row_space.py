"""Far fewer rows than columns: solve in the space that the rows span."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack, solve_triangular

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads
from admm_softmax.design import DenseDesign, Design
from admm_softmax.kernels import rows
from admm_softmax.penalty import Tikhonov
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import (
    Chainable,
    Iterate,
    Solver,
    measured_at,
    resumed,
    unmeasured,
)
from admm_softmax.solvers.state import State, with_rows

#: W, which costs a pass and a half, is formed when the gradient has fallen by this factor.
FALL = 4.0
#: The small problem ends after this many iterations without such a fall.
QUIET_ITERATIONS = 60


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
        design, quadratic = problem.design, problem.penalty.quadratic
        d, D = design.n_features - design.intercept, quadratic.diagonal
        return (
            design.can_form_row_gram
            and not design.is_sparse
            and problem.penalty.is_smooth
            and quadratic.reference is None
            and quadratic.strength > 0
            and D is not None
            and bool(D[:d].min() > 0)
            and not D[d:].any()
        )

    def iterates(
        self, problem: Problem, W0: Array | None, state: State | None = None
    ) -> Iterator[Iterate]:
        """Yield W whenever the gradient has fallen by FALL; each W costs a pass and a half.

        The design must be able to form an n × n matrix (`can_form_row_gram`), in memory here.
        """
        small = ReducedProblem.of(problem)
        large, reduced = problem.design, small.problem.design
        best, quiet, inner = np.inf, 0, None
        begun = state is not None
        if state is not None:
            V0, best = state["V"], state["best"]
            inner = with_rows(state["inner"], lambda r: reduced.place(large.gather(r)))
        else:
            V0 = None if W0 is None else small.project(problem, W0)
        for iterate in resumed(self.inner, small.problem, V0, inner, begun=begun):
            size, quiet = iterate.gradient_norm, quiet + 1
            stalled = iterate.stalled or quiet > QUIET_ITERATIONS
            if size * FALL <= best or stalled:
                best, quiet = min(size, best), 0
                W = small.lift(problem, iterate.W)
                if W0 is not None and not begun and _differs(W, W0, large.rounding):
                    yield unmeasured(np.array(W0, dtype=np.float64))
                # Handles in a state belong to the design of the problem that the run knows.
                kept = with_rows(iterate.state, lambda r: large.place(reduced.gather(r)))
                now = {"V": iterate.W, "best": best, "inner": kept}
                found = measured_at(problem.at(W), stalled=stalled, state=now)
                yield replace(found, is_step=begun)
            begun = True


def _differs(W: Array, W0: Array, rounding: float) -> bool:
    """Whether W0 has a part that no row sees, and that the space of the rows has no room for."""
    return bool(np.linalg.norm(W - W0) > np.sqrt(rounding) * np.linalg.norm(W0))


@dataclass(frozen=True)
class RowBasis:
    """B with 𝒦 = B Bᵀ. It depends on X and D alone: neither on α nor on the rows' weights."""

    #: 𝒦[pivots][:, pivots] = RᵀR, the pivots being the first rows of an order.
    R: Array
    order: Array
    scale: Array
    design: DenseDesign

    @classmethod
    def of(cls, problem: Problem) -> RowBasis:
        """The basis of a problem's rows, computed once."""
        design, D = problem.design, problem.penalty.quadratic.diagonal
        assert D is not None
        scale = 1.0 / D[: design.n_features - design.intercept]
        return problem.prepared.row_basis.get(
            lambda kept: np.array_equal(kept.scale, scale),
            lambda: cls._factorise(design, scale),
        )

    @classmethod
    def _factorise(cls, design: Design, scale: Array) -> RowBasis:
        gram = design.row_gram(scale)
        factorise = lapack.spstrf if gram.dtype == np.float32 else lapack.dpstrf
        with blas_threads(operations=design.n_rows**3 / 3):
            R, pivots, rank, _ = factorise(gram, lower=0, overwrite_a=1)
        order = pivots - 1
        R = np.triu(R)[:rank]
        corner = R[:, :rank].astype(np.float64)
        if rank == 0:  # X is zero: one column of zeros stands for all
            rank, R, corner = 1, np.zeros((1, design.n_rows)), np.eye(1)
        B = np.empty((design.n_rows, rank), design.dtype)
        B[order] = R.T
        return cls(corner, order[:rank], scale, DenseDesign(B, intercept=design.intercept))


@dataclass(frozen=True)
class ReducedProblem:
    """The small problem, and the maps between its solutions V and W."""

    problem: Problem
    basis: RowBasis

    @classmethod
    def of(cls, problem: Problem) -> ReducedProblem:
        """The small problem at this α; its data and Gram matrix are kept for other α."""
        basis = RowBasis.of(problem)
        kept = problem.prepared.reduced_problem.get(
            lambda kept: kept.basis is basis, lambda: cls._on(problem, basis)
        )
        return replace(kept, problem=kept.problem.with_alpha(problem.penalty.quadratic.strength))

    @classmethod
    def _on(cls, problem: Problem, basis: RowBasis) -> ReducedProblem:
        large, small = problem.design, basis.design
        reduced = Problem.on_rows(
            small,
            small.place(large.gather(problem.labels)),
            small.place(large.gather(problem.weights)),
            problem.total_weight,
            Tikhonov.over(len(basis.order), 1.0, intercept=large.intercept),
            problem.n_classes,
        )
        return cls(reduced, basis)

    def lift(self, problem: Problem, V: Array) -> Array:
        """W = D⁻¹XᵀA for an A with BᵀA = V, zero except at the pivots. Half a pass."""
        basis, design = self.basis, problem.design
        A = np.zeros((design.n_rows, V.shape[1]))
        A[basis.order] = solve_triangular(basis.R, V[: len(basis.order)])
        W = design.transpose_product(A)
        W[: len(basis.scale)] *= basis.scale[:, None]
        if design.intercept:
            W[-1] = V[-1]
        return W

    def project(self, problem: Problem, W: Array) -> Array:
        """V with BV = XW at the pivots. One pass."""
        design = problem.design
        scores = design.gather(design.fold(W, rows.predict).new_rows)
        if design.intercept:
            scores = scores - W[-1]
        V = solve_triangular(self.basis.R, scores[self.basis.order], trans="T")
        return np.vstack([V, W[-1:]]) if design.intercept else np.asarray(V)
