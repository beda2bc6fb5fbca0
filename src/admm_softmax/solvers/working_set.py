"""The features that a fit works on: a part of X in memory, and its Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.design import Design, Rows
from admm_softmax.kernels import rows
from admm_softmax.penalty import Blocks, Penalty, Tikhonov
from admm_softmax.problem import Point, Problem
from admm_softmax.solvers.costs import SAMPLED_ROWS
from admm_softmax.solvers.duality import leaves_intercept
from admm_softmax.solvers.preconditioner import SampledGram
from admm_softmax.solvers.quadratic_model import Gram, Pair

#: A working set of more than this share of all features is all of them.
WHOLE_ABOVE = 0.5
#: All features at once, where there are at most so many and this share of them wants to enter.
MODERATE, MANY = 3_000, 0.25
#: The least number of features that are added at once.
LEAST_ADDED = 64
#: Features at zero whose gradient is below this part of their threshold stay out.
CANDIDATES_ABOVE = 0.5
#: The largest Gram matrix; beyond it the diagonal must do.
LARGEST_GRAM = 6_000
#: The same for sparse columns, in entries of the matrix per entry of X. Over 2,000 rows with seven
#: entries in each of 4,700 columns (690), the diagonal takes a tenth of the time.
FULLEST_GRAM = 100
#: Steps of the last fit that the next one begins with: all ten would save few passes more, and
#: each slows coordinate descent down.
KEPT = 5
#: Rows of a sample per feature that make a Gram matrix good enough for a metric.
ROWS_PER_FEATURE = 4


@dataclass(frozen=True)
class WorkingSet:
    """Some rows of W (the intercept among them), their columns of X, and their Gram matrix.

    features : increasing row numbers of W; None for all
    design : the columns on the same rows as the problem's design, or that design itself
    share : of the features, for counting reads
    """

    features: Any
    design: Design
    gram: Gram
    share: float

    @classmethod
    def of(cls, problem: Problem, features: Any) -> WorkingSet:
        """The set with these features, or the last one where that has them all."""
        kept = problem.prepared.working_set
        return kept.get(lambda last: last.covers(features), lambda: _made(problem, features))

    @classmethod
    def last(cls, problem: Problem) -> WorkingSet | None:
        """The set of an earlier fit to the same rows, if any."""
        return problem.prepared.working_set.last()

    def covers(self, features: Any) -> bool:
        """Whether these features are all in the set."""
        if self.features is None:
            return True
        if features is None or len(features) > len(self.features):
            return False
        places = np.searchsorted(self.features, features)
        places[places == len(self.features)] = 0
        return bool((self.features[places] == features).all())

    def fold(self, problem: Problem, W: Array) -> Any:
        """Loss and gradient at W, the rows of the set."""
        handles: tuple[Rows, ...] = (problem.labels, problem.weights)
        if self.features is None:
            return problem.design.fold(W, rows.gradient, handles)
        problem.design.count_read(self.share)
        return self.design.fold(W, rows.gradient, handles)


@dataclass(frozen=True)
class LastPass:
    """The last pass over all features.

    No penalty is in its figures, so that the next fit to the same rows, under another penalty, can
    begin where the last has ended without a pass.

    penalty : that of the fit that made it
    """

    W: Array
    fold: Any
    penalty: Penalty

    @classmethod
    def kept(cls, problem: Problem) -> Point | None:
        """Where the last fit under another penalty has ended, under this problem's. No read."""
        kept = problem.prepared.last_pass.last()
        if kept is None or kept.penalty is problem.penalty:
            return None
        return problem.point(kept.W, kept.fold)

    @classmethod
    def at(cls, problem: Problem, W: Array) -> Point:
        """As `problem.at(W)`, without a read where the last pass was at W."""
        kept = problem.prepared.last_pass.last()
        if kept is None or not np.array_equal(kept.W, W):
            handles: tuple[Rows, ...] = (problem.labels, problem.weights)
            kept = cls(W, problem.design.fold(W, rows.gradient, handles), problem.penalty)
            problem.prepared.last_pass.keep(kept)
        return problem.point(W, kept.fold)


