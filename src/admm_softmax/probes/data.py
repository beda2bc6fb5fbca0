"""Rows and labels of a probe: arrays, tensors and files, normalised where asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from admm_softmax.design import Design, PartitionedDesign, as_design, is_tensor, joined
from admm_softmax.estimators.distributed_labels import encode_more_placed
from admm_softmax.estimators.inputs import opened
from admm_softmax.estimators.labels import as_array, unseen_labels
from admm_softmax.exchange.torch import read as read_tensors
from admm_softmax.reading.arrays import array_in
from admm_softmax.sources import RowBlocks
from admm_softmax.sources.opening import open_source

Normalize = Literal["none", "l2", "standardize"]
#: Names of features and labels in a file that holds both.
FEATURES, LABELS = ("X", "x", "features", "embeddings"), ("y", "labels", "targets")
#: Files that are read block by block.
BLOCKWISE = (".safetensors", ".h5", ".hdf5")


class Part(NamedTuple):
    """Rows as a design with an intercept, and their labels.

    Where rows stay on a device the labels may be a tensor there.
    """

    design: Design
    labels: Any

    def at(self, rows: Any) -> Part:
        """Some of the rows, by rising positions."""
        return Part(self.design.picked(rows), self.labels[rows])

    def with_more(self, other: Part) -> Part:
        """The rows of both; those of a device in one copy there."""
        labels = joined(self.labels, other.labels)
        if self.design.rows_stay:
            there: Any = self.design
            return Part(there.with_rows(other.design), labels)
        return Part(PartitionedDesign([self.design, other.design]), labels)

    def of_labels(self, function: Callable[[Any], Any]) -> Any:
        """A small result of a function of the labels, computed where they are."""
        if not is_tensor(self.labels):
            return function(self.labels)
        (found,) = self.design.per_part(function, self.design.place(self.labels))
        return found

    def codes(self, classes: Any, name: str) -> Any:
        """The labels as positions among classes: an array, or a handle of rows that stay."""
        if self.design.rows_stay:
            return encode_more_placed(self.design, self.labels, classes, name)
        unseen = np.setdiff1d(self.labels, classes)
        if len(unseen):
            raise ValueError(unseen_labels(name, unseen, classes))
        return np.searchsorted(classes, self.labels)

    def measured(self, function: Any, codes: Any, P: Any) -> Any:
        """A small result of a function of codes and probabilities, computed where they are."""
        if not self.design.rows_stay:
            return function(codes, P)
        handles = self.design.place(codes), self.design.place(P)
        (found,) = self.design.per_part(function, *handles)
        return found


def part_of(given: Any, normalize: Normalize, name: str) -> Part:
    """Rows and labels from (X, y), or from one file with both."""
    if isinstance(given, str | PathLike):
        given = _both(Path(fspath(given)))
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(f"{name} must be (X, y) or a file with both, got {type(given).__name__}")
    X, y = opened(_loaded(given[0]), _loaded(given[1]), True)
    design = as_design(X, intercept=True)
    labels = y if design.rows_stay and is_tensor(y) else as_array(y, f"the labels of {name}")
    is_matrix = labels.ndim == 2 and labels.shape[1] > 1
    if labels.shape[:1] != (design.n_rows,) or not (labels.ndim == 1 or is_matrix):
        raise ValueError(
            f"{name} must have one label for each of {design.n_rows} rows, or a row of an "
            f"indicator matrix, got {tuple(labels.shape)}"
        )
    return Part(design.transformed(_unit) if normalize == "l2" else design, labels)


def _loaded(given: Any) -> Any:
    """The only array of a `.pt` or `.npz` file; all else as it is."""
    if not isinstance(given, str | PathLike):
        return given
    path = Path(fspath(given))
    if path.suffix == ".npz":
        return _only(dict(np.load(path)), path)
    if path.suffix in (".pt", ".pth"):
        found = read_tensors(path)
        return _only(found, path) if isinstance(found, dict) else found
    return given


def _only(found: dict[str, Any], path: Path) -> Any:
    if len(found) != 1:
        raise ValueError(f"{path} must hold one array, got {sorted(found)}")
    return next(iter(found.values()))


def _both(path: Path) -> tuple[Any, Any]:
    """Features and labels of one file, by their names."""
    if path.suffix in BLOCKWISE:
        return RowBlocks(path, key=_present(path, FEATURES)), array_in(path, _present(path, LABELS))
    if path.suffix == ".npz":
        found: Any = dict(np.load(path))
    elif path.suffix in (".pt", ".pth"):
        found = read_tensors(path)
    else:
        kinds = ", ".join((".npz", ".pt", *BLOCKWISE))
        raise ValueError(f"{path} must be one of {kinds} to hold features and labels")
    if isinstance(found, tuple | list) and len(found) == 2:
        return found[0], found[1]
    names = [[n for n in wanted if n in found] for wanted in (FEATURES, LABELS)]
    if not all(names):
        raise ValueError(
            f"{path} must hold one of {FEATURES} and one of {LABELS}, got {sorted(found)}"
        )
    return found[names[0][0]], found[names[1][0]]


def _present(path: Path, wanted: tuple[str, ...]) -> str:
    """The first of some names that an array of the file has."""
    for name in wanted:
        with suppress(ValueError):
            open_source(path, key=name)
            return name
    raise ValueError(f"{path} must hold one of {wanted}, got none of them")


def _unit(X: Any) -> Any:
    """Rows divided by their lengths; rows of zeros stay."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).reshape(-1)
        lengths = np.sqrt(np.where(squares > 0, squares, 1.0))
        return sp.csr_array(sp.diags_array(1.0 / lengths).astype(X.dtype) @ X)
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)
    lengths = np.sqrt((X * X).sum(axis=1, keepdims=True))
    return X / np.where(lengths > 0, lengths, 1.0)
