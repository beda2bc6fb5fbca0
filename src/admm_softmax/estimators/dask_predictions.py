"""Predictions and scores on Dask collections: nothing is computed here, nothing is moved."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from admm_softmax._validation import check_weights
from admm_softmax.estimators.labels import encode_more, most_probable
from admm_softmax.kernels.softmax import label_scores

#: What a copy of a model needs to predict; histories and settings stay here.
_FITTED = ("classes_", "coef_", "intercept_", "n_features_in_", "fit_intercept")


def predicted(model: Any, method: str, X: Any) -> Any:
    """The result of a fitted model's method for X, as a Dask array, or a list for a list."""
    from admm_softmax.design.dask import lazily  # noqa: PLC0415  (loads Dask)

    function = partial(_call, _checked(model, X), method)
    # One row of zeros tells the width and the type of the answer.
    like = function(np.zeros((1, model.n_features_in_), getattr(X, "dtype", np.float64)))
    return lazily(function, X, None if like.ndim == 1 else like.shape[1], like.dtype)


def scored(model: Any, scoring: str, X: Any, y: Any, sample_weight: Any) -> Any:
    """Accuracy or negative log loss, as a Dask array without dimensions; float() computes it."""
    from admm_softmax.design.dask import lazy_mean  # noqa: PLC0415  (loads Dask)

    function = partial(_score_part, _checked(model, X), scoring)
    return lazy_mean(function, X, y, sample_weight)


def column_names(X: Any) -> Any:
    """The names of a frame's columns, as scikit-learn stores them; None where there are none."""
    names = list(getattr(X, "columns", []))
    named = bool(names) and all(isinstance(name, str) for name in names)
    return np.asarray(names, dtype=object) if named else None


def _checked(model: Any, X: Any) -> Any:
    """A copy of a fitted model that is small to send, if X has its columns."""
    check_is_fitted(model)
    names, known = column_names(X), getattr(model, "feature_names_in_", None)
    if names is not None and known is not None and not np.array_equal(names, known):
        raise ValueError(
            f"X has the columns {[*names][:5]}…, but the model was fitted to {[*known][:5]}…"
        )
    width = X.shape[1] if getattr(X, "ndim", 0) == 2 else model.n_features_in_
    if width != model.n_features_in_:
        raise ValueError(
            f"X has {width} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input"
        )
    slim = copy(model)
    slim.__dict__ = {name: model.__dict__[name] for name in _FITTED}
    return slim


def _call(model: Any, method: str, X: Any) -> Any:
    if X.shape[0] == 0:  # an empty partition
        return getattr(model, method)(np.zeros((1, X.shape[1])))[:0]
    return getattr(model, method)(X)


def _score_part(
    model: Any, scoring: str, X: Any, y: Any, sample_weight: Any
) -> tuple[float, float]:
    """The weighted sum of a partition's scores, and of its weights."""
    n = X.shape[0]
    if n == 0:
        return 0.0, 0.0
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if len(y) != n:
        raise ValueError(f"y has {len(y)} rows for {n} rows of X in a partition")
    w = check_weights(1.0 if sample_weight is None else sample_weight, n)
    if scoring == "accuracy":
        own = model.predict(X) == most_probable(y)
    else:
        own = label_scores(model.predict_log_proba(X), encode_more(y, n, model.classes_, "y", "X"))
    return float(w @ own), float(w.sum())
