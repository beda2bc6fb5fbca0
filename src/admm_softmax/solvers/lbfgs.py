"""Limited-memory BFGS, optionally preconditioned by the Gram matrix."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, NamedTuple

import numpy as np

from admm_softmax._arrays import Array, add_multiple
from admm_softmax._checks import check_count
from admm_softmax._vectors import Vectors
from admm_softmax.problem import Point, Problem
from admm_softmax.solvers.base import (
    Chainable,
    Iterate,
    measured_at,
    require_smooth,
    start_at,
)
from admm_softmax.solvers.class_factors import with_class_factors
from admm_softmax.solvers.least_squares import GramStrategy
from admm_softmax.solvers.line_search import P, Plateau, Rule, search
from admm_softmax.solvers.preconditioner import (
    ANTICIPATED,
    CURVATURE_EVERY,
    OVERSHOT,
    PAIRED_REFRESH,
    Factory,
    Name,
    Preconditioner,
    applied_into,
    check_preconditioner,
    gram_strategy,
    make_preconditioner,
    resume_preconditioner,
    state_of,
)
from admm_softmax.solvers.state import State


@dataclass(frozen=True)
class LBFGS(Chainable):
    """W⁺ = W − t B⁻¹ ∇F(W), with B⁻¹ from the last `memory` steps (Nocedal & Wright, ch. 7).

    memory : pairs (s, y) = (W⁺ − W, ∇F⁺ − ∇F) kept.
    preconditioner : the inverse Hessian that the pairs correct. "none" is a multiple of
        the identity, as usual; "jacobi" and "gram" are the inverse of κ XᵀΩX + α LᵀL,
        or of its diagonal, times such a multiple. Where rows are many times more than columns,
        "gram" later has such a matrix for each class, of the rows that are uncertain about it.
    subsample : number of rows, drawn at random, in the Gram matrix; None takes all.
    line_search : "wolfe" (strong) or "armijo".
    seed : of the subsample.

    The first iterate is the start itself; each further one costs a read of X per trial
    step, usually one.

    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import LBFGS, Problem, run
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = Problem.of(X, y, alpha=1e-2)
    >>> run(problem, LBFGS(preconditioner="gram"), tol=1e-6).status.value
    'converged'
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

    def on_factors(self, problem: Problem, share: Callable[[GramStrategy], Factory]) -> LBFGS:
        """With "gram", the preconditioner that `share` makes; itself where no d × d matrix is made.

        An n × n matrix or a sketch is not shared.
        """
        if self.preconditioner != "gram":
            return self
        strategy = gram_strategy(problem, self.subsample, self.seed)
        if not strategy.forms_gram(problem):
            return self
        return replace(self, preconditioner=share(strategy), subsample=None)

    def iterates(
        self, problem: Problem, W0: Array | None, state: State | None = None
    ) -> Iterator[Iterate]:
        """Yield the start, then one iterate per line search."""
        require_smooth(self, problem)
        rounding = problem.design.rounding
        dtype = vector_dtype(problem)
        vectors = Vectors(problem.shape, dtype, 2 * self.memory + 2)
        memory = Memory(self.memory, rounding, vectors)
        newest = problem.slope_at(start_at(problem, W0 if state is None else state["W"], dtype))
        if state is None:
            begun = {**memory.state(newest), "follow": None, "base": None}
            yield measured_at(newest, state=begun, step=0.0)
        base = self._base(problem)
        first = self._first_step(problem, newest, base)
        follow = Followed(first * newest.curvature)
        start: Point | None = newest
        if state is not None:
            memory.resume(state, newest, problem.slope_at)
        if state is not None and state["follow"] is not None:
            start, (follow.curvature, follow.steps) = None, state["follow"]
            resume_preconditioner(base, state["base"])
        else:
            base.refresh(follow.curvature)

        def step(point: Point, pairs: deque[Pair]) -> Step[Point]:
            if point is not start:
                base.refresh(follow(point.curvature))
                if hasattr(base, "follow"):
                    base.follow(point.W, follow.steps)
            direction = _direction(point, pairs, base, vectors)
            length = first if point is start else 1.0
            found = search(
                problem.slope_at,
                point,
                direction,
                rule=self.line_search,
                first=length,
                rounding=rounding,
            )
            if point is start and self.preconditioner == "jacobi":
                found = _shortened(problem, point, direction, *found)
            return Step(*found, spare=direction)

        for iterate in descend(newest, step, memory):
            followed = (follow.curvature, follow.steps)
            more = {"follow": followed, "base": state_of(base)}
            yield replace(iterate, state={**(iterate.state or {}), **more})

    def _base(self, problem: Problem) -> Preconditioner:
        """What the pairs correct: with "gram" one factor for all classes, later one for each."""
        base = make_preconditioner(
            self.preconditioner,
            problem,
            subsample=self.subsample,
            seed=self.seed,
            refresh=PAIRED_REFRESH,
        )
        if self.preconditioner != "gram":
            return base
        return with_class_factors(problem, base, self.subsample, self.seed)

    def _first_step(self, problem: Problem, point: Point, base: Preconditioner) -> float:
        """How long the first step should be, and how much of κ to precondition for."""
        if self.preconditioner == "none":
            return min(1.0, 1.0 / max(float(np.linalg.norm(point.gradient)), 1e-300))
        K = problem.n_classes
        is_uniform = point.curvature > 0.99 * (K - 1) / K**2
        # Factorise once, for the κ expected later, and shorten the first step to make up.
        anticipates = is_uniform and not getattr(base, "fits_start", False)
        return 1.0 / ANTICIPATED if anticipates else 1.0


