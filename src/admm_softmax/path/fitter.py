"""Fits of problems on the same rows, side by side, with one Gram matrix and few factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.kernels.thresholds import MOST_JOBS
from admm_softmax.path.shared_sets import SharedClassFactors, SharedSets
from admm_softmax.problem import Problem
from admm_softmax.solvers import Result, Solver, Status, run
from admm_softmax.solvers.auto import as_solver
from admm_softmax.solvers.base import Chainable
from admm_softmax.solvers.checkpoint import open_checkpoints
from admm_softmax.solvers.class_factors import draws_rows
from admm_softmax.solvers.identity import problem_identity
from admm_softmax.solvers.least_squares import GramStrategy, SharedFactors
from admm_softmax.solvers.preconditioner import SHARED_SPACING, Gram, Preconditioner
from admm_softmax.solvers.scheduler import Scheduler
from admm_softmax.storage.identity import as_text

T = TypeVar("T")


class Fitter:
    """Fits problems on the same rows together, each under its own penalty.

    What is prepared for one serves all: the Gram matrix of (a sample of) the rows, and its
    few factorisations, which precondition every penalty and every fold (`SharedFactors`), and
    where rows are many a few sets of one factor per class (`SharedSets`).
    """

    def __init__(
        self,
        problem: Problem,
        *,
        fits: int,
        solver: str | Solver = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        seed: int = 0,
    ) -> None:
        self.scheduler = Scheduler()
        #: Where fits keep their state; nowhere, unless the caller puts a folder here.
        self.checkpoints = open_checkpoints(None, 0.0, dict)
        #: Begins the names there, where several fitters share a folder.
        self.prefix = ""
        self.tol, self.max_iter = tol, max_iter
        self.sets: SharedSets | None = None
        choice = as_solver(solver, problem, tol=tol, seed=seed, fits=fits)
        self.reason = choice.reason
        self.solver = choice.solver
        if isinstance(solver, str):  # not one that the caller has set up
            named = cast(Chainable, choice.solver)
            self.solver = named.on_factors(problem, partial(self._shared, problem, seed))

    def _shared(self, problem: Problem, seed: int, strategy: GramStrategy) -> SharedGram:
        """A preconditioner whose factorisations all fits share."""
        if draws_rows(problem):
            self.sets = SharedSets(problem, strategy, seed)
        factors = SharedFactors(problem, self.scheduler, strategy, SHARED_SPACING)
        return SharedGram(factors, self.sets)

    def fit(
        self, problems: Sequence[Problem], starts: Sequence[Array | None], name: str = "fit"
    ) -> list[Result]:
        """Fit all problems side by side, from one start per problem, sharing passes over X.

        name : of these fits in the checkpoints
        """
        if self.sets is not None:
            self.sets.look_at([problem.penalty.alpha for problem in problems], starts)
        one = partial(run, solver=self.solver, max_iter=self.max_iter)
        jobs = [
            partial(
                one,
                self.scheduler.share(problem),
                W0=start,
                tol=problem.penalty.resolution(self.tol),
                checkpoint=self.checkpoints.slot(f"{self.prefix}{name}-{i:03d}"),
            )
            for i, (problem, start) in enumerate(zip(problems, starts, strict=True))
        ]
        results = self._by_turns(jobs)
        if self.sets is not None:
            self.sets.steps += sum(result.n_iter for result in results)
        for result in results:
            result.history.reason = self.reason
        return results

    def scores(self, name: str, results: Sequence[Result], make: Callable[[], T]) -> T:
        """Scores of fits, made or taken from the checkpoints; those of unfinished fits not kept."""
        if any(result.status == Status.INTERRUPTED for result in results):
            return make()
        return self.checkpoints.kept(self.prefix + name, make)

    def identity(self, problem: Problem, alphas: Array, **settings: Any) -> dict[str, Any]:
        """What the fits of a path are computed from."""
        known = problem_identity(problem)
        del known["alpha"]
        return {
            **known,
            "alphas": as_text(alphas.tolist()),
            "solver": as_text(self.solver),
            "tol": float(self.tol),
            "max_iter": self.max_iter,
            **settings,
        }

    def evaluate(self, problems: Sequence[Problem], solutions: Sequence[Array]) -> Array:
        """Loss and accuracy of each W on its problem, one row per problem, in shared reads."""
        jobs = [
            partial(self.scheduler.share(problem).evaluate, W)
            for problem, W in zip(problems, solutions, strict=True)
        ]
        return np.array(self._by_turns(jobs))

    def _by_turns(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Run jobs side by side, at most MOST_JOBS at a time."""
        batches = [jobs[i : i + MOST_JOBS] for i in range(0, len(jobs), MOST_JOBS)]
        return [result for batch in batches for result in self.scheduler.run(batch)]


@dataclass(frozen=True)
class SharedGram:
    """Makes preconditioners on shared factorisations."""

    factors: SharedFactors
    sets: SharedSets | None = None

    def __call__(self, problem: Problem) -> Preconditioner:
        """A preconditioner for this problem."""
        gram = Gram(problem, SHARED_SPACING, self.factors.prepare(problem))
        made = None if self.sets is None else self.sets.newest()
        if made is None:
            return gram
        return SharedClassFactors(problem, gram, made, self.factors.scheduler)

    def __repr__(self) -> str:
        return "'gram', shared"
