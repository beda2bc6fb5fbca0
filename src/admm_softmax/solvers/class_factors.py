"""One factor per class for L-BFGS: what `Gram` is for all classes, for the rows of each.

The loss's Hessian has a block for every two classes, H_jk = Σ wᵢ p_ij (δ_jk − p_ik) x̃ᵢᵀx̃ᵢ. `Gram`
puts κ G, G = X̃ᵀΩX̃, in the place of each H_kk, as if every row were equally uncertain about every
class. Near a solution most rows are certain, and each class has a few rows of its own that are
not. With a_ik = wᵢ p_ik (1 − p_ik) for the rows of a sample, and κ_k = Σᵢ a_ik ::

    S_k  =  Σ_{i in I_k} (1 − λ_k) a_ik x̃ᵢᵀx̃ᵢ  +  κ'_k G  +  α LᵀL
    λ_k  =  c d / (c d + n_k),   n_k = (Σᵢ a_ik)² / Σᵢ a_ik²

n_k is the number of rows that count for class k. Where they are few beside the columns, their
matrix says less than G about the rows that were not drawn. I_k leaves out the many rows with small
a_ik, which cost as much as others; κ'_k G stands for these and for λ_k, so that the weights of a
class still have the sum κ_k.

One vector added to all classes changes no prediction: along such directions F has the curvature
of the penalty alone, and a step with S_k for each class would have a part along them that is far
off. So with Q R = R less its mean over the classes ::

    P⁻¹ R  =  Q S⁻¹ Q R  +  (κ G + α LᵀL)⁻¹ (R − Q R)

Passes over X to relative gaps of 1e-3 and 1e-6, on 100 principal components of MNIST's 60,000
images with α = 1e-4: 30 and 76 with `Gram`, 15 and 51 with S⁻¹, 13 and 20 with P⁻¹. The rest is in
docs/decisions/0030-class-factors.md.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads, ordered_map
from admm_softmax.design.blocks import RowBlockDesign, dense
from admm_softmax.kernels.softmax import softmax
from admm_softmax.problem import Problem
from admm_softmax.solvers.costs import LARGEST_FACTOR, SAMPLED_ROWS, pass_cost
from admm_softmax.solvers.least_squares import Breakdown, GramStrategy
from admm_softmax.solvers.least_squares.cholesky import normal_matrix
from admm_softmax.solvers.preconditioner import (
    SMALLEST_CURVATURE,
    Gram,
    Preconditioner,
    gram_strategy,
)
from admm_softmax.solvers.state import State

logger = logging.getLogger("admm_softmax")

#: Factors are made, and made again, at these steps: the first, and each time so many times later.
#: Before the first, iterates overshoot.
FIRST_STEP, LATER = 4, 3
#: All together may cost this share of the steps so far, each counted as a pass: so little is lost
#: where a fit ends before it is won back.
SHARE = 0.35
#: Rows to draw, if they may cost so much. Fewer than the first, or than d, tell too little.
FEWEST_ROWS, MOST_ROWS = 1_000, 2 * SAMPLED_ROWS
#: Rows that count less for a class than this, compared with the mean, are left out for it. With 0,
#: 0.1, 0.2 and 0.4 the passes are the same, and the rows all, a half, two fifths and a third.
LEAST = 0.4
#: c of λ: with 0.1, 0.3 and 1 images take 21, 24 and 28 passes to 1e-4, embeddings the same.
SHRINKAGE = 0.3
#: λ is at least the first, so that S is as definite as G. Where half of the classes have more than
#: the second, S is too close to a multiple of G to be worth its price.
SMALLEST_SHRINKAGE, LARGEST_SHRINKAGE = 0.01, 0.6
#: κ_k is at least this share of its mean over the classes: a class that no row is uncertain about,
#: as one without rows, would have steps that are far too long.
LEAST_OF_MEAN = 1e-3
#: Factors may take what X takes, or the largest matrix to factorise, divided by this: each step
#: reads them.
BESIDE_X = 8
#: What they cost, in operations of a Gram matrix: for a row and a class to predict it, and to pick
#: an entry of it and scale it; the share of the rows that is picked for a class; calls for a class,
#: and d³ for it. Fitted to 51 to 785 columns and 2,000 to 10,000 rows on an Ice Lake with AVX-512.
#: On an Emerald Rapids sets cost 0.7 to 2.0 times that, 1.25 in the mean of seven shapes, and held
#: to AVX2 0.3 to 1.2 times, 0.8 in the mean: there passes, which they are counted in, take longer.
PREDICTING, PICKING, PICKED, CALLS, CUBES = 6_000.0, 300.0, 0.3, 3e7, 3.0


class Origin(NamedTuple):
    """What factors were made from: predictions with this W, for so many rows."""

    W: Array
    n_rows: int


class FactorSet:
    """One factor per class.

    inverses : M_k with S_k⁻¹ = M_kᵀ M_k, one above the other; one alone where it serves all
    origin : what they were made from
    """

    def __init__(self, inverses: Any, origin: Origin) -> None:
        self.inverses, self.origin = inverses, origin

    def solve(self, sides: list[Array]) -> list[Array]:
        """S⁻¹B for several B, each K × d × m, computed together; they may be written over."""
        inverses = self.inverses
        B = sides[0] if len(sides) == 1 else np.concatenate(sides, axis=2)

        def solve(k: int) -> None:
            M = inverses[k % len(inverses)]
            np.matmul(M.T, M @ B[k], out=B[k])  # the second time from the cache

        ordered_map(solve, range(len(B)), operations=4.0 * B.size * inverses.shape[1])
        return np.split(B, np.cumsum([side.shape[2] for side in sides])[:-1], axis=2)


class SetMaker:
    """Makes sets of factors from drawn rows, and counts what they cost.

    strategy : how `Gram` factorises G
    seed : of the rows that are drawn
    """

    def __init__(self, strategy: GramStrategy, seed: int) -> None:
        self.strategy, self.seed = strategy, seed
        #: What all sets have cost, in passes.
        self.spent = 0.0

    def buy(self, problem: Problem, W: Array, steps: int) -> Origin | None:
        """What a set at W may be made from after so many steps; its cost then counts as spent.

        None where steps are too few to pay for one.
        """
        # Rows in files are read once more to draw from them.
        reading = 0.0 if problem.design.is_in_memory else 1.0
        n_rows = affordable_rows(problem, SHARE * steps - self.spent - reading)
        if n_rows < max(FEWEST_ROWS, len(W)):
            return None
        self.spent += reading + cost(problem, n_rows)
        return Origin(W, n_rows)

    def make(self, problem: Problem, origin: Origin) -> FactorSet | None:
        """A set for this problem; None where it is not worth its price, or cannot be made."""
        K = n_factors(problem.n_classes)
        sample, (weights,) = problem.design.sample(
            origin.n_rows, self.seed, problem.weights, problem.weights
        )
        # One look for predictions, and one at the rows that are picked for each class.
        problem.design.count_read((1.0 + PICKED * K) * sample.n_rows / problem.design.n_rows)
        A = sample.map_scores(origin.W, _uncertainty)[:, :K]
        w = sample.gather(weights)
        A *= (w / w.sum()).astype(A.dtype)[:, None]
        rows = Uncertain.of(A, len(origin.W))
        if np.median(rows.shrinkage) > LARGEST_SHRINKAGE:
            return None
        G, X = self.strategy.gram_of(problem), whole(sample)
        penalty, dtype = problem.penalty.quadratic.matrix, _precision(problem, G)
        inverses = np.empty((K, *G.shape), dtype)

        def make(k: int) -> None:
            H = normal_matrix(G, rows.shared[k], penalty, dtype)
            H += weighted_gram(X, rows.own[k])
            inverses[k] = inverse_factor(H)

        try:
            if K == 1:
                with blas_threads(operations=float(len(X) * len(G) ** 2)):
                    make(0)
            else:
                ordered_map(make, range(K))
        except Breakdown as reason:
            logger.info("%s; no new factors are made", reason)
            return None
        return FactorSet(inverses, origin)


class ByClass:
    """P⁻¹ of a set of factors, and of `shared` for what classes have in common.

    shared : the preconditioner with one factor for all classes; alone as long as there is no set
    """

    is_diagonal = False

    def __init__(self, problem: Problem, shared: Gram, made: FactorSet | None = None) -> None:
        self.problem, self.shared = problem, shared
        #: The set in use.
        self.set = made

    @property
    def fits_start(self) -> bool:
        """Whether there is a set, which is made for predictions as they are."""
        return self.set is not None

    def refresh(self, curvature: float) -> bool:
        """As `shared`, as long as there is no factor per class, but at least once."""
        needless = self.set is not None and self.shared.curvature > 0
        return not needless and self.shared.refresh(curvature)

    def apply(self, R: Array) -> Array:
        """P⁻¹R, for any number of d × K matrices side by side."""
        if self.set is None:
            return self.shared.apply(R)
        by_class = R.reshape(len(R), -1, self.problem.n_classes)
        common = by_class.mean(axis=2)
        sides = by_class.transpose(2, 0, 1) - common
        B = self._solve(self.set, sides.astype(self.set.inverses.dtype, order="C", copy=False))
        common = self.shared.apply(common) - B.mean(axis=0, dtype=np.float64)
        solved: Array = np.add(B.transpose(1, 2, 0), common[:, :, None], order="C")
        return solved.reshape(R.shape)

    def _solve(self, factors: FactorSet, B: Array) -> Array:
        return factors.solve([B])[0]


class ClassFactors(ByClass):
    """`shared` at first, and from some step on a factor per class, if that is worth its price."""

    def __init__(self, problem: Problem, shared: Gram, maker: SetMaker) -> None:
        super().__init__(problem, shared)
        self.maker = maker

    def follow(self, W: Array, step: int) -> None:
        """Make factors at W, the iterate after this many steps, if now is the time for it."""
        # A solver before this one may have left another factorisation, without a G.
        if not (is_time(step) and self.maker.strategy.has_gram_of(self.problem)):
            return
        if (origin := self.maker.buy(self.problem, W, step)) is not None:
            self._make(origin)

    @property
    def state(self) -> State:
        """What a checkpoint keeps: κ of `shared`, what the factors were made from, their cost."""
        made = None if self.set is None else self.set.origin._asdict()
        return {"curvature": self.shared.curvature, "origin": made, "spent": self.maker.spent}

    def resume(self, state: State) -> None:
        """Make again what was in use in this state."""
        self.shared.refresh(state["curvature"])
        self.maker.spent = state["spent"]
        if state["origin"] is not None:
            self._make(Origin(**state["origin"]))

    def _make(self, origin: Origin) -> None:
        self.set = self.maker.make(self.problem, origin) or self.set


class Uncertain(NamedTuple):
    """How much each row of a sample counts for each class.

    own : (1 − λ_k) a_ik for the rows of I_k, K × m, zero for others
    shared : κ'_k
    shrinkage : λ_k
    """

    own: Array
    shared: Array
    shrinkage: Array

    @classmethod
    def of(cls, A: Array, d: int) -> Uncertain:
        """From a_ik, m × K, for d columns of X."""
        A = np.ascontiguousarray(A.T)
        total = A.sum(axis=1, dtype=np.float64)
        squares = np.einsum("ki,ki->k", A, A, dtype=np.float64)
        counts = total**2 / np.maximum(squares, SMALLEST_CURVATURE**2)
        shrinkage = np.maximum(SHRINKAGE * d / (SHRINKAGE * d + counts), SMALLEST_SHRINKAGE)
        A[LEAST / A.shape[1] * total[:, None] > A] = 0.0
        A *= 1.0 - shrinkage[:, None]
        least = max(LEAST_OF_MEAN * total.mean(), SMALLEST_CURVATURE)
        rest = np.maximum(total, least) - A.sum(axis=1, dtype=np.float64)
        return cls(A, rest, shrinkage)


def with_class_factors(
    problem: Problem, shared: Preconditioner, subsample: int | None, seed: int
) -> Preconditioner:
    """`ClassFactors`, where there is a d × d matrix and rows can be drawn."""
    strategy = gram_strategy(problem, subsample, seed)
    if not (draws_rows(problem) and strategy.forms_gram(problem)):
        return shared
    assert isinstance(shared, Gram)
    return ClassFactors(problem, shared, SetMaker(strategy, seed))


def draws_rows(problem: Problem) -> bool:
    """Whether rows for factors can be copied here: not from elsewhere, nor sparse ones."""
    design = problem.design
    return not (design.is_remote or design.rows_stay or design.is_sparse)


def is_time(step: int) -> bool:
    """Whether factors are made after this many steps: 4, 12, 36 and so on."""
    while step > FIRST_STEP and step % LATER == 0:
        step //= LATER
    return step == FIRST_STEP


def n_factors(n_classes: int) -> int:
    """How many factors there are: two classes are uncertain about the same rows."""
    return 1 if n_classes == 2 else n_classes


def affordable_rows(problem: Problem, passes: float) -> int:
    """From how many rows factors cost at most so many passes; 0 where they need too much memory.

    Each step reads them all: they may take a part of what X takes, and of the largest matrix to
    factorise.
    """
    design, factors = problem.design, n_factors(problem.n_classes)
    if factors * design.n_features**2 > min(design.entries, LARGEST_FACTOR**2) / BESIDE_X:
        return 0
    alone, a_row = cost(problem, 0), cost(problem, 1) - cost(problem, 0)
    rows = min(MOST_ROWS, (passes - alone) / a_row)
    return min(int(rows), design.count(problem.weights)) if rows > 0 else 0


def cost(problem: Problem, n_rows: int) -> float:
    """What factors from so many rows cost, in passes."""
    d, K = problem.shape
    each = n_rows * (PREDICTING + PICKED * d * (d + PICKING)) + CALLS + CUBES * d**3
    return n_factors(K) * each / pass_cost(problem)


def whole(sample: RowBlockDesign) -> Any:
    """X̃ of a sample, with its constant column, in the precision of its products."""
    X = dense(sample.block(slice(0, sample.n_rows)))
    ones = np.ones((len(X), int(sample.intercept)), sample.dtype)
    return np.concatenate([X, ones], axis=1, dtype=sample.dtype)


def weighted_gram(X: Any, weights: Array) -> Any:
    """Σ wᵢ x̃ᵢᵀx̃ᵢ of the rows that have weight."""
    chosen = np.flatnonzero(weights)
    panel = X[chosen]
    panel *= np.sqrt(weights[chosen]).astype(X.dtype)[:, None]
    # NumPy sees that this is symmetric, and unlike SciPy lets other threads run meanwhile.
    return (panel.T @ panel).T


def inverse_factor(H: Any) -> Any:
    """M with H⁻¹ = MᵀM, for a symmetric H in Fortran order, which is written over.

    H is scaled to a unit diagonal first, as in `CholeskyStep`. Products with M take one call, and
    triangular solves several. Breakdown where H is not definite to rounding.
    """
    diagonal = H.diagonal().astype(np.float64)
    if not diagonal.min() > 0:
        raise Breakdown(f"column {int(diagonal.argmin())} of the features is zero for a class")
    scale = (1.0 / np.sqrt(diagonal)).astype(H.dtype)
    H *= scale
    H *= scale[:, None]
    single = H.dtype == np.float32
    R, info = (lapack.spotrf if single else lapack.dpotrf)(H, lower=0, overwrite_a=1, clean=1)
    if info == 0:
        R, info = (lapack.strtri if single else lapack.dtrtri)(R, lower=0, overwrite_c=1)
    if info != 0 or not np.isfinite(R.sum()):
        raise Breakdown("the matrix of a class is not definite")
    M = R.T
    M *= scale
    return M


def _precision(problem: Problem, G: Any) -> Any:
    """That of the data, unless G overflows there.

    G may be in double all the same, where a factorisation in single precision broke down: what a
    set is must not depend on what happened before.
    """
    single = problem.design.is_single and G.diagonal().max() < np.finfo(np.float32).max
    return np.dtype(np.float32 if single else np.float64)


def _uncertainty(scores: Array) -> Array:
    """p (1 − p), in single precision: it need not be more exact than the sample is."""
    P, _ = softmax(scores.astype(np.float32))
    P *= 1.0 - P
    return P
