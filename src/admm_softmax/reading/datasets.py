"""`read`: all rows of a data set, for fits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from admm_softmax.reading.arrays import array_in, read_whole
from admm_softmax.reading.labels import column_labels, labels_in, weights_in
from admm_softmax.reading.request import (
    PARQUET,
    STREAMED,
    TABLES,
    Request,
    digests,
    files_of,
    is_file,
    kind_of,
    label_shards,
)
from admm_softmax.reading.tables import (
    first_row,
    is_text,
    is_vectors,
    names_of,
    require,
    require_numbers,
    whole,
)
from admm_softmax.sources import RowBlocks
from admm_softmax.sources.labels import read_labels
from admm_softmax.sources.opening import open_source


@dataclass(frozen=True)
class Dataset:
    """Rows and what goes with them.

    X : a frame, an array, a sparse matrix, or `RowBlocks` where it stays in its files
    y : labels, or soft labels; None without any
    texts : columns of X that hold text
    """

    name: str
    X: Any
    y: Any = None
    weights: Any = None
    texts: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        if isinstance(self.X, RowBlocks):
            return self.X.n_rows, self.X.n_features
        return int(self.X.shape[0]), int(self.X.shape[1])


def read(request: Request) -> Dataset:
    """The rows, labels and weights of a data set."""
    kind = kind_of(request)
    if kind in TABLES:
        found = _table(request, kind)
    elif kind in STREAMED:
        found = _streamed(request)
    else:
        X, y = read_whole(request, kind)
        found = Dataset(request.name, X, y)
    y, weights = found.y, found.weights
    if request.labels is not None:
        y = labels_in(request.labels, request.target)
    if request.weights is not None and is_file(request.weights):
        weights = weights_in(request.weights)
    _require_same_length(found, y, request.labels or "the labels")
    _require_same_length(found, weights, request.weights or "the weights")
    facts = {
        "path": request.name,
        "n_rows": found.shape[0],
        "n_columns": found.shape[1],
        "target": list(request.target),
        "not_features": list(request.special),
        "files": digests(request),
    }
    return Dataset(found.name, found.X, y, weights, found.texts, facts)


def _require_same_length(found: Dataset, given: Any, name: str) -> None:
    if given is not None and len(given) != found.shape[0]:
        raise ValueError(
            f"{name} has {len(given)} entries for {found.shape[0]} rows of {found.name}"
        )


def _table(request: Request, kind: str) -> Dataset:
    _require_special(request)
    if kind in PARQUET and not request.encode:
        return _parquet(request)
    frame = whole(request)
    frame.columns = [str(name) for name in frame.columns]
    X = frame.drop(columns=list(request.special))
    if request.key is not None:
        require(list(X.columns), [request.key], request.name, "named by --key")
        X = X[[request.key]]
    y = None
    if request.target and request.labels is None:
        y = column_labels(frame, request.target, request.name)
    texts = tuple(name for name in X.columns if is_text(X[name])) if request.encode else ()
    require_numbers(X, request.name, 0, texts)
    weights = _weight_column(frame, request)
    return Dataset(request.name, X, y, weights, texts)


def _parquet(request: Request) -> Dataset:
    """Rows of Parquet stay in their files, unless a column must be encoded."""
    import numpy as np  # noqa: PLC0415

    files = files_of(request.path)
    names = [name for name in names_of(request) if name not in request.special]
    first = first_row(request)
    vectors = [name for name in names if is_vectors(first[name])]
    if not vectors and request.key is None:
        require_numbers(first[names], request.name, 0)
    columns = request.key or (vectors[0] if len(vectors) == 1 else names)
    rows = RowBlocks(files, key=columns)
    source: Any = open_source(files, key=columns)
    y = None
    if request.target and request.labels is None:
        parts = [source.column(name) for name in request.target]
        y = np.column_stack(parts) if len(parts) > 1 else parts[0]
        y = y.astype(str) if y.dtype.kind == "O" else y
    weights = None
    if request.weights is not None and not is_file(request.weights):
        weights = source.column(request.weights)
    return Dataset(request.name, rows, y, weights)


def _require_special(request: Request) -> None:
    if request.special and not request.is_stdin:
        why = "named by --target, --id, --weights or --drop"
        own = [name for name in request.special if name not in request.target]
        wanted = [*own, *(request.target if request.labels is None else ())]
        require(names_of(request), wanted, request.name, why)


def _weight_column(frame: Any, request: Request) -> Any:
    if request.weights is None or is_file(request.weights):
        return None
    return frame[request.weights].to_numpy()


def _streamed(request: Request) -> Dataset:
    files = files_of(request.path)
    rows = RowBlocks(files, key=request.key)
    y = None
    folder = Path(request.path)
    if request.labels is None and folder.is_dir() and label_shards(folder):
        y = read_labels(label_shards(folder), rows)
    elif request.labels is None and request.target:
        if len(files) > 1 or files[0].suffix not in (".safetensors", ".h5", ".hdf5"):
            raise ValueError(
                f"{request.name} has no columns, so that --target {request.target[0]} cannot be "
                "found: give the labels by --labels FILE"
            )
        y = array_in(files[0], request.target[0])
    return Dataset(request.name, rows, y)
