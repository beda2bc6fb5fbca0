"""`SoftmaxRegression`: one fit under one penalty."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from admm_softmax._arrays import Array
from admm_softmax._checks import check_real
from admm_softmax._interrupts import held_interrupt
from admm_softmax._parallel import use_threads
from admm_softmax.estimators.base import SoftmaxClassifier, alpha_of_C
from admm_softmax.estimators.coefficients import as_W, to_coef
from admm_softmax.estimators.labels import Targets
from admm_softmax.estimators.remedies import remedy
from admm_softmax.estimators.sklearn_callbacks import (
    CallbackSupportMixin,
    start_callbacks,
    with_callbacks,
)
from admm_softmax.estimators.validation_distance import distance
from admm_softmax.problem import Problem
from admm_softmax.solvers import Result, Status, run
from admm_softmax.solvers.auto import as_solver
from admm_softmax.solvers.loop import Callback

#: What to say, and in which kind of warning.
Trouble: TypeAlias = tuple[str, type[Warning]]


@dataclass(eq=False, repr=False, kw_only=True)
class SoftmaxRegression(CallbackSupportMixin, SoftmaxClassifier):
    """Multinomial logistic (softmax) regression with a penalty, Tikhonov's by default.

    Minimises, with S = Σ sᵢ the sum of the sample weights, ::

        F(W) = (1/S) Σᵢ sᵢ [ logsumexp(xᵢW) − cᵢ·xᵢW ] + (α/2) ‖L (W − W_ref)‖²_F

    A drop-in for scikit-learn's LogisticRegression: `C` means the same, and the default
    is C = 1. The penalty is α = 1/(S·C), or 2/(S·C) for two classes, where scikit-learn
    penalises one vector and this class the two halves ±w/2 of it.

    Parameters
    ----------
    alpha : float, optional
        Strength α ≥ 0 of the penalty; does not depend on the number of rows.
    C : float, optional
        The same in scikit-learn's units. Give alpha or C, not both.
    l1_ratio : float
        r from 0 to 1: the penalty is α [ r ‖W‖₁ + ((1 − r)/2) ‖L (W − W_ref)‖² ], an elastic
        net; 1 is the lasso. Beside `C` it means what it means in scikit-learn.
    penalty : None or a penalty object
        Another penalty: one of `admm_softmax.penalties`, or your own
        (`admm_softmax.penalty.Penalty`); `alpha` is its strength.
    standardize : bool
        Penalise in units of the columns' standard deviations. X is neither copied nor centred,
        and `coef_` is in the units of X.
    operator : None, "identity" or matrix
        L, with one column per feature: a SciPy sparse (or dense) matrix, for example from
        `admm_softmax.operators`.
    reference : array or (coef, intercept), optional
        W_ref: shaped as `coef_` (K × d; 1 × d for two classes), as that with
        `intercept_`, or as W: d × K, or (d + 1) × K with the intercepts last. A square
        matrix (d = K) is taken as `coef_`.
    fit_intercept : bool
        Whether to fit an intercept.
    penalize_intercept : bool
        Whether the penalty covers the intercept. If so, `operator` may have one column
        more, for the intercept.
    class_weight : dict, "balanced" or None
        As in scikit-learn.
    solver : str or solver object
        "auto", "admm", "lbfgs", "newton-cg", "sgd", or for example
        `ADMM(rho=4e-3, relaxation=1.7)`, which runs as configured. `history_.solver` says
        what ran, `history_.reason` why.
    max_iter, tol, time_limit
        Stop after max_iter iterations, at max|∇F| ≤ tol, or after time_limit seconds.
    keep : "best" or "last"
        With validation rows, which iterate to keep.
    monitor : "loss" or "accuracy"
        What makes an iterate best on the validation rows.
    warm_start : bool
        Start from the coefficients of the last fit, where its shape and classes agree.
    callbacks : callable or sequence of callables, optional
        Each is called with every `Iterate`, the start first, and ends the run by returning True.
        scikit-learn's own callbacks (1.9 and later) are set by `set_callbacks`; each step is a
        task of theirs.
    n_threads : int, optional
        Threads; None takes every core.
    random_state : int, RandomState or None
        Seeds what is random in a solver chosen by name. None is a fixed seed: the same
        input gives the same bits.
    verbose : bool
        Show progress.
    checkpoint : path, optional
        A folder to keep the state of the fit in, so that the same call goes on where a process
        ended that was killed, and returns at once after a fit that has ended. Each fit needs a
        folder of its own; one of other data or settings is refused.
    checkpoint_every : float
        Seconds between two writes at least.
    dual, intercept_scaling, n_jobs
        For code written for LogisticRegression: only False, 1, and any number of jobs, which
        change nothing.

    Attributes
    ----------
    coef_, intercept_ : arrays
        K × d and K; 1 × d and 1 for two classes.
    classes_ : array
        The labels; 0 … K−1 for soft labels.
    n_iter_ : array of shape (1,)
        Steps taken.
    best_iteration_ : int
        The step whose coefficients are kept: the last, or the best on the validation rows.
    history_ : History
        The start, then one record per iteration; see `history_.to_frame()`, `history_.plot()`.
    status_ : Status
        "converged", "iteration_limit", "time_limit", "stalled", "stopped",
        "interrupted" or "diverged".
    n_nonzero_ : int
        How many entries of `coef_` are not zero.
    selected_features_ : array
        The names of the features with a coefficient that is not zero.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import SoftmaxRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SoftmaxRegression(alpha=1e-2).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> clf.status_.value
    'converged'
    """

    alpha: float | None = field(default=None, kw_only=False)
    C: float | None = None
    time_limit: float | None = None
    keep: Literal["best", "last"] = "best"
    monitor: Literal["loss", "accuracy"] = "loss"
    warm_start: bool = False
    callbacks: Callback | Sequence[Callback] | None = None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        coef_init: Any = None,
    ) -> SoftmaxRegression:
        """Fit to rows X with labels y.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n, d), files, Dask data, or Design
            float32 stays float32; sparse stays sparse. Files are paths, patterns such as
            "x-*.npy", lists of them, data sets, or a `RowBlocks`, and may be larger than memory.
            Dask data are a Dask array or frame, or a list of delayed objects or futures; y and
            weights may then be, too. A torch tensor on another device is fitted there
            (docs/probes.md).
        y : labels of shape (n,), or soft labels of shape (n, K)
            Soft labels are rows of probabilities. With X in files, y may be a path, a list of
            paths, or the name of a column of Parquet files.
        sample_weight : array of shape (n,), optional
            Weights ≥ 0. A row of weight two counts like two rows.
        X_val, y_val, sample_weight_val : optional
            Validation rows, which decide the iterate to keep.
        coef_init : optional
            Coefficients to start from, in any of the shapes of `reference`; overrides
            `warm_start`.
        """
        with held_interrupt() as hold, use_threads(self.n_threads):
            validation = (X_val, y_val, sample_weight_val)
            troubles = self._fit(X, y, sample_weight, validation, coef_init)
        for what, kind in troubles:
            warnings.warn(f"SoftmaxRegression: {what}", kind, stacklevel=2)
        hold.release()
        return self

    @with_callbacks
    def _fit(
        self, X: Any, y: Any, sample_weight: Any, validation_rows: tuple[Any, ...], coef_init: Any
    ) -> list[Trouble]:
        """Fit, and return what the user should know about it."""
        X, targets = self._checked(X, y, sample_weight)
        K = len(targets.classes)
        ratio = self._l1_ratio(self.l1_ratio, K, sklearn_units=self.alpha is None)
        alpha = self._penalty_strength(K, targets.total_weight, ratio)
        problem = self._problem(X, targets, alpha, ratio)
        tol = problem.penalty.resolution(self.tol)
        validation = self._validation(problem, targets.classes, *validation_rows)
        choice = as_solver(self.solver, problem, tol=self.tol, seed=self._seed())
        steps = start_callbacks(self, X, y, sample_weight, targets.classes, problem.design)
        callbacks = _as_list(self.callbacks)
        result = run(
            problem,
            choice.solver,
            W0=self._start(problem, coef_init, targets),
            max_iter=self.max_iter,
            tol=tol,
            time_limit=self.time_limit,
            validation=validation,
            keep=self.keep,
            monitor=self.monitor,
            callbacks=callbacks if steps is None else [*callbacks, steps],
            verbose=bool(self.verbose),
            checkpoint=self.checkpoint,
            checkpoint_every=self.checkpoint_every,
        )
        result.history.reason = choice.reason
        self._ratio = ratio
        self._store(result, X.dtype, problem, targets)
        if steps is not None:
            steps.finish()
        far = [] if validation is None else distance(problem, validation)
        return [*self._troubles(result, tol), *((words, UserWarning) for words in far)]

    def _penalty_strength(self, n_classes: int, total_weight: float, ratio: float = 0.0) -> float:
        if self.alpha is not None and self.C is not None:
            raise ValueError(f"give alpha or C, not both: got alpha={self.alpha} and C={self.C}")
        if self.alpha is not None:
            return self.alpha
        C: Any = 1.0 if self.C is None else self.C
        if isinstance(C, Real) and np.inf == C:
            return 0.0
        C = check_real("C", C, "positive", above=0.0)
        return alpha_of_C(C, n_classes, total_weight, ratio)

    def _start(self, problem: Problem, coef_init: Any, targets: Targets) -> Array | None:
        if coef_init is not None:
            d, K = problem.shape
            intercept = problem.design.intercept
            W0 = as_W(coef_init, d - intercept, K, intercept, "coef_init")
            return None if W0 is None else problem.design.in_units_of_view(W0)
        if not self.warm_start or not hasattr(self, "_W"):
            return None
        same = self._W.shape == problem.shape and np.array_equal(self.classes_, targets.classes)
        return problem.design.in_units_of_view(self._W) if same else None

    def _store(self, result: Result, dtype: Any, problem: Problem, targets: Targets) -> None:
        # All at once and at the end: a fit that fails leaves the last one whole.
        self._W = problem.design.in_units_of_X(result.W)
        self._alpha, self._total_weight = problem.penalty.alpha, problem.total_weight
        self.classes_ = targets.classes
        self.coef_, self.intercept_ = to_coef(self._W, problem.design.intercept, dtype)
        self.n_iter_ = np.array([result.n_iter], dtype=np.int32)
        self.best_iteration_ = result.kept_iteration
        self.history_ = result.history
        self.status_ = result.status

    def _troubles(self, result: Result, tol: float) -> list[Trouble]:
        at_start = result.kept_iteration == 0
        if at_start and result.n_iter > 0 and "val_loss" in result.kept_record:
            what = (
                f"none of {result.n_iter} steps did better on the validation rows than the "
                "start, which is kept. Is X_val scaled as X is?"
            )
        elif result.status.remedy:
            kept = " The model is the start itself." if at_start else ""
            what = f"{self._shortfall(result, tol)}. {remedy(result, self.solver)}{kept}"
        else:
            return []
        return [(what, ConvergenceWarning)]

    def _shortfall(self, result: Result, tol: float) -> str:
        measured = result.history["gradient_norm"]
        last = measured[~np.isnan(measured)][-1:].sum()
        if result.status == Status.DIVERGED:
            return f"the objective is no longer finite after {result.n_iter} iterations"
        return (
            f"{result.status} after {result.n_iter} iterations, with max|∇F| = {last:.2e} "
            f"> tol = {tol:.2e}"
        )


def _as_list(callbacks: Any) -> list[Callback]:
    """One callback, several or none."""
    several = [callbacks] if callable(callbacks) else callbacks
    if several is None:
        return []
    if not isinstance(several, list | tuple) or not all(map(callable, several)):
        raise TypeError(f"callbacks must be a function, a list of them or None, got {callbacks!r}")
    return list(several)
