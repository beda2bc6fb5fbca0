"""Proximal L-BFGS: for penalties that are sums over entries or groups of W."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.penalty import Blocks
from admm_softmax.problem import Point, Problem
from admm_softmax.solvers.base import Chainable, Iterate, largest_entry, measured_at, start_at
from admm_softmax.solvers.duality import (
    Certificate,
    frequencies_start,
    leaves_intercept,
)
from admm_softmax.solvers.line_search import C1, Plateau, relative_noise
from admm_softmax.solvers.quadratic_model import Model, Pair
from admm_softmax.solvers.working_set import LastPairs, LastPass, WorkingSet, choose

#: The model is minimised until its optimality is this part of the problem's. With 0.3, single fits
#: of MNIST pixels take half the time, but the path of 5,000 groups took four times as long as
#: with 0.1, and MNIST's a fifth longer.
INEXACT = 0.1
#: On a working set: steps before all features are looked at, and the fall of the optimality
#: that ends them earlier.
MOST_STEPS, ENOUGH = 12, 0.1
#: The shortest step.
SHORTEST = 1e-6


@dataclass(frozen=True)
class ProximalLBFGS(Chainable):
    """W⁺ = W + t (V − W), where V minimises a quadratic model of the loss plus the penalty.

    The model's metric is 2κ XᵀΩX + the Hessian of the smooth penalty, κ the mean curvature of
    the loss, corrected by the last `memory` steps as in L-BFGS. Its minimum is found by
    coordinate descent on the Gram matrix, without a pass over X, and has exact zeros; t is 1
    unless F does not fall.

    Where few features matter, the steps are taken on a *working set* of them, copied out of X;
    a pass over all features then checks that no other should enter, and yields the iterate. A fit
    that follows one under another penalty on the same rows looks at W0 on the other's working set
    alone; its first iterate is where the other has ended, which costs no pass.

    memory : pairs (s, y) kept.
    tol : the accuracy to which the working set of an earlier fit is solved before all features
        are looked at; the `tol` of the run, usually.
    gap : whether iterates carry the relative duality gap, in `details`.

    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import ProximalLBFGS, SoftmaxRegression
    >>> lasso = SoftmaxRegression(alpha=0.1, l1_ratio=1.0, solver=ProximalLBFGS())
    >>> int((lasso.fit(*load_iris(return_X_y=True)).coef_ == 0).sum())
    10
    """

    memory: int = 10
    tol: float = 1e-4
    gap: bool = True

    def __post_init__(self) -> None:
        check_count("memory", self.memory, "at least 1")

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield the start, then an iterate per step, or per working set."""
        blocks = require_blocks(self, problem)
        problem = problem.with_loaded_code()  # coordinate descent is compiled
        W = problem.penalty.prox(_start(problem, W0), 0.0)
        if W0 is None:  # a cold fit gives the same bits whatever was fitted before
            LastPairs.forget(problem)
        plateau, certificate = Plateau(problem.design.rounding), Certificate(problem)
        kept, accuracy = _covering(problem, W), problem.penalty.resolution(self.tol)
        point = None if kept is None or W0 is None else _last(problem, kept, accuracy)
        point = LastPass.at(problem, W) if point is None else point
        yield self._iterate(certificate, point, step=0.0)
        if kept is not None:
            W = _Descent(self, problem, blocks, kept).solve(point, 0.5 * accuracy, W)
            if not np.array_equal(W, point.W):
                point = LastPass.at(problem, W)
                yield self._iterate(certificate, point)
        while True:
            part = WorkingSet.of(problem, choose(problem, point, blocks))
            if part.features is None:
                yield from self._on_all(certificate, blocks, part, point, plateau)
                return
            before, goal = point, ENOUGH * largest_entry(point.optimality)
            W = _Descent(self, problem, blocks, part).solve(point, goal)
            point = LastPass.at(problem, W)
            stalled = plateau(point, not np.array_equal(point.W, before.W))
            yield self._iterate(certificate, plateau.best if stalled else point, stalled=stalled)

    def _on_all(
        self,
        certificate: Certificate,
        blocks: Blocks,
        part: WorkingSet,
        point: Point,
        plateau: Plateau,
    ) -> Iterator[Iterate]:
        """Steps on all features: each is an iterate."""
        descent = _Descent(self, certificate.problem, blocks, part)
        while True:
            new, length = descent.step(point)
            point = point if new is None else new
            stalled = plateau(point, new is not None)
            best = plateau.best if stalled else point
            yield self._iterate(certificate, best, stalled=stalled, step=length)

    def _iterate(
        self, certificate: Certificate, point: Point, *, stalled: bool = False, step: float = 1.0
    ) -> Iterate:
        problem = certificate.problem
        offset = _offset(problem, point.W)
        features = problem.design.n_features - problem.design.intercept
        nonzero = float(np.count_nonzero(offset[:features]))
        gap = certificate.gap(point) if self.gap else float("nan")
        return measured_at(point, stalled=stalled, step=step, nonzero=nonzero, gap=gap)


