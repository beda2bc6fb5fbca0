"""Limited-memory BFGS, optionally preconditioned by the Gram matrix."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import blas

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.problem import Point, Problem
from admm_softmax.solvers.base import Chainable, Iterate, measured_at, start_at
from admm_softmax.solvers.line_search import Plateau, Rule, search
from admm_softmax.solvers.preconditioner import (
    Factory,
    Name,
    Preconditioner,
    check_preconditioner,
    make_preconditioner,
)

#: The pairs make up for a κ that is off by so much; a factorisation costs several passes.
REFRESH = 8.0
#: From uniform predictions κ only falls, usually by about this much before it settles.
ANTICIPATED = 6.0


@dataclass(frozen=True)
class LBFGS(Chainable):
    """W⁺ = W − t B⁻¹ ∇F(W), with B⁻¹ from the last `memory` steps (Nocedal & Wright, ch. 7).

    memory : pairs (s, y) = (W⁺ − W, ∇F⁺ − ∇F) kept.
    preconditioner : the inverse Hessian that the pairs correct. "none" is a multiple of
        the identity, as usual; "jacobi" and "gram" are the inverse of κ XᵀΩX + α LᵀL,
        or of its diagonal, times such a multiple.
    subsample : rows, drawn at random, that make the Gram matrix; None takes all.
    line_search : "wolfe" (strong) or "armijo".
    seed : of the subsample.

    The first iterate is the start itself; each further one costs a read of X a trial
    step, usually one.
    """

    memory: int = 10
    preconditioner: Name | Factory = "none"
    subsample: int | None = None
    line_search: Rule = "wolfe"
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("memory", self.memory, "at least 1")
        if self.line_search not in ("wolfe", "armijo"):
            raise ValueError(f"line_search must be 'wolfe' or 'armijo', got {self.line_search!r}")
        check_preconditioner(self.preconditioner, self.subsample)

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield the start, then one iterate a line search."""
        before = problem.design.reads
        point = problem.at(start_at(problem, W0))
        yield measured_at(point, problem.design.reads - before, step=0.0)
        base = make_preconditioner(
            self.preconditioner,
            problem,
            subsample=self.subsample,
            seed=self.seed,
            refresh=REFRESH,
        )
        pairs: deque[Pair] = deque(maxlen=self.memory)
        plateau = Plateau(problem.design.dtype.itemsize)
        first = self._first_step(problem, point, base)
        while True:
            base.refresh(point.curvature)
            new, length = self._step(problem, point, pairs, base, 1.0 if pairs else first)
            if new is None and pairs:
                # Rounding has spoilt the pairs: forget them and try once more.
                pairs.clear()
                new, length = self._step(problem, point, pairs, base, 1.0)
            if new is not None:
                remember(pairs, point, new)
                point = new
            stalled = plateau(point, new is not None)
            yield measured_at(
                plateau.best if stalled else point,
                problem.design.reads - before,
                stalled=stalled,
                step=length,
            )

    def _first_step(self, problem: Problem, point: Point, base: Preconditioner) -> float:
        """Prepare the preconditioner and say how long the first step should be."""
        if self.preconditioner == "none":
            return min(1.0, 1.0 / max(float(np.linalg.norm(point.gradient)), 1e-300))
        K = problem.n_classes
        is_uniform = point.curvature > 0.99 * (K - 1) / K**2
        if not is_uniform:
            return 1.0
        # Factorise once, for the κ to come, and make up for it in the first step.
        base.refresh(point.curvature / ANTICIPATED)
        return 1.0 / ANTICIPATED

    def _step(
        self,
        problem: Problem,
        point: Point,
        pairs: deque[Pair],
        base: Preconditioner,
        first: float,
    ) -> tuple[Point | None, float]:
        return search(
            problem.at,
            point,
            -two_loop(point.gradient, pairs, partial(_scaled, base, pairs)),
            rule=self.line_search,
            first=first,
            itemsize=problem.design.dtype.itemsize,
        )


@dataclass(frozen=True)
class Pair:
    """A step s = W⁺ − W and the change y = ∇F⁺ − ∇F of the gradient over it."""

    s: Array
    y: Array
    #: 1 / sᵀy
    inverse: float

    @classmethod
    def between(cls, old: Point, new: Point) -> Pair | None:
        """The pair of two points; None where rounding has spoilt it."""
        s, y = new.W - old.W, new.gradient - old.gradient
        product = float(np.vdot(s, y))
        # F is convex, so sᵀy > 0 but for rounding.
        if product <= 1e-14 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return None
        return cls(s, y, 1.0 / product)


def remember(pairs: deque[Pair], old: Point, new: Point) -> None:
    """Add the pair of two points, unless rounding has spoilt it."""
    pair = Pair.between(old, new)
    if pair is not None:
        pairs.append(pair)


def two_loop(gradient: Array, pairs: deque[Pair], inner: Callable[[Array], Array]) -> Array:
    """B⁻¹∇F by the two-loop recursion around `inner`, the inverse that the pairs correct."""
    q = np.array(gradient, order="C")
    weights = []
    for pair in reversed(pairs):
        weight = pair.inverse * float(np.vdot(pair.s, q))
        weights.append(weight)
        _add(q, -weight, pair.y)
    r = inner(q)
    for pair, weight in zip(pairs, reversed(weights), strict=True):
        _add(r, weight - pair.inverse * float(np.vdot(pair.y, r)), pair.s)
    return r


def _scaled(base: Preconditioner, pairs: deque[Pair], q: Array) -> Array:
    """γ P⁻¹q, with γ = sᵀy / yᵀP⁻¹y of the last pair."""
    if not pairs:
        return base.apply(q)
    last, K = pairs[-1], q.shape[1]
    both = base.apply(np.concatenate([q, last.y], axis=1))
    r = np.array(both[:, :K], order="C")
    r /= last.inverse * float(np.vdot(last.y, both[:, K:]))
    return r


def _add(total: Array, factor: float, term: Array) -> None:
    """Add factor · term to a C-ordered array, without the temporary that NumPy would make."""
    blas.daxpy(term.ravel(), total.reshape(-1), a=factor)
