"""Labels and weights that stay beside their rows, encoded part by part.

For designs whose rows are on other machines: only classes, counts and sums come to the caller.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from admm_softmax._arrays import Array
from admm_softmax._validation import check_total_weight, check_weight_entries
from admm_softmax.design import Design, Rows, is_tensor
from admm_softmax.estimators.labels import (
    Targets,
    as_array,
    check_class_weight,
    encode_more,
    soft_class_weight,
    soft_labels,
    unseen_labels,
    weigh_soft,
)


def encode_placed(design: Design, y: Any, class_weight: Any, sample_weight: Any) -> Targets:
    """Encode training labels, as `encode` does for arrays in memory."""
    names, y = _named(design, y)
    placed = design.place(y, "y")
    weights = placed_weights(design, sample_weight, placed)
    if _is_soft(placed):
        return _encode_soft(design, placed, class_weight, weights)
    classes = _classes(design, placed) if names is None else names
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes, got one class only: {classes.tolist()[0]!r}"
        )
    known = classes if names is None else np.arange(len(names))
    codes = design.map_rows(partial(_codes, known, "y"), placed)
    if class_weight is not None:
        K = len(classes)
        counts = sum(design.per_part(lambda c, w: np.bincount(c, w, K), codes, weights))
        # Balanced weights depend on the counts alone: one row per class stands for all.
        v = check_class_weight(
            compute_class_weight(class_weight, classes=classes, y=classes, sample_weight=counts)
        )
        weights = design.map_rows(lambda w, c: w * np.take_along_axis(v, c, 0), weights, codes)
    return Targets(codes, classes, weights, design.total(weights))


def _named(design: Design, y: Any) -> tuple[Any, Any]:
    """Classes and codes of labels that are text; None and the labels themselves of others.

    Tensors hold no text: such labels are on this machine, and their codes go to the rows.
    """
    if not design.rows_stay or is_tensor(y):
        return None, y
    labels = as_array(y, "y")
    if labels.ndim != 1 or labels.dtype.kind not in "OUS":
        return None, labels
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes


def encode_more_placed(design: Design, y: Any, classes: Any, name: str = "y_val") -> Rows:
    """Encode further labels in terms of the training classes."""
    if classes.dtype.kind in "OUS" and design.rows_stay:
        return design.place(encode_more(y, design.n_rows, classes, name))
    placed = design.place(y, name)
    if not _is_soft(placed):
        return design.map_rows(partial(_codes, classes, name), placed)
    if placed.columns != len(classes):
        raise ValueError(f"{name} has {placed.columns} columns for {len(classes)} classes")
    return design.map_rows(partial(soft_labels, name=name), placed)


def placed_weights(
    design: Design, sample_weight: Any, like: Rows, name: str = "sample_weight"
) -> Rows:
    """Sample weights beside the rows: finite, ≥ 0, not all zero; None and numbers are for all."""
    if sample_weight is None or np.ndim(sample_weight) == 0:
        value = 1.0 if sample_weight is None else float(sample_weight)
        weights = design.map_rows(
            lambda a: np.full_like(a, value, dtype=np.float64, shape=len(a)), like
        )
    else:
        weights = design.place(sample_weight, name)
    weights = design.map_rows(partial(_weight_entries, name), weights)
    check_total_weight(design.total(weights), design.n_rows, name)
    return weights


def stratified(design: Design, labels: Rows, n_classes: int, n_folds: int) -> list[Any]:
    """Pairs of handles, (rows to fit, rows to hold out): the folds of `StratifiedKFold`.

    scikit-learn numbers the classes by their first appearance, deals the sorted labels out
    to the folds in turn, and gives each fold its share of a class in the order of the rows.
    So the fold of a row follows from its class, its rank within the class, and the counts.
    """
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2, got {n_folds}")
    codes = labels
    if labels.columns is not None:
        codes = design.map_rows(lambda c: c.argmax(axis=1), labels)
    counts = np.array(design.per_part(lambda c: np.bincount(c, minlength=n_classes), codes))
    firsts = design.per_part(_first_places, codes)
    total = counts.sum(axis=0)
    present = np.flatnonzero(total)
    if n_folds > total.max():
        raise ValueError(
            f"cv={n_folds} folds are more than the {total.max()} rows of the largest class"
        )
    if n_folds > total[present].min():
        warnings.warn(
            f"the smallest class has {total[present].min()} rows, fewer than cv={n_folds} folds",
            UserWarning,
            stacklevel=2,
        )
    order = list(dict.fromkeys(int(k) for part in firsts for k in part))
    dealt = np.repeat(order, total[order])
    shares = np.array([np.bincount(dealt[f::n_folds], minlength=n_classes) for f in range(n_folds)])
    ends, before = shares.cumsum(axis=0), counts.cumsum(axis=0) - counts
    folds = design.map_parts(partial(_folds, ends), list(before), codes)
    return [
        (
            design.map_rows(partial(_differs, f), folds),
            design.map_rows(partial(_equals, f), folds),
        )
        for f in range(n_folds)
    ]


def _folds(ends: Any, before: Any, codes: Any) -> Any:
    """The fold of every row of a part, `before` which there are so many rows of each class."""
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=len(before))
    first = np.cumsum(counts) - counts
    places = np.cumsum(np.ones_like(codes)) - 1
    ranks = (places - np.take_along_axis(first, codes[order], 0))[np.argsort(order)]
    ranks = ranks + np.take_along_axis(before, codes, 0)
    return sum((ranks >= np.take_along_axis(end, codes, 0)).astype(np.intp) for end in ends)


def _equals(fold: int, folds: Any) -> Any:
    return folds == fold


def _differs(fold: int, folds: Any) -> Any:
    return folds != fold


def _first_places(codes: Any) -> Any:
    """The classes in the order in which they first appear."""
    classes, first = np.unique(codes, return_index=True)
    return classes[np.argsort(first)]


def _is_soft(placed: Rows) -> bool:
    return placed.columns is not None and placed.columns >= 2


def _encode_soft(design: Design, placed: Rows, class_weight: Any, weights: Rows) -> Targets:
    soft = design.map_rows(partial(soft_labels, name="y"), placed)
    masses: Array = np.sum(design.per_part(lambda c, w: w @ c, soft, weights), axis=0)
    mass = np.flatnonzero(masses)
    if len(mass) < 2:
        raise ValueError(f"y must hold at least two classes, got one class only: {mass[0]}")
    v = soft_class_weight(class_weight, masses)
    if v is not None:
        labels = design.map_rows(lambda c, w: weigh_soft(c, w, v)[0], soft, weights)
        weights = design.map_rows(lambda c, w: weigh_soft(c, w, v)[1], soft, weights)
        soft = labels
    return Targets(soft, np.arange(len(masses)), weights, design.total(weights))


def _classes(design: Design, placed: Rows) -> Any:
    """The classes: those of every part, then of all."""
    found = [part for part in design.per_part(_unique, placed) if len(part)]
    classes = np.unique(np.concatenate(found))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that every label is another one: they are classes
        check_classification_targets(classes)
    return classes


def _unique(y: Any) -> Any:
    return np.unique(_flat(y, "y"))


def _flat(y: Any, name: str) -> Any:
    """Hard labels of one part as a vector, without gaps."""
    y = y[:, 0] if y.ndim == 2 else y
    if y.dtype.kind in "fO":
        missing = ~np.isfinite(y) if y.dtype.kind == "f" else np.array([*map(_is_missing, y)], bool)
        if missing.any():
            row = int(missing.argmax())
            raise ValueError(f"Input {name} contains NaN or infinity, in row {row}")
    return y


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, or the NA of pandas, which is not to be compared."""
    nan = isinstance(label, float) and np.isnan(label)
    return label is None or nan or type(label).__name__ == "NAType"


def _codes(classes: Any, name: str, y: Any) -> Any:
    """Labels as class codes; all must be known."""
    y = _flat(y, name)
    codes = np.searchsorted(classes, y)
    nearest = np.take_along_axis(classes, np.minimum(codes, len(classes) - 1), 0)
    unseen = np.unique(y[nearest != y])
    if len(unseen):
        raise ValueError(unseen_labels(name, unseen, classes))
    return codes.astype(np.intp)


def _weight_entries(name: str, s: Any) -> Array:
    if s.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {s.shape}")
    return check_weight_entries(s, name)
