"""Labels of any kind to class codes or simplex rows, and the weights that go with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from admm_softmax._arrays import Array, Labels
from admm_softmax._validation import check_soft_labels, check_weights, refuse_masked
from admm_softmax.design import Rows

#: Said where y is a matrix that soft labels cannot be.
SEVERAL_TARGETS = (
    "MultiOutputSoftmaxRegression takes the labels of several targets, a column each or a list of "
    "vectors"
)


class Targets(NamedTuple):
    """Encoded labels, their classes, and sample weights with class weights applied."""

    labels: Labels | Rows
    classes: Any
    weights: Array | Rows
    total_weight: float


def encode(y: Any, n_rows: int, class_weight: Any, sample_weight: Any) -> Targets:
    """Encode training labels; at least two classes are needed."""
    weights = check_weights(sample_weight, n_rows)
    soft = _soft(y, n_rows, "y", "X")
    if soft is not None:
        mass = np.flatnonzero(weights @ soft)
        if len(mass) < 2:
            raise ValueError(f"y must hold at least two classes, got one class only: {mass[0]}")
        v = soft_class_weight(class_weight, weights @ soft)
        labels, weights = (soft, weights) if v is None else weigh_soft(soft, weights, v)
        weights = _with_class_weight(weights, class_weight)
        return Targets(labels, np.arange(soft.shape[1]), weights, float(weights.sum()))
    y = _hard(y, n_rows, "y", "X")
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes, got one class only: {classes.tolist()[0]!r}"
        )
    if class_weight is not None:
        v = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weights)
        weights = _with_class_weight(weights * check_class_weight(v)[codes], class_weight)
    return Targets(codes.astype(np.intp), classes, weights, float(weights.sum()))


def encode_more(
    y: Any, n_rows: int, classes: Any, name: str = "y_val", rows: str = "X_val"
) -> Labels:
    """Encode further labels in terms of the training classes."""
    soft = _soft(y, n_rows, name, rows)
    if soft is not None:
        if soft.shape[1] != len(classes):
            raise ValueError(f"{name} has {soft.shape[1]} columns for {len(classes)} classes")
        return soft
    y = _hard(y, n_rows, name, rows)
    unseen = np.setdiff1d(y, classes)
    if len(unseen):
        raise ValueError(unseen_labels(name, unseen, classes))
    return np.asarray(np.searchsorted(classes, y))


def unseen_labels(name: str, unseen: Any, classes: Any) -> str:
    """What is wrong with labels that no training row had."""
    return (
        f"{name} holds labels never seen in y: {unseen.tolist()[:5]}; the classes are "
        f"{classes.tolist()[:10]}{'…' if len(classes) > 10 else ''}"
    )


def _soft(y: Any, n_rows: int, name: str, rows: str) -> Array | None:
    """Soft labels as float64 if y is a numeric matrix of two or more columns, else None."""
    array = as_array(y, name)
    if array.ndim != 2 or array.shape[1] < 2 or array.dtype.kind not in "fiubO":
        return None
    try:
        array = array.astype(np.float64)  # nullable frames arrive as objects
    except (TypeError, ValueError):
        return None
    if len(array) != n_rows:
        several = f"; {SEVERAL_TARGETS}" if array.shape[1] == n_rows else ""
        raise ValueError(f"{name} has {len(array)} rows for {n_rows} rows of {rows}{several}")
    return soft_labels(array, name)


def soft_labels(array: Any, name: str) -> Array:
    """A matrix y as soft labels; what is wrong with it, and who takes labels of several targets."""
    try:
        return check_soft_labels(array, f"soft labels {name}")
    except ValueError as error:
        raise ValueError(f"{error}; {SEVERAL_TARGETS}") from None


def most_probable(y: Any) -> Any:
    """Soft labels as the class of each row, for scoring; other labels as scikit-learn has them."""
    soft = _soft(y, _num_samples(y), "y", "X")
    if soft is not None:
        return soft.argmax(axis=1)
    array = as_array(y, "y")
    _refuse_missing(array.ravel(), "y")
    return y if hasattr(y, "iloc") else array


def as_array(y: Any, name: str) -> Any:
    """Labels of any container as an array."""
    refuse_masked(y, name)
    if hasattr(y, "to_numpy"):
        try:
            return np.asarray(y.to_numpy())
        except ValueError:  # text in Arrow's arrays cannot be had without a copy
            pass
    array = np.asarray(y)
    # scikit-learn does not know NumPy's strings of any length.
    return array.astype(object) if array.dtype.kind == "T" else array


def _hard(y: Any, n_rows: int, name: str, rows: str) -> Any:
    y = y if hasattr(y, "iloc") else as_array(y, name)
    # What scikit-learn checks takes longer than a small fit, and whole numbers pass.
    whole = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iub"
    if not whole:
        try:
            y = column_or_1d(y, warn=True)
        except ValueError as error:
            raise ValueError(f"{error} {SEVERAL_TARGETS}") from None
    if len(y) != n_rows:
        raise ValueError(f"{name} has {len(y)} entries for {n_rows} rows of {rows}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"Input {name} contains NaN or infinity")
    _refuse_missing(y, name)
    if not whole or 2 * len(np.unique(y)) > len(y):  # it warns of as many classes as that
        check_classification_targets(y)
    return y


def _refuse_missing(y: Any, name: str) -> None:
    if y.dtype.kind != "O":
        return
    missing = [i for i, label in enumerate(y) if _is_missing(label)]
    if missing:
        raise ValueError(
            f"{name} must have a label in every row, got {y[missing[0]]!r} in row "
            f"{missing[0]} ({len(missing)} in all)"
        )


def _is_missing(label: Any) -> bool:
    """None, NaN, or pandas' NA, of which nobody can say whether it is itself."""
    try:
        return label is None or bool(label != label)  # noqa: PLR0124
    except TypeError:
        return True


def soft_class_weight(class_weight: Any, masses: Array) -> Any:
    """Weights of the classes of soft labels, from the weighted mass of each; None for none."""
    if class_weight is None:
        return None
    K = len(masses)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}"
            )
        v = masses.sum() / (K * np.maximum(masses, np.finfo(float).tiny))
    else:
        v = compute_class_weight(class_weight, classes=np.arange(K), y=np.arange(K))
    return check_class_weight(v)


def weigh_soft(soft: Array, weights: Array, v: Any) -> tuple[Array, Array]:
    """Class weights v on soft labels: Σ_k v_k c_k (lse − z_k) is a row weight and new labels."""
    factor = soft @ v
    # A row whose classes all have weight zero keeps its labels, at weight zero.
    share = np.where(factor[:, None] > 0, soft * v, soft)
    return share / share.sum(axis=1, keepdims=True), weights * factor


def _with_class_weight(weights: Array, class_weight: Any) -> Array:
    if not weights.any():
        raise ValueError(f"class_weight leaves no row with weight, got {class_weight!r}")
    return weights


def check_class_weight(v: Any) -> Any:
    """Class weights that are finite and ≥ 0."""
    if not np.isfinite(v).all() or v.min() < 0:
        raise ValueError(f"class_weight must be finite and ≥ 0 for every class, got {v.tolist()}")
    return v
