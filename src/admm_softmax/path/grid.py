"""The paper's grid: ADMM under every pair of ρ and α."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from numbers import Real
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count, check_real
from admm_softmax._interrupts import Hold, held_interrupt
from admm_softmax._reprs import as_html
from admm_softmax._reprs import as_text as facts_as_text
from admm_softmax.kernels.compile_clock import announcing
from admm_softmax.kernels.thresholds import MOST_JOBS
from admm_softmax.plots.grid import draw_grid
from admm_softmax.problem import Problem
from admm_softmax.progress import Bar
from admm_softmax.solvers import ADMM, Result, Status, run
from admm_softmax.solvers.costs import eigenproblem_cost
from admm_softmax.solvers.identity import data_identity, problem_identity
from admm_softmax.solvers.least_squares import (
    Breakdown,
    Cholesky,
    FirstOf,
    SharedFactors,
    Spectral,
)
from admm_softmax.solvers.scheduler import Scheduler
from admm_softmax.storage.cells import Store
from admm_softmax.storage.identity import as_text

UNSOLVABLE = "unsolvable"


@dataclass(frozen=True)
class Cell:
    """One pair (ρ, α), and the iterate of ADMM that did best on the validation rows.

    status : how the run ended, or "unsolvable"; `reason` then says why
    condition : λ_max/λ_min of ρ X̃ᵀΩX̃ + α LᵀL; infinite where it is beyond rounding
    """

    rho: float
    alpha: float
    status: str
    condition: float
    reason: str = ""
    iterations: int = 0
    kept_iteration: int = 0
    objective: float = float("nan")
    val_loss: float = float("nan")
    val_accuracy: float = float("nan")
    test_loss: float = float("nan")
    test_accuracy: float = float("nan")

    def to_json(self) -> dict[str, Any]:
        """The fields, with None for NaN and infinity, which JSON cannot express."""
        return {k: None if _is_odd(v) else v for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Cell:
        """The inverse of `to_json`: only the condition number can be infinite."""
        kinds = {f.name: str if f.type == "str" else Real for f in fields(cls)}
        if stored.keys() != kinds.keys() or None in (stored["rho"], stored["alpha"]):
            raise ValueError(f"a cell has the fields {list(kinds)}, got {dict(stored)}")
        if not all(v is None or isinstance(v, kinds[k]) for k, v in stored.items()):
            raise ValueError(f"a cell has numbers and words in its fields, got {dict(stored)}")
        missing = {
            k: np.inf if k == "condition" else np.nan for k, v in stored.items() if v is None
        }
        return cls(**{**stored, **missing})


def _is_odd(value: Any) -> bool:
    return isinstance(value, float) and not np.isfinite(value)


@dataclass(frozen=True)
class Sweep:
    """The cells of a grid, by ρ and α; all of them unless the sweep was interrupted.

    >>> import numpy as np
    >>> from admm_softmax import Problem, sweep_rho_alpha
    >>> train, val = (Problem.of(np.eye(6), [0, 1, 2, 0, 1, 2]) for _ in range(2))
    >>> sweep = sweep_rho_alpha(train, [0.1, 1.0], [1e-3, 1e-2], validation=val, max_iter=3)
    >>> len(sweep.cells), sweep.table("condition").shape
    (4, (2, 2))
    """

    rhos: Array
    alphas: Array
    cells: dict[tuple[float, float], Cell]
    seconds: float

    def __repr__(self) -> str:
        return facts_as_text("Sweep", self._facts())

    def _repr_html_(self) -> str:
        """For notebooks."""
        return as_html("Sweep", self._facts())

    def _facts(self) -> dict[str, str]:
        solved = [cell for cell in self.cells.values() if cell.status != UNSOLVABLE]
        facts = {
            "rho": f"{len(self.rhos)}, from {min(self.rhos):.3g} to {max(self.rhos):.3g}",
            "alpha": f"{len(self.alphas)}, from {min(self.alphas):.3g} to {max(self.alphas):.3g}",
            "cells": f"{len(solved)} solved of {len(self.rhos) * len(self.alphas)}",
        }
        if solved:
            accuracy = f"validation {100 * self.best.val_accuracy:.2f} %"
            facts["best"] = f"rho {self.best.rho:.3g}, alpha {self.best.alpha:.3g}: {accuracy}"
        return facts

    def table(self, name: str) -> Array:
        """One field of every cell, one row per ρ and one column per α; NaN where it is missing."""
        return np.array([[self._figure(name, r, a) for a in self.alphas] for r in self.rhos])

    def _figure(self, name: str, rho: float, alpha: float) -> float:
        cell = self.cells.get((rho, alpha))
        return float("nan") if cell is None else float(getattr(cell, name))

    @property
    def best(self) -> Cell:
        """The cell with the best validation accuracy; the smaller loss decides among equals."""
        solved = [cell for cell in self.cells.values() if cell.status != UNSOLVABLE]
        if not solved:
            raise ValueError("no cell of the grid could be solved")
        return max(solved, key=lambda cell: (cell.val_accuracy, -cell.val_loss))

    def to_frame(self) -> Any:
        """The cells as a pandas DataFrame, one row per cell."""
        try:
            import pandas as pd  # noqa: PLC0415
        except ImportError as error:
            raise ImportError("sweep.to_frame() needs pandas: pip install pandas") from error
        return pd.DataFrame([asdict(cell) for cell in self.cells.values()])

    def plot(self) -> Any:
        """Heat maps of accuracies and condition numbers; returns the Matplotlib figure.

        A circle marks the best cell, grey those that could not be solved.
        """
        panels = {
            "Validation accuracy": self.table("val_accuracy"),
            "Test accuracy": self.table("test_accuracy"),
            "Condition of the W-step's matrix": np.where(
                np.isfinite(self.table("condition")), self.table("condition"), np.nan
            ),
        }
        panels = {name: values for name, values in panels.items() if np.isfinite(values).any()}
        solved = [cell for cell in self.cells.values() if cell.status != UNSOLVABLE]
        best = (self.best.rho, self.best.alpha) if solved else None
        return draw_grid(panels, self.rhos, self.alphas, best)


def sweep_rho_alpha(
    problem: Problem,
    rhos: Iterable[float] | None = None,
    alphas: Iterable[float] | None = None,
    *,
    validation: Problem,
    test: Problem | None = None,
    solver: ADMM | None = None,
    max_iter: int = 30,
    tol: float = 0.0,
    directory: str | FilePath | None = None,
    verbose: bool = False,
) -> Sweep:
    """Run ADMM under every pair of ρ and α; record accuracy and condition number.

    The matrix of the W-step depends on τ = α/ρ up to a factor: cells of one τ share a
    factorisation, or all one eigendecomposition where that is cheaper, and passes over X.

    Parameters
    ----------
    problem, validation, test : Problem
        Rows to fit, under a smooth penalty, to choose iterates by, and to report on.
    rhos, alphas : positive numbers
        The grid; 20 values each from 1e-16 to 1e3, the paper's, by default.
    solver : ADMM
        Settings other than ρ and the W-step; the paper's by default.
    max_iter, tol : as in `run`
        The iterate with the best validation accuracy is kept.
    directory, verbose : path, bool
        A folder that keeps finished cells: an interrupted sweep resumes from there, other data
        or settings are refused. Without one, Ctrl-C returns what is finished, with a warning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import Problem, sweep_rho_alpha
    >>> X, y = load_iris(return_X_y=True)
    >>> train, val = Problem.of(X[::2], y[::2]), Problem.of(X[1::2], y[1::2])
    >>> sweep = sweep_rho_alpha(train, [1e-3, 1e-1], [1e-4, 1e-2, 1.0], validation=val)
    >>> sweep.table("val_accuracy").shape
    (2, 3)
    """
    began = time.perf_counter()
    grid = np.logspace(-16, 3, 20)
    rho_values = _values("rhos", grid if rhos is None else rhos)
    alpha_values = _values("alphas", grid if alphas is None else alphas)
    check_count("max_iter", max_iter)
    work = _Work(problem, validation, test, _checked(solver, problem), max_iter, tol)
    wanted = [(float(r), float(a)) for r in rho_values for a in alpha_values]
    with (
        held_interrupt() as hold,
        Store(directory, work.identity) as store,
        announcing(verbose),
        Bar(verbose, "grid", len(wanted)) as bar,
    ):
        done = work.cells(wanted, store, bar, hold)
    if len(done) < len(wanted):
        _report_interruption(len(done), len(wanted), store)
    return Sweep(rho_values, alpha_values, done, time.perf_counter() - began)


def _checked(solver: Any, problem: Problem) -> Any:
    settings = ADMM() if solver is None else solver
    known = getattr(settings, "__dataclass_fields__", {})
    if not {"rho", "least_squares"} <= set(known):
        raise TypeError(f"solver must have rho and least_squares, as ADMM has, got {settings!r}")
    if not problem.penalty.is_smooth:
        raise ValueError(
            "sweep_rho_alpha needs a smooth penalty: under "
            f"{type(problem.penalty).__name__} the matrix of the W-step does not depend on alpha"
        )
    return settings


def _whole(stored: Iterable[Mapping[str, Any]]) -> Iterator[Cell]:
    """The cells among what is stored; a line that is not one is dropped, as if damaged."""
    for line in stored:
        with suppress(ValueError):
            yield Cell.from_json(line)


def _report_interruption(done: int, wanted: int, store: Store) -> None:
    if store.file is not None or not done:
        raise KeyboardInterrupt  # what is finished is in the file
    what = f"sweep_rho_alpha was interrupted: {done} of {wanted} cells are done, and returned"
    warnings.warn(what, RuntimeWarning, stacklevel=3)


def _values(name: str, values: Any) -> Array:
    if not isinstance(values, Iterable):
        values = [values]
    numbers = [check_real(f"{name}[{i}]", v, "positive", above=0.0) for i, v in enumerate(values)]
    if not numbers:
        raise ValueError(f"{name} must hold at least one number, got none")
    return np.unique(numbers)


def _by_ratio(pairs: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The pairs in groups of equal α/ρ."""
    groups: dict[float, list[tuple[float, float]]] = {}
    for rho, alpha in pairs:
        groups.setdefault(round(float(np.log10(alpha) - np.log10(rho)), 9), []).append((rho, alpha))
    return [groups[ratio] for ratio in sorted(groups)]