def _shortened(
    problem: Problem, start: Point, direction: Array, found: Point | None, length: float
) -> tuple[Point | None, float]:
    """The first step, shorter where it has saturated the rows.

    A diagonal does not see that features act together, and its first step can be far too
    long, although F falls: κ tells. Measured on separable data, this halves the passes.
    """
    while found is not None and found.curvature * OVERSHOT < start.curvature:
        shorter = problem.slope_at(start.W + length / ANTICIPATED * direction)
        if not shorter.objective < start.objective:
            break
        found, length = shorter, length / ANTICIPATED
    return found, length


class Followed:
    """The curvature to precondition for: it may rise at once, and fall every CURVATURE_EVERY steps.

    Early iterates overshoot: they saturate rows that a solution does not, and a matrix for
    their small κ makes steps that are far too long.
    """

    def __init__(self, curvature: float) -> None:
        self.curvature, self.steps = curvature, 0

    def __call__(self, curvature: float) -> float:
        """κ at the newest point in, κ to use out."""
        self.steps += 1
        looks = self.steps % CURVATURE_EVERY == 0
        self.curvature = curvature if looks else max(curvature, self.curvature)
        return self.curvature


class Step(NamedTuple, Generic[P]):
    """The next point, or None where no step lowers F; its length; an inner CG's residuals.

    spare : an array of W's shape to write to
    """

    point: P | None
    length: float
    residuals: tuple[float, ...] = ()
    spare: Array | None = None


class Memory:
    """What a descent remembers: the last pairs, and whether there was progress."""

    def __init__(self, size: int, rounding: float, vectors: Vectors) -> None:
        self.pairs: deque[Pair] = deque(maxlen=size)
        #: Memory for the pairs.
        self.vectors = vectors
        self.plateau = Plateau(rounding)

    def remember(self, old: Point, new: Point, spare: Array | None) -> None:
        """Add the pair of two points, unless rounding has spoilt it; s may go to `spare`.

        The oldest pair leaves where there are enough. Its memory is taken again in the next step,
        when the state of this one, which no longer has that pair, has been stored.
        """
        pairs, vectors = self.pairs, self.vectors
        pair = Pair.between(old, new, vectors, spare)
        if pair is None:
            return
        if len(pairs) == pairs.maxlen:
            oldest = pairs.popleft()
            vectors.give(oldest.s)
            vectors.give(oldest.y)
        pairs.append(pair)

    def state(self, point: Point) -> State:
        """What `resume` needs, at the newest point."""
        pairs = [vars(pair) for pair in self.pairs]
        return {"W": point.W, "pairs": pairs, "plateau": self.plateau.state}

    def resume(self, state: State, point: Point, evaluate: Callable[[Array], Point]) -> None:
        """Go on from a state."""
        self.pairs.extend(Pair(**pair) for pair in state["pairs"])
        self.plateau.resume(state["plateau"], point, evaluate)


