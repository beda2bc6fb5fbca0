"""What is stored of a run, a fit, cross-validation, a path and a sweep, column by column."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from admm_softmax import Problem, run
from tests.histories.problems import PROBLEMS, arrays, normal
from tests.histories.solvers import SOLVERS

Columns = dict[str, list[float]]

#: Steps of a run.
ITERATIONS = 7
#: For four classes α = 1 would not do: τ = α/κ is then 4^2.5 at first, half-way between two
#: shared factorisations, and rounding would decide which of them is taken.
ALPHAS = [0.8, 0.08, 0.008]


def projection(W: Any) -> float:
    """One random projection of W, the same for all of its shape, to tell W from its norm."""
    return float(np.vdot(np.random.default_rng(12345).standard_normal(W.shape), W))


def history(problem_name: str, solver_name: str, iterations: int) -> Columns:
    """The first iterates of a solver."""
    problem = PROBLEMS[problem_name]()
    W0 = normal(problem.shape, seed=999) if problem_name == "warm" else None
    seen: list[Any] = []
    result = run(
        problem,
        SOLVERS[solver_name](),
        W0=W0,
        max_iter=iterations,
        tol=0.0,
        callbacks=lambda iterate: seen.append(iterate.W.copy()),
    )
    return {
        **_history_columns(result.history),
        "norm": [float(np.linalg.norm(W)) for W in seen],
        "projection": [projection(W) for W in seen],
    }


def fit(
    data: Callable[[], tuple[Any, Any, Any]], solver: str, iterations: int = ITERATIONS
) -> Columns:
    """A solver as it is set up for its name."""
    from admm_softmax import SoftmaxRegression

    X, y, s = data()
    model = SoftmaxRegression(0.01, solver=solver, max_iter=iterations, tol=0.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations do not converge, and need not
        model.fit(X, y, sample_weight=s)
    coef = np.column_stack([model.coef_, model.intercept_])
    return {
        **_history_columns(model.history_),
        "norm": [float(np.linalg.norm(coef))],
        "projection": [projection(coef)],
    }


def _history_columns(found: Any) -> Columns:
    names = ("objective", "gradient_norm", "passes")
    return {name: [float(x) for x in found[name]] for name in names}


def cross_validation(data: Callable[[], tuple[Any, Any, Any]], **settings: Any) -> Columns:
    """Every fold's coefficients and scores under every penalty, and the last fit."""
    from admm_softmax import SoftmaxRegressionCV

    X, y, s = data()
    model = SoftmaxRegressionCV(cv=3, **{"alphas": ALPHAS, "tol": 0.0, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=s)
    fits = model.coefs_paths_.reshape(-1, *model.coefs_paths_.shape[2:])
    fits = [*fits, np.column_stack([model.coef_, model.intercept_])]
    columns = {
        "score": [float(x) for x in model.scores_.ravel()],
        "norm": [float(np.linalg.norm(coef)) for coef in fits],
        "projection": [projection(coef) for coef in fits],
        "iterations": [float(x) for x in model.n_iter_.ravel()],
    }
    return columns if model.history_ is None else {**columns, **_history_columns(model.history_)}


def path(data: Callable[[], tuple[Any, Any, Any]], **settings: Any) -> Columns:
    """The histories under all penalties, one after the other, and where each of them ended."""
    from admm_softmax import softmax_path

    X, y, s = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = softmax_path(
            X,
            y,
            **{"alphas": ALPHAS, "tol": 0.0, **settings},
            sample_weight=s,
            X_val=X[:30],
            y_val=y[:30],
        )
    histories = [_history_columns(result.history) for result in found.results]
    return {
        **{name: [x for part in histories for x in part[name]] for name in histories[0]},
        "norm": [float(np.linalg.norm(result.W)) for result in found.results],
        "projection": [projection(result.W) for result in found.results],
        "iterations": [float(result.n_iter) for result in found.results],
        "score": [float(x) for x in found.val_loss],
        "reads": [float(found.reads)],
    }


def sweep(rhos: list[float], alphas: list[float]) -> Columns:
    """ADMM under pairs (ρ, α) that share factorisations, or one eigendecomposition."""
    from admm_softmax import sweep_rho_alpha

    X, labels = arrays(120, 8, 3, seed=30)
    train, val = Problem.of(X[::2], labels[::2]), Problem.of(X[1::2], labels[1::2])
    found = sweep_rho_alpha(train, rhos, alphas, validation=val, max_iter=5)
    columns = {"objective": "objective", "score": "val_loss", "iterations": "kept_iteration"}
    return {name: [float(x) for x in found.table(table).ravel()] for name, table in columns.items()}
