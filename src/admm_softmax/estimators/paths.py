"""`softmax_path`: fits under many penalties, without choosing among them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_choice, check_count
from admm_softmax._interrupts import held_interrupt
from admm_softmax._parallel import use_threads
from admm_softmax.estimators.base import SoftmaxClassifier, warn_about_many
from admm_softmax.estimators.coefficients import to_coef
from admm_softmax.estimators.regression import SoftmaxRegression
from admm_softmax.estimators.validation_distance import distance
from admm_softmax.kernels.compile_clock import announcing
from admm_softmax.path.alphas import as_alphas, middle
from admm_softmax.path.fitter import Fitter
from admm_softmax.path.largest_alpha import null_model
from admm_softmax.path.result import Path
from admm_softmax.path.warm_starts import follow, has_turned
from admm_softmax.problem import Evaluation, Problem
from admm_softmax.progress import Bar
from admm_softmax.solvers import Result
from admm_softmax.solvers.checkpoint import open_checkpoints
from admm_softmax.solvers.duality import Anchor
from admm_softmax.solvers.identity import data_identity

#: A path is flat where so many penalties have raised the deviance explained by less than this.
FLAT, FLATNESS = 10, 1e-4


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
    explains: float = 0.999,
    **settings: Any,
) -> Path:
    """Fit softmax regression under many penalties, for about the price of one fit.

    Every fit is what `SoftmaxRegression` gives at that alpha, to its `tol`. They share one
    Gram matrix and few factorisations of it, and each starts at an extrapolation of the two
    before it.

    Parameters
    ----------
    X, y, sample_weight, X_val, y_val, sample_weight_val
        As in `SoftmaxRegression.fit`. Validation rows do not touch the fits.
    alphas : int or sequence of float
        Penalties: a list, or how many to try over a range found from the data.
    monitor : "loss" or "accuracy"
        What makes a penalty best on the validation rows.
    patience : int, optional
        End the path when this many penalties in a row have done worse than the best on the
        validation rows. None fits all.
    explains : float
        Under a penalty with kinks and a number for `alphas`: end the path where so much of the
        deviance is explained, or where ten penalties have explained no more.
    **settings
        Settings of `SoftmaxRegression` for every fit: l1_ratio, penalty, standardize, operator,
        reference, fit_intercept, penalize_intercept, class_weight, solver, max_iter, tol,
        n_threads, random_state; verbose, to show a progress bar over the path; and checkpoint
        and checkpoint_every: fits that have ended are not run again, and the one in progress
        goes on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import softmax_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = softmax_path(X[::2], y[::2], [1.0, 0.1, 0.01], X_val=X[1::2], y_val=y[1::2])
    >>> path.coefs.shape, path.alpha
    ((3, 3, 4), 0.01)
    """
    _check_selection(monitor, patience, X_val)
    unknown = [name for name in settings if name not in _SETTINGS]
    if unknown:
        raise TypeError(f"softmax_path takes the settings {_SETTINGS}, got {unknown[0]!r}")
    template = SoftmaxRegression(**settings)
    data = (X, y, sample_weight), (X_val, y_val, sample_weight_val)
    with held_interrupt() as hold, use_threads(template.n_threads):
        path, interrupted = _path(template, alphas, *data, monitor, patience, explains)
    warn_about_many(path.results, template, "softmax_path", interrupted or hold.pressed)
    return path


#: Settings of `SoftmaxRegression` that a path has, too.
_SETTINGS = sorted(field.name for field in fields(SoftmaxClassifier))


def _check_selection(monitor: str, patience: int | None, X_val: Any) -> None:
    check_choice("monitor", monitor, ("loss", "accuracy"))
    if patience is not None:
        check_count("patience", patience, "at least 1 or None")
        if X_val is None:
            raise ValueError(
                f"patience needs validation rows: got patience={patience} and no X_val"
            )


def _path(
    template: SoftmaxRegression,
    alphas: int | Sequence[float],
    rows: tuple[Any, ...],
    validation_rows: tuple[Any, ...],
    monitor: Literal["loss", "accuracy"],
    patience: int | None,
    explains: float,
) -> tuple[Path, bool]:
    """The path, and whether Ctrl-C has ended it."""
    began = time.perf_counter()
    X, targets = template._checked(*rows)
    ratio = template._l1_ratio(template.l1_ratio, len(targets.classes), sklearn_units=False)
    problem = template._problem(X, targets, 1.0, ratio).for_run()  # counts its own reads
    validation = template._validation(problem, targets.classes, *validation_rows)
    penalties = np.unique(as_alphas(alphas, problem))[::-1]
    fitter = Fitter(
        problem.with_alpha(middle(penalties)),
        fits=len(penalties),
        solver=template.solver,
        tol=template.tol,
        max_iter=template.max_iter,
        seed=template._seed(),
    )
    visitor = _Visitor(fitter, validation, monitor, patience)
    if not problem.penalty.is_smooth:
        visitor.null = _null_deviance(problem)
        visitor.explains = explains if np.ndim(alphas) == 0 else np.inf
    with (
        open_checkpoints(
            template.checkpoint,
            template.checkpoint_every,
            lambda: _identity(fitter, problem, penalties, validation),
        ) as fitter.checkpoints,
        announcing(template.verbose),
        Bar(bool(template.verbose), "path", len(penalties)) as visitor.bar,
    ):
        path = follow(fitter, [problem], penalties, visitor)
    results = tuple(results[0] for results in path)
    figures = visitor.figures[: len(results)]
    results = tuple(replace(r, W=problem.design.in_units_of_X(r.W)) for r in results)
    pairs = [to_coef(result.W, problem.design.intercept, X.dtype) for result in results]
    losses, accuracies = np.array(figures).T if figures else (None, None)
    found = Path(
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
        explained=np.array(visitor.explained[: len(results)]) if visitor.null else None,
        feature_names=getattr(template, "feature_names_in_", None),
    )
    for words in [] if validation is None else distance(problem, validation):
        warnings.warn(f"softmax_path: {words}", UserWarning, stacklevel=3)
    return found, fitter.scheduler.interrupted


def _identity(
    fitter: Fitter, problem: Problem, penalties: Array, validation: Problem | None
) -> dict[str, Any]:
    more = {} if validation is None else data_identity(validation, "validation ")
    return fitter.identity(problem, penalties, **more)


class _Visitor:
    """Evaluates every fit on the validation rows, and decides when the path ends."""

    bar: Bar

    def __init__(
        self,
        fitter: Fitter,
        validation: Problem | None,
        monitor: Literal["loss", "accuracy"],
        patience: int | None,
    ) -> None:
        self.fitter, self.validation = fitter, validation
        self.monitor, self.patience = monitor, patience
        self.figures: list[Evaluation] = []
        #: The loss without features, less the least possible; None where nobody asks.
        self.null: tuple[float, float] | None = None
        self.explains = np.inf
        self.explained: list[float] = []

    def __call__(self, alpha: float, results: list[Result]) -> bool:
        (result,) = results
        words = f"alpha {alpha:.2e}, objective {result.iterate.objective:.6g}"
        if self.validation is not None:
            name = f"scores-{len(self.figures):03d}"
            found = self.fitter.scores(name, results, partial(self.validation.evaluate, result.W))
            self.figures.append(Evaluation(*found))
            words += f", validation {100 * self.figures[-1].accuracy:.2f} %"
        self.bar.advance(words)
        scores = [-f.loss if self.monitor == "loss" else f.accuracy for f in self.figures]
        if self.null is not None:
            top, bottom = self.null
            self.explained.append((top - result.iterate.loss) / max(top - bottom, 1e-300))
            if self._explains_enough():
                return True
        return has_turned(scores, self.patience)

    def _explains_enough(self) -> bool:
        """Nearly all deviance is explained, or the last penalties have explained no more."""
        found = self.explained
        if found[-1] >= self.explains:
            return True
        still = len(found) > FLAT and found[-1] - found[-1 - FLAT] < FLATNESS * found[-1]
        return bool(still and np.isfinite(self.explains))


def _null_deviance(problem: Problem) -> tuple[float, float]:
    """The loss of what is free alone, and the entropy of the labels, which no model is below."""
    return problem.evaluate(null_model(problem)).loss, -Anchor.of(problem).entropy
