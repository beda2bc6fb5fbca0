"""Checks of the `Solver` contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.contracts.agreement import require, require_close
from admm_softmax.penalty import Penalty, Quadratic, Tikhonov, operators
from admm_softmax.problem import Problem
from admm_softmax.solvers import NewtonCG, Solver, run
from admm_softmax.solvers.base import measure, resumed
from admm_softmax.solvers.state import gathered, placed
from admm_softmax.storage.bundles import read, write


def check_solver(solver: Solver, *, tol: float = 1e-5, max_iter: int = 5000) -> None:
    """Check that a solver keeps the contract of `Solver`.

    tol, max_iter : the accuracy that it must reach on small problems, and within how many
        iterations

    >>> from admm_softmax import LBFGS
    >>> check_solver(LBFGS())
    """
    for name, problem in _problems():
        expected = run(problem, NewtonCG(100, None), tol=1e-9, max_iter=200).W
        found = run(problem, solver, tol=tol, max_iter=max_iter)
        require(
            found.status == "converged",
            f"{name}: must reach tol = {tol:g} within {max_iter} iterations, got {found.status}",
        )
        require(
            problem.objective(found.W) <= problem.objective(expected) + 10 * tol,
            f"{name}: the objective must be that of the minimum",
        )
        _check_iterates(name, problem, solver)
        _check_start(name, problem, solver, expected)
        _check_state(name, problem, solver)
    _check_rough_penalty(solver, tol, max_iter)


def _problems() -> Iterator[tuple[str, Problem]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((70, 5))
    labels = (X[:, :3] + rng.gumbel(size=(70, 3))).argmax(axis=1)
    weights = rng.random(70) * (rng.random(70) < 0.9)
    W_ref = 0.3 * rng.standard_normal((6, 3))
    yield "hard labels", Problem.of(X, labels, 0.1)
    yield (
        "soft labels, weights, operator and reference",
        Problem.of(
            X,
            rng.dirichlet(np.ones(3), 70),
            0.05,
            sample_weight=weights,
            operator=operators.gradient(5),
            reference=W_ref,
        ),
    )


def _check_iterates(name: str, problem: Problem, solver: Solver) -> None:
    """Figures belong to their W; an iterate stays as it was; the same bits come twice."""
    first = list(islice(solver.iterates(problem.for_run(), None), 4))
    require(len(first) > 0, f"{name}: a solver must yield iterates")
    kept = [iterate.W.copy() for iterate in first]
    again = list(islice(solver.iterates(problem.for_run(), None), 4))
    for iterate, copy, twin in zip(first, kept, again, strict=True):
        require(iterate.W.shape == problem.shape, f"{name}: W must have the shape {problem.shape}")
        require((copy == iterate.W).all(), f"{name}: a solver must not write to a W it has yielded")
        require((iterate.W == twin.W).all(), f"{name}: the same input must give the same bits")
        point, figures = problem.at(iterate.W), measure(problem, iterate)
        require_close(figures.objective, point.objective, f"{name}: objective of an iterate", 1e-9)
        require_close(figures.loss, point.loss, f"{name}: loss of an iterate", 1e-9)
        if np.ptp(iterate.W, axis=1).any():  # else all classes tie, and rounding decides
            require_close(figures.accuracy, point.accuracy, f"{name}: accuracy of an iterate", 1e-9)
        if not np.isnan(figures.gradient_norm):
            size = np.abs(point.optimality).max()
            require_close(figures.gradient_norm, size, f"{name}: gradient_norm of an iterate", 1e-8)


def _check_start(name: str, problem: Problem, solver: Solver, W: Array) -> None:
    """W0 itself comes first; from the solution as start, the next iterate stays near it."""
    before = W.copy()
    start, iterate = islice(solver.iterates(problem.for_run(), W), 2)
    iterate = measure(problem, iterate)
    require((before == W).all(), f"{name}: a solver must not write to W0")
    require_close(start.W, W, f"{name}: the first iterate must be W0", 1e-9)
    cold = problem.objective(np.zeros(problem.shape))
    best = problem.objective(W)
    require(
        iterate.objective <= best + 0.5 * abs(cold - best) + 1e-12,
        f"{name}: the first step from W0 must stay nearer to it than to zero",
    )


def _check_state(name: str, problem: Problem, solver: Solver) -> None:
    """From a state that has been on disk, the iterates are those that would have followed.

    A solver whose iterates carry no state starts anew at W, and there is nothing to check.
    """
    whole = list(islice(solver.iterates(problem.for_run(), None), 9))
    with TemporaryDirectory() as folder:
        for count, iterate in enumerate(whole[:-1], 1):
            if iterate.state is None:
                continue
            file = Path(folder) / f"{count}.npz"
            write(file, {"state": gathered(iterate.state, problem.design)})
            own = problem.for_run()
            state = placed((read(file) or {})["state"], own.design)
            following = islice(resumed(solver, own, iterate.W, state, begun=True), 3)
            for found, expected in zip(following, whole[count:], strict=False):
                what = f"{name}: an iterate after the state of iterate {count}"
                require_close(found.W, expected.W, what, 1e-8)


def _check_rough_penalty(solver: Solver, tol: float, max_iter: int) -> None:
    """A solver takes a penalty with kinks, or says in a ValueError that it does not."""
    _, problem = next(_problems())
    rough = problem.with_penalty(_Absolute(0.05, problem.penalty.quadratic.L))
    try:
        found = run(rough, solver, tol=tol, max_iter=max_iter)
    except ValueError as error:
        require("smooth" in str(error), "the error must say that the penalty is not smooth")
        return
    require(found.status == "converged", f"a penalty with kinks: got {found.status}")
    require(found.iterate.gradient_norm <= tol, "a penalty with kinks: optimality must be ≤ tol")


@dataclass(frozen=True)
class _Absolute(Penalty):
    """α Σ |W| over the features."""

    alpha: float
    L: Array

    is_smooth = False

    @property
    def quadratic(self) -> Quadratic:
        """Zero: the penalty has no quadratic part."""
        return Tikhonov(0.0, self.L).quadratic

    @property
    def _thresholds(self) -> Array:
        return np.asarray(self.alpha * self.L.diagonal()[:, None])

    def with_alpha(self, alpha: float) -> _Absolute:
        """The same penalty with another strength."""
        return _Absolute(alpha, self.L)

    def rough_value(self, W: Array) -> float:
        """α Σ |W|."""
        return float((self._thresholds * np.abs(W)).sum())

    def prox(self, V: Array, step: float) -> Array:
        """Shrink towards zero."""
        return np.asarray(np.sign(V) * np.maximum(np.abs(V) - step * self._thresholds, 0.0))

    def optimality(self, W: Array, loss_gradient: Array) -> Array:
        """G + t sign(W), and at W = 0 what of G is beyond ±t."""
        t = self._thresholds
        beyond = np.sign(loss_gradient) * np.maximum(np.abs(loss_gradient) - t, 0.0)
        return np.asarray(np.where(W != 0, loss_gradient + t * np.sign(W), beyond))
