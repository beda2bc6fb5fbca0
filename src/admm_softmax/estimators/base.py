"""What both estimators do alike: predict, and turn input into problems."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from admm_softmax._labels import Targets, encode_more, most_probable
from admm_softmax._weights import weight_matrix
from admm_softmax.problem import Problem, check_weights
from admm_softmax.solvers import Result, Status

FLOATS = [np.float64, np.float32]


class SoftmaxClassifier(LinearClassifierMixin, BaseEstimator):
    """Fitted, it has classes_, coef_ and intercept_, and `_alpha` and `_total_weight`."""

    reference: Any
    operator: Any
    fit_intercept: bool
    penalize_intercept: bool
    n_threads: int | None
    random_state: Any
    _alpha: float
    _total_weight: float

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, one row an example."""
        return softmax(self._scores(X), axis=1)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`, without underflow."""
        return log_softmax(self._scores(X), axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; of soft labels, the most probable class counts."""
        return float(super().score(X, most_probable(y), sample_weight=sample_weight))

    def to_sklearn(self) -> LogisticRegression:
        """A fitted LogisticRegression with the same classes and probabilities."""
        check_is_fitted(self)
        C = penalty_and_C(self._alpha, len(self.classes_), self._total_weight)
        twin = LogisticRegression(C=C, fit_intercept=self.fit_intercept)
        for name in ("coef_", "intercept_", "classes_"):
            setattr(twin, name, np.copy(getattr(self, name)))
        twin.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            twin.feature_names_in_ = self.feature_names_in_
        twin.n_iter_ = np.array([np.max(self.n_iter_)], dtype=np.int32)
        return twin

    def __sklearn_tags__(self) -> Any:
        """Sparse input is fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _problem(self, X: Any, targets: Targets, alpha: float) -> Problem:
        K = len(targets.classes)
        return Problem.of(
            X,
            targets.labels,
            alpha,
            sample_weight=targets.weights,
            n_classes=K,
            operator=self.operator,
            reference=weight_matrix(
                self.reference, X.shape[1], K, bool(self.fit_intercept), "reference"
            ),
            intercept=bool(self.fit_intercept),
            penalize_intercept=bool(self.penalize_intercept),
            n_threads=self.n_threads,
            check_finite=False,  # scikit-learn has looked
        )

    def _validation(
        self, classes: Any, X_val: Any, y_val: Any, sample_weight_val: Any
    ) -> Problem | None:
        if X_val is None and y_val is None:
            if sample_weight_val is not None:
                raise ValueError("sample_weight_val needs X_val and y_val: got None")
            return None
        if X_val is None or y_val is None:
            missing = "X_val" if X_val is None else "y_val"
            raise ValueError(f"X_val and y_val go together: {missing} is None")
        try:
            X_val = validate_data(self, X_val, accept_sparse="csr", dtype=FLOATS, reset=False)
        except ValueError as error:
            raise ValueError(f"X_val: {error}") from error
        n = X_val.shape[0]
        return Problem.of(
            X_val,
            encode_more(y_val, n, classes),
            sample_weight=check_weights(sample_weight_val, n, "sample_weight_val"),
            n_classes=len(classes),
            intercept=bool(self.fit_intercept),
            n_threads=self.n_threads,
            check_finite=False,
        )

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _scores(self, X: Any) -> Any:
        """N × K scores, also for two classes."""
        check_is_fitted(self)
        scores = self.decision_function(X)
        return np.stack([-scores / 2, scores / 2], axis=1) if scores.ndim == 1 else scores


def penalty_and_C(value: float, n_classes: int, total_weight: float) -> float:
    """From α to scikit-learn's C or back: α = 1/(S·C), or 2/(S·C) for two classes."""
    if value == 0:
        return np.inf
    return (2.0 if n_classes == 2 else 1.0) / (total_weight * value)


def warn_about_many(results: Sequence[Result], tol: float, name: str, interrupted: bool) -> None:
    """One warning for all fits that did not get where they should."""
    troubled = [result for result in results if result.status.remedy]
    if interrupted or any(result.status == Status.INTERRUPTED for result in results):
        what = f"{name} was interrupted: what was left to fit was not fitted"
    elif troubled:
        first = troubled[0].status
        what = (
            f"{name}: {len(troubled)} of {len(results)} fits did not reach tol = {tol:.2e} "
            f"({first}). {first.remedy}"
        )
    else:
        return
    warnings.warn(what, ConvergenceWarning, stacklevel=3)
