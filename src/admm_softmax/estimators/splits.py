"""Which rows each fold of a cross-validation fits, and which it holds out."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from admm_softmax._checks import check_count
from admm_softmax.design import Rows
from admm_softmax.estimators.distributed_labels import stratified
from admm_softmax.estimators.labels import Targets, most_probable

#: What `cv` may be.
CV_RULE = "cv must be a number of folds, a splitter, or pairs (rows to fit, rows to hold out)"


def fold_pairs(
    cv: Any, X: Any, y: Any, targets: Targets, routed: Mapping[str, Any]
) -> list[tuple[Any, Any]]:
    """Rows to fit and rows to hold out, for every fold; `routed` is for the splitter."""
    from sklearn.model_selection import check_cv  # noqa: PLC0415  (loads all searches and metrics)

    if not getattr(X, "is_remote", False):
        labels = most_probable(y)
        splitter = check_cv(_as_cv(cv), labels, classifier=True)
        return list(splitter.split(_places(X), labels, **routed))
    if cv is None or isinstance(cv, numbers.Integral):
        n_folds = check_count("cv", 5 if cv is None else cv, "at least 2")
        placed = targets.labels
        assert isinstance(placed, Rows)
        return stratified(X, placed, len(targets.classes), n_folds)
    try:
        return list(check_cv(cv).split(_places(X), None, **routed))
    except (TypeError, ValueError) as error:
        raise ValueError(
            "where labels are on other machines, cv must be a number, a splitter that needs "
            f"no labels, or a list of (rows to fit, rows to hold out): {error}"
        ) from error


def _as_cv(cv: Any) -> Any:
    """A number of folds, None or a splitter as it is; pairs as a list, at least one."""
    whole = cv is None or isinstance(cv, numbers.Integral)
    if whole or (hasattr(cv, "split") and not isinstance(cv, str | bytes)):
        return cv
    try:
        folds = list(cv)
    except TypeError as error:
        raise ValueError(f"{CV_RULE}, got {cv!r}") from error
    if not folds:
        raise ValueError(f"{CV_RULE}, of which there must be one at least, got {cv!r}")
    for fold in folds:
        pair = isinstance(fold, tuple | list | np.ndarray) and len(fold) == 2
        if not pair or not all(np.ndim(rows) == 1 for rows in fold):
            raise ValueError(f"{CV_RULE}, got the fold {fold!r}")
    return folds


def _places(X: Any) -> Any:
    """What splitters get for X: they look at the number of rows only."""
    return np.zeros((X.shape[0], 1))
