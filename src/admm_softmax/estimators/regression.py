"""One fit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from admm_softmax._arrays import Array
from admm_softmax._checks import check_real
from admm_softmax._labels import Targets, encode
from admm_softmax._weights import to_coef, weight_matrix
from admm_softmax.estimators.base import FLOATS, SoftmaxClassifier, penalty_and_C
from admm_softmax.problem import Problem
from admm_softmax.solvers import Result, Solver, Status, run
from admm_softmax.solvers.loop import Callback
from admm_softmax.solvers.named import as_solver


class SoftmaxRegression(SoftmaxClassifier):
    """Multinomial logistic (softmax) regression with a Tikhonov penalty.

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
    operator : None, "identity" or matrix
        L, with one column a feature: a SciPy sparse (or dense) matrix, for example from
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
        Stop after so many iterations, at max|∇F| ≤ tol, or after so many seconds.
    keep : "best" or "last"
        With validation rows, which iterate to keep.
    monitor : "loss" or "accuracy"
        What makes an iterate best on the validation rows.
    warm_start : bool
        Start from the weights of the last fit, where its shape and classes agree.
    callbacks : callable or sequence of callables, optional
        Each is called with every `Iterate` and ends the run by returning True.
    n_threads : int, optional
        Threads; None takes every core.
    random_state : int, RandomState or None
        Seeds what is random in a solver chosen by name. None is a fixed seed: the same
        input gives the same bits.
    verbose : bool
        Show progress.

    Attributes
    ----------
    coef_, intercept_ : arrays
        K × d and K; 1 × d and 1 for two classes.
    classes_ : array
        The labels; 0 … K−1 for soft labels.
    n_iter_ : int
        Iterations run.
    history_ : History
        What happened; `history_.to_frame()`, `history_.plot()`.
    status_ : Status
        "converged", "iteration_limit", "time_limit", "stalled", "stopped",
        "interrupted" or "diverged".
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

    def __init__(
        self,
        alpha: float | None = None,
        *,
        C: float | None = None,
        operator: Any = None,
        reference: Any = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        class_weight: Any = None,
        solver: str | Solver = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        time_limit: float | None = None,
        keep: Literal["best", "last"] = "best",
        monitor: Literal["loss", "accuracy"] = "loss",
        warm_start: bool = False,
        callbacks: Callback | Sequence[Callback] | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.C = C
        self.operator = operator
        self.reference = reference
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.keep = keep
        self.monitor = monitor
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

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
        X : array, frame or sparse matrix of shape (n, d)
            float32 stays float32; sparse stays sparse.
        y : labels of shape (n,), or soft labels of shape (n, K)
            Soft labels are rows of probabilities.
        sample_weight : array of shape (n,), optional
            Weights ≥ 0. A weight of two equals the row twice.
        X_val, y_val, sample_weight_val : optional
            Validation rows, which decide the iterate to keep.
        coef_init : optional
            Weights to start from, in any of the shapes of `reference`; comes before
            `warm_start`.
        """
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None")
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
        targets = encode(y, X.shape[0], self.class_weight, sample_weight)
        S = float(targets.weights.sum())
        problem = self._problem(X, targets, self._penalty_strength(len(targets.classes), S))
        validation = self._validation(targets.classes, X_val, y_val, sample_weight_val)
        choice = as_solver(self.solver, problem, tol=self.tol, seed=self._seed())
        result = run(
            problem,
            choice.solver,
            W0=self._start(problem, coef_init, targets),
            max_iter=self.max_iter,
            tol=self.tol,
            time_limit=self.time_limit,
            validation=validation,
            keep=self.keep,
            monitor=self.monitor,
            callbacks=self.callbacks or (),
            verbose=bool(self.verbose),
        )
        result.history.reason = choice.reason
        self._store(result, X.dtype, problem, targets)
        if result.status.remedy:
            self._warn(result)
        return self

    def _penalty_strength(self, n_classes: int, total_weight: float) -> float:
        if self.alpha is not None and self.C is not None:
            raise ValueError(f"give alpha or C, not both: got alpha={self.alpha} and C={self.C}")
        if self.alpha is not None:
            return self.alpha
        C = 1.0 if self.C is None else self.C
        if np.inf == C:
            return 0.0
        return penalty_and_C(check_real("C", C, "positive", above=0.0), n_classes, total_weight)

    def _start(self, problem: Problem, coef_init: Any, targets: Targets) -> Array | None:
        if coef_init is not None:
            d, K = problem.shape
            intercept = problem.design.intercept
            return weight_matrix(coef_init, d - intercept, K, intercept, "coef_init")
        if not self.warm_start or not hasattr(self, "_W"):
            return None
        same = self._W.shape == problem.shape and np.array_equal(self.classes_, targets.classes)
        return self._W if same else None

    def _store(self, result: Result, dtype: Any, problem: Problem, targets: Targets) -> None:
        # All at once and at the end: a fit that fails leaves the last one whole.
        self._W = result.W
        self._alpha, self._total_weight = problem.penalty.alpha, problem.total_weight
        self.classes_ = targets.classes
        self.coef_, self.intercept_ = to_coef(result.W, problem.design.intercept, dtype)
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        self.status_ = result.status

    def _warn(self, result: Result) -> None:
        measured = result.history["gradient_norm"]
        last = measured[~np.isnan(measured)][-1:].sum()
        if result.status == Status.DIVERGED:
            what = f"the objective is no longer finite after {result.n_iter} iterations"
        else:
            what = (
                f"{result.status} after {result.n_iter} iterations, with max|∇F| = {last:.2e} "
                f"> tol = {self.tol:.2e}"
            )
        warnings.warn(
            f"SoftmaxRegression: {what}. {result.status.remedy}", ConvergenceWarning, stacklevel=3
        )
