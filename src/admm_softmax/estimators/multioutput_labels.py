"""Labels of many targets, in the forms that users have them in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from admm_softmax._arrays import Array
from admm_softmax.estimators.labels import as_array, check_class_weight, unseen_labels
from admm_softmax.targets.labels import Target

#: Whole numbers that span at most so many values are counted instead of sorted.
COUNTED_SPAN = 4096


class Column(NamedTuple):
    """The labels of one target: codes, −1 where missing, and the classes that they stand for."""

    codes: Any
    classes: Any


def columns_of(Y: Any, n_rows: int, name: str = "Y") -> list[Any]:
    """The label vectors of all targets.

    A list or tuple holds one vector per target; anything else is a matrix or frame with one
    column per target.
    """
    if isinstance(Y, list | tuple):
        columns = [as_array(y, f"{name}[{t}]") for t, y in enumerate(Y)]
    elif hasattr(Y, "iloc") and getattr(Y, "ndim", 1) == 2:
        columns = [as_array(Y.iloc[:, t], f"{name}[{t}]") for t in range(Y.shape[1])]
    else:
        matrix = Y if hasattr(Y, "toarray") else as_array(Y, name)
        if matrix.ndim != 2:
            raise ValueError(
                f"{name} must have a column per target, got {matrix.ndim} dimensions; "
                "SoftmaxRegression fits one target"
            )
        if hasattr(matrix, "toarray"):  # a sparse indicator matrix
            csc = matrix.tocsc()
            columns = [csc[:, [t]].toarray()[:, 0] for t in range(matrix.shape[1])]
        else:
            columns = [matrix[:, t] for t in range(matrix.shape[1])]
    if not columns:
        raise ValueError(f"{name} must hold at least one target, got none")
    for t, column in enumerate(columns):
        if column.ndim != 1 or len(column) != n_rows:
            raise ValueError(
                f"{name}[{t}] must have one label for each of {n_rows} rows, got shape "
                f"{column.shape}"
            )
    return columns


def is_missing(column: Any, missing: Any) -> Any:
    """Which labels are missing: NaN and None always, and those that equal `missing`."""
    if column.dtype.kind == "f":
        gone = np.isnan(column)
    elif column.dtype.kind == "O":
        gone = np.array([label is None or label != label for label in column], dtype=bool)  # noqa: PLR0124
    else:
        gone = np.zeros(len(column), dtype=bool)
    if missing is not None:
        gone = gone | np.asarray(column == missing, dtype=bool)
    return gone


def encode_column(column: Any, missing: Any, name: str) -> Column:
    """Codes and classes of one target; it needs two classes at least."""
    codes, classes = _counted(column, missing) or _sorted(column, is_missing(column, missing))
    if len(classes) < 2:
        found = "none" if not len(classes) else f"{classes.tolist()[0]!r} only"
        raise ValueError(f"{name} must have labels of at least two classes, got {found}")
    return Column(codes, classes)


def encode_more_columns(column: Any, missing: Any, classes: Any, name: str) -> Any:
    """Codes of further labels in terms of known classes, −1 where missing."""
    gone = is_missing(column, missing)
    there = column[~gone]
    unseen = np.setdiff1d(there, classes)
    if len(unseen):
        raise ValueError(unseen_labels(name, unseen, classes))
    codes = np.full(len(column), -1, _code_type(len(classes)))
    codes[~gone] = np.searchsorted(classes, there)
    return codes


def _code_type(n_classes: int) -> Any:
    return next(kind for kind in (np.int8, np.int16, np.int32) if n_classes <= np.iinfo(kind).max)


def _counted(column: Any, missing: Any) -> Column | None:
    """As `_sorted`, for whole numbers close to each other: without sorting."""
    if column.dtype.kind not in "iub":
        return None
    if column.dtype.kind == "b":
        column = column.view(np.uint8)
    low = int(column.min())
    span = int(column.max()) - low + 1
    if span > COUNTED_SPAN:
        return None
    places = np.subtract(column, low, dtype=np.intp)
    there = np.bincount(places, minlength=span) > 0
    if missing is not None and low <= missing < low + span and missing == int(missing):
        there[int(missing) - low] = False
    classes = np.flatnonzero(there)
    table = np.full(span, -1, _code_type(len(classes)))
    table[classes] = np.arange(len(classes))
    return Column(table[places], (classes + low).astype(column.dtype))


def _sorted(column: Any, gone: Any) -> Column:
    classes, found = np.unique(column[~gone], return_inverse=True)
    codes = np.full(len(column), -1, _code_type(len(classes)))
    codes[~gone] = found
    return Column(codes, classes)


def target_of(
    column: Column, weights: Array | None, class_weight: Any, counts: Any = None
) -> Target:
    """One target with its weights; class weights are those of its sample's labelled rows."""
    v = None
    if class_weight is not None:
        there = column.codes >= 0
        given = [np.asarray(each)[there] for each in (weights, counts) if each is not None]
        v = compute_class_weight(
            class_weight,
            classes=column.classes,
            y=column.classes[column.codes[there]],
            sample_weight=np.prod(given, axis=0) if given else None,
        )
        v = check_class_weight(v)
    target = Target(column.codes, len(column.classes), weights, counts, v)
    if not target.total_weight > 0:
        raise ValueError("each target must have rows with a label and weight, got a sum of 0")
    return target