def _batches(pairs: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The pairs that run side by side: those that share a factorisation."""
    return [
        group[i : i + MOST_JOBS]
        for group in _by_ratio(pairs)
        for i in range(0, len(group), MOST_JOBS)
    ]


@dataclass
class _Work:
    """The problems, settings and factorisations that all cells share."""

    problem: Problem
    validation: Problem
    test: Problem | None
    solver: ADMM
    max_iter: int
    tol: float
    scheduler: Scheduler = field(default_factory=Scheduler)
    factors: SharedFactors | None = None
    interrupted: bool = False

    def identity(self) -> dict[str, Any]:
        """Equal only for the same data and settings; α and ρ are those of each cell."""
        known = problem_identity(self.problem.with_alpha(1.0))
        known |= data_identity(self.validation, "validation ")
        if self.test is not None:
            known |= data_identity(self.test, "test ")
        settings = {"max_iter": self.max_iter, "tol": float(self.tol)}
        return {**known, "solver": as_text(self.solver), **settings}

    def cells(
        self, wanted: Sequence[tuple[float, float]], store: Store, bar: Bar, hold: Hold
    ) -> dict[tuple[float, float], Cell]:
        """The cells of these pairs: those in the store, and others until Ctrl-C."""
        cells = {(cell.rho, cell.alpha): cell for cell in _whole(store.cells)}
        left = [pair for pair in wanted if pair not in cells]
        bar.advance("from the directory", len(wanted) - len(left))
        for batch in _batches(left):
            try:
                found = self.run(batch, len(_by_ratio(left)))
            except KeyboardInterrupt:
                break
            for cell in found:
                cells[cell.rho, cell.alpha] = cell
                store.add(cell.to_json())
            words = f"rho {batch[-1][0]:.1e}, alpha {batch[-1][1]:.1e}"
            bar.advance(words, len(batch))
            if hold.pressed or self.interrupted:
                break
        return {pair: cells[pair] for pair in wanted if pair in cells}

    def run(self, pairs: list[tuple[float, float]], n_ratios: int) -> list[Cell]:
        """Cells of one ratio, side by side."""
        if self.factors is None:
            spectral = [Spectral()] if n_ratios > eigenproblem_cost(self.problem.shape[0]) else []
            strategy = FirstOf((*spectral, Cholesky("double")))
            self.factors = SharedFactors(self.problem, self.scheduler, strategy, held=1)
        rho, alpha = pairs[0]
        try:
            condition = self._condition(alpha / rho)
        except Breakdown as reason:
            return [Cell(*pair, UNSOLVABLE, np.inf, str(reason)) for pair in pairs]
        except KeyboardInterrupt:
            self.interrupted = True
            return []
        cells = self.scheduler.run([partial(self._cell, *pair, condition) for pair in pairs])
        return [cell for cell in cells if cell is not None]

    def _cell(self, rho: float, alpha: float, condition: float) -> Cell | None:
        """Run ADMM under one pair (ρ, α); None where Ctrl-C has interrupted the run."""
        assert self.factors is not None
        problem = self.scheduler.share(self.problem.with_alpha(alpha))
        solver = replace(self.solver, rho=rho, least_squares=self.factors)
        try:
            result = run(
                problem,
                solver,
                max_iter=self.max_iter,
                tol=self.tol,
                validation=self.scheduler.share(self.validation),
                monitor="accuracy",
            )
            if result.status != Status.INTERRUPTED:
                return self._solved(rho, alpha, condition, result)
        except (np.linalg.LinAlgError, FloatingPointError) as reason:
            return Cell(rho, alpha, UNSOLVABLE, condition, str(reason))
        except KeyboardInterrupt:
            pass
        self.interrupted = True
        return None

    def _solved(self, rho: float, alpha: float, condition: float, result: Result) -> Cell:
        kept = result.kept_record
        test_loss, test_accuracy = np.nan, np.nan
        if self.test is not None:
            test_loss, test_accuracy = self.scheduler.share(self.test).evaluate(result.W)
        return Cell(
            rho=rho,
            alpha=alpha,
            status=str(result.status),
            condition=condition,
            iterations=result.n_iter,
            kept_iteration=result.kept_iteration,
            objective=result.iterate.objective,
            val_loss=kept["val_loss"],
            val_accuracy=kept["val_accuracy"],
            test_loss=test_loss,
            test_accuracy=test_accuracy,
        )

    def _condition(self, ratio: float) -> float:
        """λ_max/λ_min of G + τ LᵀL by Lanczos, the smallest through the factor's solutions."""
        assert self.factors is not None
        factor = self.factors.near(ratio)
        gram, LtL = self.problem.gram(), self.problem.penalty.quadratic.LtL
        largest = _largest(len(gram), lambda v: gram @ v + ratio * (LtL @ v))
        inverse = _largest(len(gram), lambda v: factor.step.precondition(v[:, None])[:, 0])
        return max(1.0, largest * inverse)


def _largest(size: int, product: Any) -> float:
    """The largest eigenvalue of a symmetric positive definite operator, to three digits."""
    if size < 3:
        return float(np.linalg.eigvalsh(np.array([product(e) for e in np.eye(size)]))[-1])
    operator = LinearOperator((size, size), matvec=lambda v: product(v.ravel()), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    settings = {"which": "LA", "v0": start, "tol": 1e-3, "return_eigenvectors": False}
    return float(eigsh(operator, 1, **settings)[0])
