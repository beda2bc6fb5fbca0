"""Scores of fitted models on rows held out, for any `scoring`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from admm_softmax._arrays import Array
from admm_softmax._validation import check_weights
from admm_softmax.design import Design, Rows, is_dask
from admm_softmax.estimators import dask_predictions, device_predictions
from admm_softmax.estimators.base import targets_of
from admm_softmax.estimators.coefficients import to_coef
from admm_softmax.estimators.labels import as_array, encode_more, most_probable
from admm_softmax.estimators.regression import SoftmaxRegression
from admm_softmax.kernels.softmax import label_scores
from admm_softmax.path.fitter import Fitter
from admm_softmax.problem import Problem
from admm_softmax.solvers.identity import data_identity
from admm_softmax.storage.identity import Digest, as_text

#: Scores of one W per fold, each on the rows that its fold holds out.
FoldScores: TypeAlias = Callable[[Fitter, Sequence[Array]], Array]

#: Scores that a pass over the rows yields, also for soft labels: column and sign.
_BY_PASSES = {"neg_log_loss": (0, -1.0), "accuracy": (1, 1.0)}


class HeldOut(NamedTuple):
    """Rows with labels and weights, usually those to score on."""

    X: Any
    y: Any
    sample_weight: Any

    def at(self, part: Any) -> HeldOut:
        """Some of the rows, by increasing positions."""
        X = self.X.picked(part) if isinstance(self.X, Design) else _safe_indexing(self.X, part)
        s = self.sample_weight
        y = self.y if hasattr(self.y, "iloc") else as_array(self.y, "y")
        return HeldOut(X, _safe_indexing(y, part), None if s is None else s[part])


def scored_by_passes(scoring: Any) -> bool:
    """Whether loss or accuracy, which a pass over the rows yields, is the score."""
    return scoring is None or (isinstance(scoring, str) and scoring in _BY_PASSES)


def check_by_passes(scoring: Any) -> str:
    """The name of a score that needs no rows here; other scores are refused."""
    if not scored_by_passes(scoring):
        raise ValueError(
            f"scoring={scoring!r} needs the rows on this machine, and they are on others: use "
            "'neg_log_loss' or 'accuracy'"
        )
    return scoring or "accuracy"


@dataclass(frozen=True)
class PassScores:
    """Loss or accuracy on the rows held out, for all folds in shared passes."""

    scoring: str | None
    held_out: list[Problem]

    def __call__(self, fitter: Fitter, solutions: Sequence[Array]) -> Array:
        """One score per fold."""
        column, sign = _BY_PASSES[self.scoring or "accuracy"]
        return np.asarray(sign * fitter.evaluate(self.held_out, solutions)[:, column])


@dataclass(frozen=True)
class ModelScores:
    """Scores by a scikit-learn scorer or the user's function, one `HeldOut` per fold.

    params : what else the scorer asks for, by fold
    """

    scorer: Any
    rows: list[HeldOut]
    params: list[dict[str, Any]]
    classes: Any
    design: Design
    dtype: Any

    def __call__(self, fitter: Fitter, solutions: Sequence[Array]) -> Array:
        """One score per fold."""
        scorer = with_labels(self.scorer, self.classes)
        folds = zip(solutions, self.rows, self.params, strict=True)
        return np.array(
            [score(self._model(W), scorer, *rows, **params) for W, rows, params in folds]
        )

    def _model(self, W: Array) -> SoftmaxRegression:
        intercept = self.design.intercept
        fitted = SoftmaxRegression(fit_intercept=intercept)
        fitted.classes_ = self.classes
        W = self.design.in_units_of_X(W)
        fitted.coef_, fitted.intercept_ = to_coef(W, intercept, self.dtype)
        fitted.n_features_in_ = fitted.coef_.shape[1]
        return fitted


def scores_of_folds(
    scoring: Any,
    pairs: Sequence[tuple[Any, Any]],
    problem: Problem,
    rows: HeldOut,
    classes: Any,
    params: Mapping[str, Any],
) -> FoldScores:
    """Scores on the rows that each fold holds out.

    pairs : positions of the rows that a fold is fitted to, and of those it holds out
    rows : all rows, with the weights of scores
    params : what else the scorer asks for, one entry per row
    """
    n, design = problem.design.n_rows, problem.design
    parts = [
        others if isinstance(others, Rows) else np.sort(np.asarray(others)) for _, others in pairs
    ]
    if scored_by_passes(scoring):
        # Fits are weighted by class, scores are not; and routing may withhold weights.
        plain = targets_of(design, rows.y, None, rows.sample_weight)
        to_score = Problem.of(
            design, plain.labels, sample_weight=plain.weights, n_classes=problem.n_classes
        )
        return PassScores(scoring, [to_score.on(part) for part in parts])
    if design.is_remote:
        check_by_passes(scoring)
    if rows.sample_weight is not None:
        rows = rows._replace(sample_weight=check_weights(rows.sample_weight, n))
    held_out = [rows.at(part) for part in parts]
    by_fold = [_check_method_params(rows.X, params, indices=part) for part in parts]
    return ModelScores(as_scorer(scoring), held_out, by_fold, classes, design, design.dtype)


def scores_of_rows(
    scoring: Any,
    validation: Problem,
    rows: HeldOut,
    classes: Any,
    dtype: Any,
    params: Mapping[str, Any],
) -> FoldScores:
    """Scores on validation rows, given as a problem and as they are."""
    if scored_by_passes(scoring):
        return PassScores(scoring, [validation])
    if validation.design.is_remote:
        check_by_passes(scoring)
    design = validation.design
    return ModelScores(as_scorer(scoring), [rows], [dict(params)], classes, design, dtype)


def scores_identity(
    scoring: Any,
    pairs: Sequence[tuple[Any, Any]],
    validation: Problem | None,
    sample_weight: Any,
    params: Mapping[str, Any],
) -> dict[str, Any]:
    """What scores are computed from, by name, besides the fits and their data."""
    folds = Digest()
    for part in (part for pair in pairs for part in pair):
        # Folds on other machines follow from `cv` and the data, which are known.
        folds.add(np.asarray("placed" if isinstance(part, Rows) else part))
    given = {"weights of scores": sample_weight}
    given |= {f"{name} of scores": value for name, value in params.items()}
    known = {"folds": str(folds), "scoring": as_text(scoring)}
    known |= {name: _digest(value) for name, value in given.items() if value is not None}
    return known if validation is None else {**known, **data_identity(validation, "validation ")}


def _digest(value: Any) -> str:
    array = np.asarray(value)
    # The bytes of objects are their addresses.
    return str(Digest().add(np.array(as_text(array.tolist())) if array.dtype == object else array))


def score(estimator: Any, scoring: Any, X: Any, y: Any, sample_weight: Any, **params: Any) -> Any:
    """The score of a fitted model, for any `scoring`; `params` are what the scorer asks for.

    Of Dask input it is not computed yet.
    """
    if is_dask(X):
        return dask_predictions.scored(estimator, check_by_passes(scoring), X, y, sample_weight)
    if isinstance(X, Design) and X.rows_stay:
        return device_predictions.scored(estimator, check_by_passes(scoring), X, y, sample_weight)
    if isinstance(scoring, str) and scoring == "neg_log_loss":
        # As scikit-learn's, and for soft labels as well.
        log_p = estimator.predict_log_proba(X)
        labels = encode_more(y, len(log_p), estimator.classes_, "y", "X")
        w = check_weights(sample_weight, len(log_p))
        return float(w @ label_scores(log_p, labels) / w.sum())
    y, scorer = most_probable(y), as_scorer(scoring)
    if sample_weight is not None:
        params["sample_weight"] = sample_weight
    return float(scorer(estimator, X, y, **params))


def as_scorer(scoring: Any) -> Any:
    """The scorer, a function of model, X and y, that `scoring` names or is."""
    if scoring is None or isinstance(scoring, str):
        from sklearn.metrics import get_scorer  # noqa: PLC0415  (loads all metrics)

        return get_scorer(scoring or "accuracy")
    if not callable(scoring):
        raise TypeError(f"scoring must be a name, a function or None, got {scoring!r}")
    return scoring


def with_labels(scorer: Any, classes: Any) -> Any:
    """The scorer, told all classes if its metric asks for them: a fold may lack some."""
    metric = getattr(scorer, "_score_func", None)
    if metric is None:
        return scorer
    asked = signature(metric).parameters
    known: dict[str, Any] = {}
    if "labels" in asked:
        known["labels"] = classes
        if "pos_label" in asked and len(classes) == 2:
            known["pos_label"] = classes[-1]
    told = copy(scorer)
    told._kwargs = {**known, **scorer._kwargs}
    return told


def means(scores: Sequence[Array]) -> list[float]:
    """The mean score per penalty, −∞ where it is NaN.

    A fold whose score is undefined under every penalty is left out.
    """
    table = np.array(scores)
    defined = ~np.isnan(table).all(axis=0)
    if not defined.any():
        return [-np.inf] * len(table)
    found = table[:, defined].mean(axis=1)
    return [-np.inf if np.isnan(mean) else float(mean) for mean in found]
