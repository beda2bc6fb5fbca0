"""From a data set to a fitted model: encoding of text columns, and the choice of the estimator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from admm_softmax.estimators import SoftmaxRegression, SoftmaxRegressionCV
from admm_softmax.estimators.model_folder import estimator_of
from admm_softmax.reading import Dataset


@dataclass(frozen=True)
class Plan:
    """How to fit.

    alpha : the penalty; None chooses it on a path, by folds or on validation rows
    alphas, l1_ratios, folds : of that path
    settings : of the estimator
    """

    alpha: float | None = None
    alphas: Any = 20
    l1_ratios: tuple[float, ...] = ()
    folds: int = 5
    settings: dict[str, Any] = field(default_factory=dict)


def fit(plan: Plan, train: Dataset, validation: Dataset | None = None) -> Any:
    """A fitted estimator; a pipeline with an encoder where there are text columns."""
    if train.y is None:
        raise ValueError(
            f"{train.name} has no labels: name their column or array by --target, or their file "
            "by --labels"
        )
    model: Any
    if plan.alpha is not None:
        model = SoftmaxRegression(plan.alpha, **plan.settings)
    else:
        ratios = list(plan.l1_ratios) or None
        model = SoftmaxRegressionCV(plan.alphas, cv=plan.folds, l1_ratios=ratios, **plan.settings)
    encoder = None
    X, more = train.X, {}
    if train.texts:
        encoder = _encoder(train)
        X = encoder.fit_transform(X)
    if validation is not None:
        _require_comparable(train, validation)
        X_val = validation.X if encoder is None else encoder.transform(validation.X)
        more = {"X_val": X_val, "y_val": validation.y, "sample_weight_val": validation.weights}
    model.fit(X, train.y, sample_weight=train.weights, **more)
    return model if encoder is None else Pipeline([("encode", encoder), ("model", model)])


def _encoder(train: Dataset) -> ColumnTransformer:
    """One-hot columns for text, and the other columns as they are.

    A text that was never seen is a row of zeros, so that a service does not stop at it.
    """
    numbers = [name for name in train.X.columns if name not in train.texts]
    one_hot = OneHotEncoder(handle_unknown="ignore", dtype=np.float64)
    return ColumnTransformer(
        [("text", one_hot, list(train.texts)), ("numbers", "passthrough", numbers)],
        verbose_feature_names_out=False,
    )


def _require_comparable(train: Dataset, validation: Dataset) -> None:
    if validation.y is None:
        raise ValueError(
            f"{validation.name} has no labels: it needs the column that --target names, or "
            "--validation-labels"
        )
    columns, others = (list(getattr(d.X, "columns", ())) for d in (train, validation))
    if columns != others:
        different = sorted(set(columns) ^ set(others)) or columns
        raise ValueError(
            f"{validation.name} must have the columns of {train.name}; {different[0]!r} differs"
        )


def summary(model: Any, train: Dataset) -> dict[str, Any]:
    """What to say about a fit: sizes, penalty, status, and figures on the training rows."""
    last = estimator_of(model)
    found: dict[str, Any] = {
        "n_rows": train.shape[0],
        "n_features": int(last.n_features_in_),
        "n_classes": len(last.classes_),
        "alpha": float(last._alpha),
        "status": None if last.status_ is None else str(last.status_),
    }
    if last.history_ is not None:
        record = kept_record(last)
        found |= {
            "iterations": int(np.max(last.history_["iteration"])),
            "seconds": float(last.history_["seconds"][-1]),
            "objective": record["objective"],
            "train_loss": record["loss"],
            "train_accuracy": record["accuracy"],
        }
        if "val_accuracy" in record:
            found |= {"val_loss": record["val_loss"], "val_accuracy": record["val_accuracy"]}
    if isinstance(last, SoftmaxRegressionCV):
        found["score"] = float(np.nanmax(np.nanmean(last.scores_, axis=0)))
        found["scoring"] = last.scoring if isinstance(last.scoring, str) else "score"
    return found


def kept_record(last: Any) -> dict[str, float]:
    """The record of the history that belongs to the coefficients."""
    records = list(last.history_)
    kept = [r for r in records if r["iteration"] == last.best_iteration_]
    return dict((kept or records)[-1])
