"""Many targets on rows that stay on their device: labels are encoded there, classes come here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from admm_softmax.design import Design, Rows, is_tensor
from admm_softmax.estimators.distributed_labels import placed_weights
from admm_softmax.estimators.labels import check_class_weight
from admm_softmax.estimators.multioutput_labels import (
    Column,
    columns_of,
    encode_column,
    encode_more_columns,
    is_missing,
)
from admm_softmax.targets.placed import MISSING, PlacedTarget


def placed_targets(
    design: Design, Y: Any, missing: Any, class_weight: Any, sample_weight: Any
) -> tuple[list[Column], list[PlacedTarget]]:
    """The targets of Y, tensors or arrays, and their classes as columns without codes."""
    weights = None if sample_weight is None else weights_there(design, sample_weight)
    columns, targets = [], []
    for t, given in enumerate(_columns(design, Y, "Y")):
        name = f"target {t}"
        if isinstance(given, Rows):
            classes = _classes(design, given, missing, name)
            target = PlacedTarget(design, given, classes, missing, weights)
        else:  # its codes are among arange(K), −1 where missing
            codes, classes = encode_column(given, missing, name)
            target = PlacedTarget(design, codes, np.arange(len(classes)), MISSING, weights)
        columns.append(Column(None, classes))
        targets.append(weighed(target, class_weight, classes))
    return columns, targets


def weighed(target: PlacedTarget, class_weight: Any, classes: Any) -> PlacedTarget:
    """The target with class weights of its labelled rows, by the names of its classes."""
    if class_weight is not None:
        # Balanced weights depend on the counts alone: one row per class stands for all.
        v = compute_class_weight(
            class_weight, classes=classes, y=classes, sample_weight=target.masses
        )
        target = replace(target, class_weight=check_class_weight(v))
    if not target.total_weight > 0:
        raise ValueError("each target must have rows with a label and weight, got a sum of 0")
    return target


def sampled(
    target: PlacedTarget, classes: Any, subsets: Sequence[Any], class_weight: Any
) -> tuple[list[Column], list[PlacedTarget]]:
    """One target on many samples of the rows, each with the classes that it has."""
    columns, targets = [], []
    for rows in subsets:
        chosen = replace(target, counts=target.design.counts(rows), class_weight=None)
        kept = np.flatnonzero(replace(chosen, weights=None).masses)
        if len(kept) < 2:
            raise ValueError(f"each subset must hold at least two classes, got {len(kept)}")
        own = replace(chosen, classes=target.classes[kept])
        columns.append(Column(None, classes[kept]))
        targets.append(weighed(own, class_weight, classes[kept]))
    return columns, targets


def few_rows(target: PlacedTarget, subsets: Sequence[Any]) -> tuple[PlacedTarget, Sequence[Any]]:
    """The target on the rows that any sample has, where those are less than half of all."""
    design = target.design
    counts = [design.counts(rows) for rows in subsets]
    used = design.map_rows(lambda *each: sum(each[1:], each[0]), *counts)
    if 2 * design.count(used) >= design.n_rows:
        return target, counts
    labels = design.place(target.labels)
    there = [labels, *counts] if target.weights is None else [labels, *counts, target.weights]
    picked = design.take(design.positions(used), *there)
    kept, n = picked.rows, len(counts)
    weights = kept[n + 1] if target.weights is not None else None
    return replace(target, design=picked.design, labels=kept[0], weights=weights), kept[1 : n + 1]


def weights_there(design: Design, sample_weight: Any) -> Rows:
    """Sample weights beside the rows."""
    if isinstance(sample_weight, Rows):
        return sample_weight
    return placed_weights(design, sample_weight, design.zeros(1))


def named_there(design: Design, classes: Sequence[Any], codes: Sequence[Any]) -> Any:
    """The classes of every row, (n, T), as a tensor; as an array where some are text."""
    if any(c.dtype.kind in "OUS" for c in classes):  # a tensor holds no text
        here = [design.gather(design.place(k)) for k in codes]
        return np.stack([c[k] for c, k in zip(classes, here, strict=True)], axis=1)
    kind = np.result_type(*classes)

    def named(*given: Any) -> Any:
        pairs = zip(classes, given, strict=True)
        return np.stack([np.take_along_axis(c.astype(kind), k, 0) for c, k in pairs], axis=1)

    return design.beside(design.map_rows(named, *[design.place(k) for k in codes]))


def share_right(
    model: Any, design: Design, codes: Sequence[Any], Y: Any, sample_weight: Any
) -> float:
    """The share of rows whose labels are all predicted; missing labels do not count."""
    columns = _columns(design, Y, "y")
    model._check_targets(len(columns))
    right = weights = weights_there(design, sample_weight)
    for t, given in enumerate(columns):
        classes, labels = model.classes_[t], given
        if not isinstance(given, Rows):
            labels = _known(given, model.missing, classes)
            classes = np.arange(len(classes))
        target = PlacedTarget(design, labels, classes, model.missing)
        right = design.map_rows(
            lambda w, truth, found: w * ((truth == found) | (truth == MISSING)),
            right,
            target.codes if isinstance(given, Rows) else design.place(labels),
            design.place(codes[t]),
        )
    return design.total(right) / design.total(weights)


def _known(column: Any, missing: Any, classes: Any) -> Any:
    """Codes of labels of this machine; those never seen have one that is never predicted."""
    seen = np.isin(column, classes) | is_missing(column, missing)
    codes = np.full(len(column), len(classes), np.intp)
    codes[seen] = encode_more_columns(column[seen], missing, classes, "y")
    return codes


def _columns(design: Design, Y: Any, name: str) -> list[Any]:
    """The labels of each target: handles of tensors, arrays of all else."""
    if is_tensor(Y):
        if Y.ndim != 2:
            raise ValueError(
                f"{name} must have a column per target, got {Y.ndim} dimensions; "
                "SoftmaxRegression fits one target"
            )
        return [design.place(Y[:, t], f"{name}[{t}]") for t in range(Y.shape[1])]
    if isinstance(Y, list | tuple) and any(map(is_tensor, Y)):
        return [
            design.place(y, f"{name}[{t}]")
            if is_tensor(y)
            else columns_of([y], design.n_rows, name)[0]
            for t, y in enumerate(Y)
        ]
    return columns_of(Y, design.n_rows, name)


def _classes(design: Design, labels: Rows, missing: Any, name: str) -> Any:
    """The classes that a tensor holds; two at least."""
    if labels.columns is not None:
        raise ValueError(f"{name} must be a vector, got {labels.columns} columns")
    found = design.per_part(lambda y: np.unique(y[y == y]), labels)  # noqa: PLR0124  (no NaN)
    classes = np.unique(np.concatenate(found))
    classes = classes[~is_missing(classes, missing)]
    check_classification_targets(classes)
    if len(classes) < 2:
        there = "none" if not len(classes) else f"{classes.tolist()[0]!r} only"
        raise ValueError(f"{name} must have labels of at least two classes, got {there}")
    return classes
