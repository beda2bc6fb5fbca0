"""The paper's protocol: equal time per method, the iterate with the best validation accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from admm_softmax.estimators import SoftmaxRegressionCV
from admm_softmax.experiments.data import Data
from admm_softmax.experiments.paper import METHODS, MNIST
from admm_softmax.problem import Problem
from admm_softmax.solvers import History, Solver, Status, run

#: Columns of the history that are kept.
COLUMNS = ("seconds", "loss", "accuracy", "val_loss", "val_accuracy")


@dataclass(frozen=True)
class Outcome:
    """One method's run on one seed, as it goes into results.json.

    The clock is the solver's own: set-up counts, monitoring does not. `setup_seconds` are those
    until the end of the first iteration; `seconds_per_iteration` is the median over the others,
    None if there are none. `history` has `COLUMNS`, the start first, then one entry per iteration;
    `inner_residuals` are CG's, likewise.
    """

    method: str
    seed: int
    solver: str
    status: str
    iterations: int
    kept_iteration: int
    seconds: float
    setup_seconds: float
    seconds_per_iteration: float | None
    train_loss: float
    train_accuracy: float
    val_loss: float
    val_accuracy: float
    test_loss: float
    test_accuracy: float
    history: dict[str, list[float]]
    inner_residuals: list[list[float]]

    @property
    def cg_residuals(self) -> list[list[float]]:
        """CG's relative residuals, one list per iteration that ran CG."""
        return [residuals for residuals in self.inner_residuals if residuals]


def by_method(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Outcomes of each method, in the paper's order."""
    return {name: [o for o in outcomes if o.method == name] for name in METHODS}


@dataclass(frozen=True, eq=False)
class Problems:
    """A data set as three problems: training, validation and test rows."""

    train: Problem
    validation: Problem
    test: Problem

    @classmethod
    def of(cls, data: Data, alpha: float) -> Problems:
        """The problems of a data set, with the paper's penalty, which covers the intercept."""
        train = Problem.of(
            data.train.X,
            data.train.y,
            alpha,
            n_classes=10,
            operator=data.operator,
            penalize_intercept=True,
        )
        parts = (Problem.of(part.X, part.y, n_classes=10) for part in data.others)
        return cls(train, *parts)


def compete(
    problems: Problems, method: str, solver: Solver, *, budget: float, seed: int, verbose: bool
) -> Outcome:
    """Run a method for `budget` seconds, and evaluate the kept iterate on the test rows."""
    warm_up()
    result = run(
        problems.train.fresh(),  # each method pays for its own Gram matrix
        solver,
        max_iter=1_000_000,
        tol=0.0,
        time_limit=budget,
        validation=problems.validation,
        monitor="accuracy",
        verbose=verbose,
    )
    if result.status == Status.INTERRUPTED:
        raise KeyboardInterrupt  # an interrupted run is not a result
    kept = result.kept_record
    seconds = result.history["seconds"]
    test = problems.test.evaluate(result.W)
    return Outcome(
        method=method,
        seed=seed,
        solver=result.history.solver,
        status=str(result.status),
        iterations=result.n_iter,
        kept_iteration=result.kept_iteration,
        seconds=float(seconds[-1]),
        setup_seconds=float(seconds[:2][-1]),
        seconds_per_iteration=float(np.median(np.diff(seconds[1:]))) if len(seconds) > 2 else None,
        train_loss=kept["loss"],
        train_accuracy=kept["accuracy"],
        val_loss=kept["val_loss"],
        val_accuracy=kept["val_accuracy"],
        test_loss=test.loss,
        test_accuracy=test.accuracy,
        history=_columns(result.history),
        inner_residuals=[list(residuals) for residuals in result.history.inner_residuals],
    )


@cache
def warm_up() -> None:
    """Load the compiled code, or compile it, before any clock runs."""
    X = np.random.default_rng(0).standard_normal((8000, 512), np.float32)
    y = np.arange(len(X)) % 10
    problem = Problem.of(X, y, 1e-3, n_classes=10, penalize_intercept=True)
    for solver in MNIST.solvers(0).values():
        result = run(problem, solver, max_iter=2, tol=0.0, validation=problem)
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
    model = SoftmaxRegressionCV(alphas=[1e-2, 1e-3], max_iter=2, tol=1.0)
    model.fit(X, y, X_val=X, y_val=y)


def _columns(history: History) -> dict[str, list[float]]:
    """The columns, without the last record of a run that diverged."""
    finite = np.isfinite(history["loss"])
    return {name: [round(float(x), 7) for x in history[name][finite]] for name in COLUMNS}
