"""The path as a function of arrays."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import validate_data

from admm_softmax._checks import check_count
from admm_softmax._labels import encode
from admm_softmax._weights import to_coef
from admm_softmax.estimators.base import FLOATS, warn_about_many
from admm_softmax.estimators.regression import SoftmaxRegression
from admm_softmax.path.alphas import as_alphas, middle
from admm_softmax.path.follow import Fitter, follow, has_turned
from admm_softmax.path.result import Path
from admm_softmax.problem import Evaluation
from admm_softmax.solvers import Result, Solver
from admm_softmax.solvers.progress import Bar


def softmax_path(
    X: Any,
    y: Any,
    alphas: int | Sequence[float] = 20,
    *,
    sample_weight: Any = None,
    X_val: Any = None,
    y_val: Any = None,
    sample_weight_val: Any = None,
    monitor: Literal["loss", "accuracy"] = "loss",
    patience: int | None = None,
    operator: Any = None,
    reference: Any = None,
    fit_intercept: bool = True,
    penalize_intercept: bool = False,
    class_weight: Any = None,
    solver: str | Solver = "auto",
    max_iter: int = 1000,
    tol: float = 1e-4,
    n_threads: int | None = None,
    random_state: Any = None,
    verbose: bool = False,
) -> Path:
    """Fit softmax regression under many penalties, for about the price of one fit.

    Every fit is what `SoftmaxRegression` gives at that alpha, to its `tol`. They share one
    Gram matrix and few factorisations of it, and each starts where the two before it point.

    Parameters
    ----------
    X, y, sample_weight, X_val, y_val, sample_weight_val
        As in `SoftmaxRegression.fit`. Validation rows do not touch the fits.
    alphas : int or sequence of float
        Penalties: a list, or so many over a range found from the data.
    monitor : "loss" or "accuracy"
        What makes a penalty best on the validation rows.
    patience : int, optional
        End the path when so many penalties in a row have done worse than the best on the
        validation rows. None fits all.
    operator, reference, fit_intercept, penalize_intercept, class_weight, solver, max_iter, \
tol, n_threads, random_state
        As in `SoftmaxRegression`.
    verbose : bool
        Show a progress bar over the path.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import softmax_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = softmax_path(X[::2], y[::2], [1.0, 0.1, 0.01], X_val=X[1::2], y_val=y[1::2])
    >>> path.coefs.shape, path.alpha
    ((3, 3, 4), 0.01)
    """
    if monitor not in ("loss", "accuracy"):
        raise ValueError(f"monitor must be 'loss' or 'accuracy', got {monitor!r}")
    if patience is not None:
        check_count("patience", patience, "at least 1 or None")
        if X_val is None:
            raise ValueError(
                f"patience needs validation rows: got patience={patience} and no X_val"
            )
    began = time.perf_counter()
    template = SoftmaxRegression(
        operator=operator,
        reference=reference,
        fit_intercept=fit_intercept,
        penalize_intercept=penalize_intercept,
        n_threads=n_threads,
        random_state=random_state,
    )
    X = validate_data(template, X, accept_sparse="csr", dtype=FLOATS)
    targets = encode(y, X.shape[0], class_weight, sample_weight)
    problem = template._problem(X, targets, 1.0)
    validation = template._validation(targets.classes, X_val, y_val, sample_weight_val)
    penalties = as_alphas(alphas, problem)
    fitter = Fitter(
        problem.with_alpha(middle(penalties)),
        fits=len(penalties),
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        seed=template._seed(),
    )
    figures: list[Evaluation] = []
    with Bar(bool(verbose), "path", len(penalties)) as bar:

        def visit(alpha: float, results: list[Result]) -> bool:
            (result,) = results
            words = f"alpha {alpha:.2e}, objective {result.iterate.objective:.6g}"
            if validation is not None:
                figures.append(validation.evaluate(result.W))
                words += f", validation {100 * figures[-1].accuracy:.2f} %"
            bar.advance(words)
            scores = [-f.loss if monitor == "loss" else f.accuracy for f in figures]
            return has_turned(scores, patience)

        path = follow(fitter, [problem], penalties, visit)
    results = tuple(results[0] for results in path)
    warn_about_many(results, tol, "softmax_path", fitter.meeting.interrupted)
    pairs = [to_coef(result.W, problem.design.intercept, X.dtype) for result in results]
    losses, accuracies = np.array(figures).T if figures else (None, None)
    return Path(
        alphas=penalties[: len(results)],
        results=results,
        coefs=np.array([coef for coef, _ in pairs]),
        intercepts=np.array([intercept for _, intercept in pairs]),
        val_loss=losses,
        val_accuracy=accuracies,
        monitor=monitor,
        classes=targets.classes,
        seconds=time.perf_counter() - began,
        reads=problem.design.reads,
    )