def descend(
    start: P, step: Callable[[P, deque[Pair]], Step[P]], memory: Memory
) -> Iterator[Iterate]:
    """Take steps, update the pairs, and yield one iterate per step."""
    point = start
    pairs, plateau = memory.pairs, memory.plateau
    while True:
        taken = step(point, pairs)
        if taken.point is None and pairs:
            # Rounding has spoilt the pairs, or they disagree with an inexact inverse: forget
            # them and try once more.
            pairs.clear()
            again = step(point, pairs)
            taken = again._replace(residuals=taken.residuals + again.residuals)
        if taken.point is not None:
            memory.remember(point, taken.point, taken.spare)
            point = taken.point
        stalled = plateau(point, taken.point is not None)
        yield measured_at(
            plateau.best if stalled else point,
            stalled=stalled,
            inner_residuals=taken.residuals,
            state=memory.state(point),
            step=taken.length,
        )


@dataclass(frozen=True)
class Pair:
    """A step s = W⁺ − W and the change y = ∇F⁺ − ∇F of the gradient over it."""

    s: Array
    y: Array
    #: 1 / sᵀy
    inverse: float

    @classmethod
    def between(
        cls, old: Point, new: Point, vectors: Vectors, spare: Array | None = None
    ) -> Pair | None:
        """The pair of two points; None where rounding has spoilt it. s may go to `spare`."""
        s, y = vectors.take() if spare is None else spare, vectors.take()
        # Differences are taken in the precision of both, and rounded to that of the pairs.
        np.subtract(new.W, old.W, out=s, casting="same_kind")
        np.subtract(new.gradient, old.gradient, out=y, casting="same_kind")
        product = float(np.vdot(s, y))
        # F is convex, so sᵀy > 0 but for rounding.
        if product <= 1e-14 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            vectors.give(s)
            vectors.give(y)
            return None
        return cls(s, y, 1.0 / product)


def vector_dtype(problem: Problem) -> Any:
    """What W, gradients and pairs are kept in.

    With few entries of X to a column, vectors cost more than passes, and in single precision they
    cost half. A pass multiplies W in X's own precision anyway, so that F belongs to a W that is
    rounded so; and a direction is as good as that precision lets it be.
    """
    design = problem.design
    return np.float32 if design.is_sparse and design.is_single else np.float64


def two_loop(
    gradient: Array,
    pairs: deque[Pair],
    inner: Callable[[Array], Array],
    out: Array,
    scale: float = 1.0,
) -> Array:
    """−B⁻¹∇F by the two-loop recursion; the pairs correct the inverse `scale` · `inner`.

    The result is `out`; `inner` may write its own to what it is given. The recursion is linear, so
    that the sign and the scale can go to the gradient first, and cost nothing.
    """
    q = np.multiply(gradient, -scale, out=out, casting="same_kind")
    multipliers = []
    for pair in reversed(pairs):
        multiplier = pair.inverse * float(np.vdot(pair.s, q))
        multipliers.append(multiplier / scale)
        add_multiple(q, -multiplier, pair.y)
    r = inner(q)
    if r is not q:
        q[...] = r
    for pair, multiplier in zip(pairs, reversed(multipliers), strict=True):
        add_multiple(q, multiplier - pair.inverse * float(np.vdot(pair.y, q)), pair.s)
    return q


def _direction(point: Point, pairs: deque[Pair], base: Preconditioner, vectors: Vectors) -> Array:
    """−B⁻¹∇F around γ P⁻¹, with γ = sᵀy / yᵀP⁻¹y of the last pair; an array that was taken."""
    out = vectors.take()
    if not base.is_diagonal:
        return two_loop(point.gradient, pairs, partial(_scaled, base, pairs), out)
    scale = 1.0
    if pairs:
        last = pairs[-1]
        Py = applied_into(base, last.y, vectors.take())
        scale = 1.0 / (last.inverse * float(np.vdot(last.y, Py)))
        vectors.give(Py)
    return two_loop(point.gradient, pairs, lambda q: applied_into(base, q, q), out, scale)


def _scaled(base: Preconditioner, pairs: deque[Pair], q: Array) -> Array:
    """γ P⁻¹q, both products with P⁻¹ at once."""
    if not pairs:
        return base.apply(q)
    last, K = pairs[-1], q.shape[1]
    both = base.apply(np.concatenate([q, last.y], axis=1))
    r = np.array(both[:, :K], order="C")
    r /= last.inverse * float(np.vdot(last.y, both[:, K:]))
    return r
