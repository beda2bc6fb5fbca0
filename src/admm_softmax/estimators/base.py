"""What the estimators share: settings, checks of input, problems from it, and prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import check_is_fitted, validate_data

from admm_softmax._validation import check_weights, refuse_masked
from admm_softmax.design import Design, as_design, is_dask, standardized
from admm_softmax.estimators import dask_predictions, device_predictions
from admm_softmax.estimators.coefficients import as_W, dense, from_coef
from admm_softmax.estimators.device_predictions import most_probable_class
from admm_softmax.estimators.distributed_labels import (
    encode_more_placed,
    encode_placed,
    placed_weights,
)
from admm_softmax.estimators.exports import Exports
from admm_softmax.estimators.inputs import opened
from admm_softmax.estimators.labels import Targets, encode, encode_more, most_probable
from admm_softmax.estimators.linear_classifier import LinearClassifier
from admm_softmax.estimators.remedies import remedy
from admm_softmax.estimators.sklearn_callbacks import warn_caller
from admm_softmax.estimators.sklearn_parameters import check_settings, penalty_object
from admm_softmax.kernels.softmax import log_softmax, softmax
from admm_softmax.penalty import ElasticNet
from admm_softmax.penalty.rough import check_share
from admm_softmax.problem import Problem
from admm_softmax.solvers import Result, Solver, Status
from admm_softmax.solvers.checkpoint import EVERY

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

FLOATS = [np.float64, np.float32]


@dataclass(eq=False, repr=False, kw_only=True)
class SoftmaxClassifier(Exports, LinearClassifier, BaseEstimator):
    """The settings that all estimators have.

    A data class only for its constructor, which stores each setting as it is, as
    scikit-learn asks. Fitted, it has classes_, coef_ and intercept_, and `_alpha`,
    `_ratio` (the share of ‖W‖₁) and `_total_weight`.
    """

    l1_ratio: float | None = 0.0
    penalty: Any = None
    standardize: bool = False
    operator: Any = None
    reference: Any = None
    fit_intercept: bool = True
    penalize_intercept: bool = False
    class_weight: Any = None
    solver: str | Solver = "auto"
    max_iter: int = 1000
    tol: float = 1e-4
    n_threads: int | None = None
    random_state: Any = None
    verbose: bool = False
    checkpoint: str | Path | None = None
    checkpoint_every: float = EVERY
    dual: bool = False
    intercept_scaling: float = 1
    n_jobs: int | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings; with `deep` those of a solver object too, as solver__rho and so on."""
        params: dict[str, Any] = super().get_params(deep=deep)
        return {**params, **_settings_of(self.solver)} if deep else params

    def set_params(self, **params: Any) -> Any:
        """Change settings; solver__rho=… and the like replace the solver by a changed copy."""
        super().set_params(**{k: v for k, v in params.items() if not k.startswith(_SOLVER)})
        inner = {k.removeprefix(_SOLVER): v for k, v in params.items() if k.startswith(_SOLVER)}
        known = [name.removeprefix(_SOLVER) for name in _settings_of(self.solver)]
        for name in inner:
            if name not in known:
                raise ValueError(f"solver={self.solver!r} has no setting {name!r}; it has {known}")
        if inner:
            self.solver = replace(cast(Any, self.solver), **inner)
        return self

    def decision_function(self, X: Any) -> Any:
        """Scores of the classes, one row per example; one number per example for two classes."""
        if is_dask(X):
            return dask_predictions.predicted(self, "decision_function", X)
        return self._of_scores(X, lambda scores: scores)

    def predict(self, X: Any) -> Any:
        """The most probable class of every row. Dask input gives a Dask result, here and below."""
        if is_dask(X):
            return dask_predictions.predicted(self, "predict", X)
        check_is_fitted(self)
        X, _ = self._opened(X)
        if not isinstance(X, Design):
            return super().predict(X)
        if X.rows_stay:
            return device_predictions.predicted(self.classes_, X, partial(self._of_scores, X))
        return self.classes_[self._of_scores(X, most_probable_class)]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, one row per example."""
        if is_dask(X):
            return dask_predictions.predicted(self, "predict_proba", X)
        return self._of_scores(X, lambda scores: softmax(_of_all_classes(scores))[0])

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`, without underflow."""
        if is_dask(X):
            return dask_predictions.predicted(self, "predict_log_proba", X)
        return self._of_scores(X, lambda scores: log_softmax(_of_all_classes(scores)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Accuracy; of soft labels, the most probable class counts."""
        check_is_fitted(self)
        if is_dask(X):
            return dask_predictions.scored(self, "accuracy", X, y, sample_weight)
        X, y = self._opened(X, y)
        if isinstance(X, Design) and X.rows_stay:
            return device_predictions.scored(self, "accuracy", X, y, sample_weight)
        return float(super().score(X, most_probable(y), sample_weight=sample_weight))

    def to_sklearn(self) -> LogisticRegression:
        """A fitted LogisticRegression with the same classes and probabilities."""
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  (slow to load)

        check_is_fitted(self)
        K, ratio = len(self.classes_), self._ratio
        C = penalty_and_C(self._alpha, K, self._total_weight, ratio)
        settings = {"l1_ratio": _sklearn_ratio(ratio, K), "solver": "saga"} if ratio else {}
        if ratio and parse_version(sklearn.__version__) < parse_version("1.8"):
            settings["penalty"] = "elasticnet"  # without it, l1_ratio says nothing there
        twin = LogisticRegression(C=C, fit_intercept=self.fit_intercept, **settings)
        for name in ("coef_", "intercept_", "classes_"):
            setattr(twin, name, getattr(self, name).copy())
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

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets]:
        """Checked training rows and encoded labels."""
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None")
        check_settings(self)
        X, y = self._opened(X, y, reset=True)
        X = self._checked_rows(X)
        return X, targets_of(X, y, self.class_weight, sample_weight)

    def _opened(self, X: Any, y: Any = None, reset: bool = False) -> tuple[Any, Any]:
        """Rows and labels in files as a Design and an array; of the columns fitted, if named."""
        if is_dask(X):
            return X, y
        names = None if reset else getattr(self, "feature_names_in_", None)
        columns = None if names is None else list(names)
        return opened(X, y, bool(self.fit_intercept), columns)

    def _checked_rows(self, X: Any, reset: bool = True) -> Any:
        """Rows as scikit-learn checks them; a Design as it is, if it fits the settings."""
        names = dask_predictions.column_names(X) if is_dask(X) else None
        if is_dask(X):
            X = as_design(X, intercept=bool(self.fit_intercept))
        if not isinstance(X, Design):
            refuse_masked(X, "X")
            try:
                return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=reset)
            except (TypeError, OverflowError) as error:
                raise TypeError(f"X, of type {type(X).__name__}: {error}") from error
        if X.intercept != bool(self.fit_intercept):
            raise ValueError(
                f"X is a design with intercept={X.intercept}, but fit_intercept is "
                f"{self.fit_intercept}"
            )
        if reset:
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            if names is None and X.feature_names is not None:
                names = np.array(X.feature_names, dtype=object)
            if names is not None:
                self.feature_names_in_ = names
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return X

    @property
    def n_nonzero_(self) -> int:
        """How many entries of `coef_` are not zero."""
        check_is_fitted(self)
        return int(np.count_nonzero(dense(self.coef_)))

    @property
    def selected_features_(self) -> Any:
        """The features with a coefficient that is not zero: their names, x0, x1, … without any."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object)
        return names[dense(self.coef_).any(axis=0)]

    def _l1_ratio(self, given: Any, n_classes: int, sklearn_units: bool) -> float:
        """The share of ‖W‖₁. For two classes scikit-learn's share, beside C, is of one vector."""
        ratio = 0.0 if given is None else check_share("l1_ratio", given)
        if penalty_object(self.penalty, None if given is None else ratio) is not None and ratio:
            raise ValueError(
                f"give penalty or l1_ratio, not both: got {self.penalty!r} and l1_ratio={given}"
            )
        return ratio / (2.0 - ratio) if sklearn_units and n_classes == 2 else ratio

    def _problem(self, X: Any, targets: Targets, alpha: float, ratio: float = 0.0) -> Problem:
        K, intercept = len(targets.classes), bool(self.fit_intercept)
        penalty, operator = penalty_object(self.penalty, ratio), self.operator
        if ratio:
            penalty, operator = ElasticNet(ratio, operator=operator), None
        design = as_design(X, intercept=intercept, check_finite=False)
        if self.standardize:
            design = standardized(design, design.place(targets.weights))
        reference = as_W(self.reference, X.shape[1], K, intercept, "reference")
        return Problem.of(
            design,
            targets.labels,
            alpha,
            sample_weight=targets.weights,
            n_classes=K,
            penalty=penalty,
            operator=operator,
            reference=None if reference is None else design.in_units_of_view(reference),
            intercept=intercept,
            penalize_intercept=bool(self.penalize_intercept),
            check_finite=False,  # scikit-learn has checked
        )

    def _validation(
        self, problem: Problem, classes: Any, X_val: Any, y_val: Any, sample_weight_val: Any
    ) -> Problem | None:
        """Validation rows in the units of the problem."""
        if X_val is None and y_val is None:
            if sample_weight_val is not None:
                raise ValueError("sample_weight_val needs X_val and y_val: got None")
            return None
        if X_val is None or y_val is None:
            missing = "X_val" if X_val is None else "y_val"
            raise ValueError(f"X_val and y_val go together: {missing} is None")
        X_val, y_val = self._opened(X_val, y_val)
        try:
            X_val = self._checked_rows(X_val, reset=False)
        except ValueError as error:
            raise ValueError(f"X_val: {error}") from error
        n, remote = X_val.shape[0], getattr(X_val, "is_remote", False)
        if remote:
            labels: Any = encode_more_placed(X_val, y_val, classes)
            weights: Any = placed_weights(X_val, sample_weight_val, labels, "sample_weight_val")
        else:
            labels = encode_more(y_val, n, classes)
            weights = check_weights(sample_weight_val, n, "sample_weight_val")
        design = as_design(X_val, intercept=bool(self.fit_intercept), check_finite=False)
        return Problem.of(
            problem.design.matching(design),
            labels,
            sample_weight=weights,
            n_classes=len(classes),
        )

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except (TypeError, ValueError) as error:
            raise ValueError(
                "random_state must be None, a whole number from 0 to 2**32 - 1 or a RandomState, "
                f"got {self.random_state!r}"
            ) from error

    def _of_scores(self, X: Any, function: Callable[[Any], Any]) -> Any:
        """A function of the scores, row by row: of all at once, or block by block of a Design."""
        check_is_fitted(self)
        X, _ = self._opened(X)
        if not isinstance(X, Design):
            refuse_masked(X, "X")
            return function(super().decision_function(X))
        X = self._checked_rows(X, reset=False)
        coef = dense(self.coef_)
        W = from_coef(coef, self.intercept_, len(coef), X.intercept)
        return X.map_scores(W, lambda scores: function(_flat(scores)))


def _flat(scores: Any) -> Any:
    """One number per example for two classes, as scikit-learn has them."""
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _of_all_classes(scores: Any) -> Any:
    """Scores of shape (n, K), also for two classes."""
    return np.stack([-scores / 2, scores / 2], axis=1) if scores.ndim == 1 else scores


def targets_of(X: Any, y: Any, class_weight: Any, sample_weight: Any) -> Targets:
    """Encoded labels and weights, beside the rows where those are on other machines."""
    if getattr(X, "is_remote", False):
        return encode_placed(X, y, class_weight, sample_weight)
    return encode(y, X.shape[0], class_weight, sample_weight)


_SOLVER = "solver__"


def _settings_of(solver: Any) -> dict[str, Any]:
    """The settings of a solver object, by the names that `set_params` takes; none of a name."""
    if isinstance(solver, type) or not is_dataclass(solver):
        return {}
    return {f"{_SOLVER}{f.name}": getattr(solver, f.name) for f in fields(solver)}


def penalty_and_C(
    value: float, n_classes: int, total_weight: float, l1_ratio: float = 0.0
) -> float:
    """From α to scikit-learn's C or back: α = 1/(S·C), for three classes or more.

    For two, scikit-learn penalises one vector w, and W has the halves ∓w/2, so that
    ‖W‖₁ = ‖w‖₁ and ‖W‖² = ‖w‖²/2. With r the share of ‖W‖₁ in the penalty, α = 2/((1 + r)·S·C).
    """
    if value == 0:
        return np.inf
    if np.isinf(value):
        return 0.0
    if total_weight * value == 0:  # both are tiny
        return np.inf
    return (2.0 / (1.0 + l1_ratio) if n_classes == 2 else 1.0) / (total_weight * value)


def alpha_of_C(C: float, n_classes: int, total_weight: float, l1_ratio: float) -> float:
    """α of scikit-learn's C, which is a finite number."""
    alpha = penalty_and_C(C, n_classes, total_weight, l1_ratio)
    if np.isinf(alpha):
        raise ValueError(
            f"C must be larger, got {C}: 1/(S·C), with S = {total_weight:g}, overflows"
        )
    return alpha


def _sklearn_ratio(ratio: float, n_classes: int) -> float:
    """scikit-learn's l1_ratio for a share r of ‖W‖₁."""
    return 2.0 * ratio / (1.0 + ratio) if n_classes == 2 else ratio


def warn_about_many(
    results: Sequence[Result],
    settings: SoftmaxClassifier,
    name: str,
    interrupted: bool,
) -> None:
    """One warning for all fits that did not reach `tol` or were interrupted."""
    troubled = [result for result in results if result.status.remedy]
    if interrupted or any(result.status == Status.INTERRUPTED for result in results):
        what = f"{name} was interrupted: the remaining fits were not run"
    elif troubled:
        first = troubled[0]
        what = (
            f"{name}: {len(troubled)} of {len(results)} fits did not reach tol = "
            f"{settings.tol:.2e} ({first.status}). {remedy(first, settings.solver)}"
        )
    else:
        return
    warn_caller(what, ConvergenceWarning)