class _Descent:
    """Steps on a working set."""

    def __init__(
        self, solver: ProximalLBFGS, problem: Problem, blocks: Blocks, part: WorkingSet
    ) -> None:
        self.solver, self.problem, self.part = solver, problem, part
        rows = slice(None) if part.features is None else part.features
        self.rows, self.blocks = rows, blocks if part.features is None else blocks.at(rows)
        quadratic, reference = problem.penalty.quadratic, problem.penalty.reference
        self.reference = None if reference is None else reference[rows]
        self.gram, self.quadratic = part.gram, quadratic
        if quadratic.diagonal is None:
            self.ridge = np.zeros(problem.shape[0])
        else:
            self.ridge = quadratic.strength * quadratic.diagonal[rows]
        self.pairs: deque[Pair] = deque(LastPairs.on(problem, part), maxlen=solver.memory)

    def at(self, W: Array) -> Point:
        """The point of the part's rows of W; the others are at their reference."""
        if self.part.features is None:
            return LastPass.at(self.problem, W)
        fold = self.part.fold(self.problem, W)
        offset = W if self.reference is None else W - self.reference
        smooth = self.ridge[:, None] * offset
        gradient = fold.product + smooth
        value = 0.5 * float(np.vdot(offset, smooth)) + self.blocks.value(offset)
        return Point(
            W=W,
            objective=fold.sums.loss + value,
            loss=fold.sums.loss,
            accuracy=fold.sums.accuracy,
            loss_gradient=fold.product,
            gradient=gradient,
            optimality=self.blocks.optimality(offset, gradient),
            curvature=fold.sums.curvature,
        )

    def solve(self, start: Point, goal: float, ahead: Array | None = None) -> Array:
        """Steps from a point until the optimality is at most `goal`; returns all rows of W.

        ahead : another W to begin at, where F is lower there
        """
        point = self._part_of(start)
        if ahead is not None and not np.array_equal(ahead, start.W):
            there = self.at(ahead[self.rows])
            point = there if there.objective < point.objective else point
        for _ in range(MOST_STEPS):
            if largest_entry(point.optimality) <= goal:
                break
            new, _ = self.step(point)
            if new is None:
                break
            point = new
        whole = start.W.copy()
        whole[self.rows] = point.W
        return whole

    def _part_of(self, point: Point) -> Point:
        """The part's rows of a point; the others are at their reference."""
        return replace(
            point,
            W=point.W[self.rows],
            loss_gradient=point.loss_gradient[self.rows],
            gradient=point.gradient[self.rows],
            optimality=point.optimality[self.rows],
        )

    def step(self, point: Point) -> tuple[Point | None, float]:
        """The next point, and the length of the step; None where F does not fall."""
        found = self._step(point)
        if found[0] is None and self.pairs:
            self.pairs.clear()  # rounding has spoilt them
            found = self._step(point)
        return found

    def _step(self, point: Point) -> tuple[Point | None, float]:
        target, product = self._target(point)
        direction = target - point.W
        expected = float(np.vdot(point.gradient, direction)) + self._rise(point, target)
        noise = relative_noise(self.problem.design.rounding) * max(abs(point.objective), 1e-300)
        if not expected < 0 or not direction.any():
            return None, 0.0
        t = 1.0
        while t >= SHORTEST:
            new = self.at(target if t == 1.0 else point.W + t * direction)
            if new.objective <= point.objective + C1 * t * expected + noise:
                change = new.loss_gradient - point.loss_gradient
                known = None if product is None else t * product
                pair = Pair.between(self.gram, new.W - point.W, change, known)
                if pair is not None:
                    self.pairs.append(pair)
                    self.problem.prepared.last_pairs.keep(LastPairs(self.part, tuple(self.pairs)))
                return new, t
            t *= 0.5
        return None, 0.0

    def _target(self, point: Point) -> tuple[Array, Array | None]:
        """The minimum of the model plus h; and the Gram matrix times the step, where known."""
        gram, ridge = self.gram, self.ridge
        c = max(point.curvature, 1e-8)
        if self.quadratic.diagonal is None:  # a penalty that couples features joins the matrix
            joined = gram.matrix + self.quadratic.matrix.toarray() / (2.0 * c)
            gram = replace(gram, matrix=joined, diagonal=joined.diagonal().copy())
        model = Model(gram, c, ridge, self.pairs)
        offset = point.W if self.reference is None else point.W - self.reference
        size = largest_entry(point.optimality)
        found = model.minimise(offset, point.gradient, self.blocks, INEXACT * size)
        product = None if self.quadratic.diagonal is None else model.product
        return (found if self.reference is None else found + self.reference), product

    def _rise(self, point: Point, target: Array) -> float:
        """h(target) − h(W) + what q rises beyond its slope."""
        old, new = (W if self.reference is None else W - self.reference for W in (point.W, target))
        return self.blocks.value(new) - self.blocks.value(old)