@dataclass(frozen=True)
class LastPairs:
    """The last steps on a working set, with the changes of the loss's gradient over them."""

    part: WorkingSet
    pairs: tuple[Pair, ...]

    @classmethod
    def on(cls, problem: Problem, part: WorkingSet) -> tuple[Pair, ...]:
        """Those on this set; none if the last steps were on another."""
        kept = problem.prepared.last_pairs.last()
        return kept.pairs[-KEPT:] if kept is not None and kept.part is part else ()

    @classmethod
    def forget(cls, problem: Problem) -> None:
        """Let the next fit begin with a model from the Gram matrix alone."""
        kept = problem.prepared.last_pairs.last()
        if kept is not None:
            problem.prepared.last_pairs.keep(cls(kept.part, ()))


def choose(problem: Problem, point: Point, blocks: Blocks) -> Any:
    """The features to work on next: those that are not zero, and those that may enter.

    As many may enter as are in already, the most eager first: so that working sets double, and
    their making stays a small part of the work. None stands for all features.
    """
    d = len(point.W)
    offset = point.W if problem.penalty.reference is None else point.W - problem.penalty.reference
    q = problem.penalty.quadratic
    if not problem.design.can_take_columns or blocks.is_bounded or q.diagonal is None:
        return None
    reach = blocks.reach(point.gradient)
    inside = offset.any(axis=1) | blocks.free
    if problem.penalty.reference is not None:  # a part of X knows nothing of the other columns
        inside |= problem.penalty.reference.any(axis=1)
    if problem.design.intercept:
        inside[-1] = True
    eager = np.where(inside, 0.0, reach)
    n_eager = int((eager > 1).sum())
    if d <= MODERATE and n_eager > MANY * d:
        return None
    room = max(LEAST_ADDED, int(inside.sum()), n_eager // 4)
    candidates = np.flatnonzero(eager > CANDIDATES_ABOVE)
    order = candidates[np.argsort(-eager[candidates], kind="stable")][:room]
    inside[order] = True
    if blocks.group is not None:
        inside = np.isin(blocks.group, np.unique(blocks.group[inside]))
    features = np.flatnonzero(inside)
    return None if len(features) > WHOLE_ABOVE * d else features


def _made(problem: Problem, features: Any) -> WorkingSet:
    design = problem.design
    if features is None:
        return WorkingSet(None, design, _gram(problem, leaves_intercept(problem)), 1.0)
    columns = features[features < design.n_features - design.intercept]
    part = design.columns(columns).with_loaded_code()
    small = Problem.on_rows(
        part,
        problem.labels,
        problem.weights,
        problem.total_weight,
        Tikhonov.over(len(columns), 0.0, intercept=part.intercept),
        problem.n_classes,
    )
    gram = _gram(small, leaves_intercept(problem))
    return WorkingSet(features, part, gram, len(features) / design.n_features)


def _gram(problem: Problem, centred: bool) -> Gram:
    """The Gram matrix of all columns, from a sample of the rows if that is enough."""
    d, n = problem.shape[0], problem.design.n_rows
    too_full = problem.design.is_sparse and d * d > FULLEST_GRAM * problem.design.entries
    if d > LARGEST_GRAM or too_full:
        return _diagonal(problem.design, problem.weights, centred)
    sample = max(SAMPLED_ROWS, ROWS_PER_FEATURE * d)
    if sample < n and not problem.prepared.has_gram:
        return Gram.of(SampledGram.of(problem, sample, 0).matrix, centred)
    return Gram.of(problem.gram(problem.design.dtype), centred)


def _diagonal(design: Design, weights: Rows, centred: bool) -> Gram:
    means = None
    if centred:
        ones = design.map_rows(lambda w: w[:, None], weights)
        means = design.transpose_product(ones)[:, 0]
        means[-1] = 0.0
    return Gram.of_diagonal(design.column_squares(weights), means)
