"""Fits under one penalty after another, on what the fits before left behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem
from admm_softmax.solvers import Result, Solver, Status, run
from admm_softmax.solvers.lbfgs import LBFGS
from admm_softmax.solvers.least_squares import Auto, Cholesky, SharedFactors
from admm_softmax.solvers.named import as_solver
from admm_softmax.solvers.preconditioner import Gram, compensated, data_precision
from admm_softmax.solvers.together import MOST_TOGETHER, Meeting

#: Penalties and curvatures within this factor share a factorisation: off by half of it at most.
SPACING = 4.0

T = TypeVar("T")


class Fitter:
    """Fits problems on the same rows, together, under whatever penalties.

    What is prepared for one serves all: the Gram matrix of (a sample of) the rows, and its
    few factorisations, which precondition every penalty and every fold (`SharedFactors`).
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
        self.meeting = Meeting()
        self.tol, self.max_iter = tol, max_iter
        choice = as_solver(solver, problem, tol=tol, seed=seed, fits=fits)
        self.reason = choice.reason
        self.solver = choice.solver
        if isinstance(solver, str) and isinstance(choice.solver, LBFGS):
            self.solver = self._on_shared_factors(choice.solver, problem)

    def _on_shared_factors(self, solver: LBFGS, problem: Problem) -> LBFGS:
        """The same solver, with the Gram preconditioner's factorisations shared."""
        if solver.preconditioner != "gram":
            return solver
        precision = data_precision(problem)
        if solver.subsample is not None and solver.subsample < problem.design.n_rows:
            sample = compensated(problem, solver.subsample, solver.seed)
            factors = SharedFactors(sample, self.meeting, Cholesky(precision), SPACING)
        elif isinstance(Auto().preferences(problem)[0], Cholesky):
            factors = SharedFactors(problem, self.meeting, Auto(precision=precision), SPACING)
        else:
            return solver  # nothing to share: an n × n matrix, or a sketch
        return LBFGS(solver.memory, SharedGram(factors))

    def fit(self, problems: Sequence[Problem], starts: Sequence[Array | None]) -> list[Result]:
        """Run all of them side by side; their passes over X are shared."""
        one = partial(run, solver=self.solver, tol=self.tol, max_iter=self.max_iter)
        jobs = [
            partial(one, self.meeting.share(problem), W0=start)
            for problem, start in zip(problems, starts, strict=True)
        ]
        results = self._by_turns(jobs)
        for result in results:
            result.history.reason = self.reason
        return results

    def evaluate(self, problems: Sequence[Problem], weights: Sequence[Array]) -> Array:
        """Loss and accuracy of each W on its problem, a row each, in shared reads."""
        jobs = [
            partial(self.meeting.share(problem).evaluate, W)
            for problem, W in zip(problems, weights, strict=True)
        ]
        return np.array(self._by_turns(jobs))

    def _by_turns(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Side by side, but not hundreds at a time."""
        batches = [jobs[i : i + MOST_TOGETHER] for i in range(0, len(jobs), MOST_TOGETHER)]
        return [result for batch in batches for result in self.meeting.run(batch)]


@dataclass(frozen=True)
class SharedGram:
    """Makes preconditioners on shared factorisations."""

    factors: SharedFactors

    def __call__(self, problem: Problem) -> Gram:
        """One for this problem."""
        return Gram(problem, SPACING, self.factors.prepare(problem))

    def __repr__(self) -> str:
        return "'gram', shared"


@dataclass
class Trail:
    """Where a path has come by: its last two solutions, with the logarithms of their α."""

    log_alphas: tuple[float, ...] = ()
    weights: tuple[Array, ...] = ()

    def ahead(self, alpha: float) -> Array | None:
        """Where to expect the solution at α: on a straight line in log α, no further than
        the last two are apart.

        W(α) is smooth, so that the line misses it by the square of the distance; the last
        solution itself would miss it by the distance.
        """
        if len(self.weights) < 2:
            return self.weights[-1] if self.weights else None
        (before, last), (W_before, W_last) = self.log_alphas, self.weights
        share = min((np.log(alpha) - last) / (last - before), 1.0)
        return np.asarray(W_last + share * (W_last - W_before))

    def add(self, alpha: float, W: Array) -> None:
        """Go on to the solution at α."""
        self.log_alphas = (*self.log_alphas[-1:], float(np.log(alpha)))
        self.weights = (*self.weights[-1:], W)


def follow(
    fitter: Fitter,
    problems: Sequence[Problem],
    alphas: Array,
    visit: Callable[[float, list[Result]], bool],
) -> list[list[Result]]:
    """Fit all problems under falling penalties; one list of results an α.

    Each fit starts where the two before it point. `visit` sees the results of every α, and
    ends the path by returning True. So does Ctrl-C, after the results it has left.
    """
    trails = [Trail() for _ in problems]
    path: list[list[Result]] = []
    for alpha in alphas:
        here = [problem.with_alpha(alpha) for problem in problems]
        results = fitter.fit(here, [trail.ahead(alpha) for trail in trails])
        path.append(results)
        for trail, result in zip(trails, results, strict=True):
            trail.add(alpha, result.W)
        interrupted = any(result.status == Status.INTERRUPTED for result in results)
        if visit(alpha, results) or interrupted or fitter.meeting.interrupted:
            break
    return path


def has_turned(scores: Sequence[float], patience: int | None) -> bool:
    """Whether the last `patience` scores are all worse than the best before them.

    >>> has_turned([0.1, 0.3, 0.2, 0.25], patience=2)
    True
    >>> has_turned([0.1, 0.3, 0.2, 0.3], patience=2)
    False
    """
    if patience is None or len(scores) <= patience:
        return False
    return max(scores[-patience:]) < max(scores[:-patience])