def require_blocks(solver: Any, problem: Problem) -> Blocks:
    """The penalty's blocks; an error in one sentence where it has none."""
    penalty = problem.penalty
    if penalty.is_smooth:
        return Blocks(l1=np.zeros(problem.shape[0]))
    if penalty.blocks is None:
        raise ValueError(
            f"{type(solver).__name__} needs a penalty that is smooth or a sum over entries or "
            f"groups, and {type(penalty).__name__} is neither"
        )
    return penalty.blocks


def _start(problem: Problem, W0: Array | None) -> Array:
    """W0; without one, the model of the class frequencies, where the penalty leaves it free."""
    if W0 is None and problem.penalty.reference is None and leaves_intercept(problem):
        return frequencies_start(problem)
    return start_at(problem, W0)


def _offset(problem: Problem, W: Array) -> Array:
    return W if problem.penalty.reference is None else W - problem.penalty.reference


def _covering(problem: Problem, W: Array) -> WorkingSet | None:
    """The working set of an earlier fit to the same rows, if W is zero outside it."""
    kept = WorkingSet.last(problem)
    if kept is None or kept.features is None or not kept.covers(_rows_of(problem, W)):
        return None
    return kept


def _last(problem: Problem, kept: WorkingSet, accuracy: float) -> Point | None:
    """Where the last fit has ended, if that is worth a look.

    Not if it is accurate enough under this penalty, too: the start is likely to be better, and a
    path would drag behind.
    """
    last = LastPass.kept(problem)
    if last is None or last.residual <= accuracy:
        return None
    return last if kept.covers(_rows_of(problem, last.W)) else None


def _rows_of(problem: Problem, W: Array) -> Any:
    """The rows of W that are not at their reference."""
    return np.flatnonzero(_offset(problem, W).any(axis=1))
