"""`blocks`: a data set a few rows at a time, for predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from admm_softmax.reading.arrays import array_in, read_whole
from admm_softmax.reading.labels import column_labels, labels_in
from admm_softmax.reading.request import (
    STREAMED,
    TABLES,
    Request,
    files_of,
    kind_of,
    label_shards,
)
from admm_softmax.reading.tables import frames, is_vectors, require, require_numbers
from admm_softmax.sources import RowBlocks
from admm_softmax.sources.base import is_bfloat16
from admm_softmax.sources.labels import read_labels
from admm_softmax.sources.row_blocks import whole

#: Numbers of a block.
BLOCK_ENTRIES = 4_000_000


class Block(NamedTuple):
    """Some rows: the number of the first, the rows, their ids, and their labels if any."""

    first: int
    X: Any
    ids: Any
    y: Any


def blocks(
    request: Request,
    *,
    columns: Sequence[str] | None,
    n_features: int,
    known: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> Iterator[Block]:
    """The rows of a data set in order, with the columns that a model takes.

    columns : the names that the model takes; None if it knows columns by number only
    n_features : how many columns it takes
    known : other columns of its training data, which are left out without a word
    texts : columns that hold text
    """
    kind = kind_of(request)
    if kind in TABLES:
        return _of_table(request, columns, n_features, known, texts)
    if kind in STREAMED:
        rows = RowBlocks(files_of(request.path), key=request.key)
        _require_width(rows.n_features, n_features, request.name)
        return _of_rows(rows, _labels(request, rows))
    X, y = read_whole(request, kind, n_features)
    _require_width(X.shape[1], n_features, request.name)
    return _of_array(X, labels_in(request.labels) if request.labels else y)


def _of_table(
    request: Request,
    columns: Sequence[str] | None,
    n_features: int,
    known: Sequence[str],
    texts: Sequence[str],
) -> Iterator[Block]:
    first = 0
    labels = None if request.labels is None else labels_in(request.labels, request.target)
    for frame in frames(request):
        if not len(frame):  # an empty shard
            continue
        frame.columns = [str(name) for name in frame.columns]
        if first == 0:
            _require_columns(request, list(frame.columns), columns, known)
        names = columns or [n for n in frame.columns if n not in (*request.special, *known)]
        X = frame[list(names)]
        if len(names) == 1 and n_features > 1 and is_vectors(X[names[0]]):
            X = np.stack(list(X[names[0]]))
        else:
            require_numbers(X, request.name, first, texts)
            X = X if columns is not None else X.to_numpy()
            _require_width(X.shape[1], n_features, request.name)
        ids = None if request.ids is None else frame[request.ids].to_numpy()
        y = None if labels is None else labels[first : first + len(frame)]
        if request.target and labels is None:
            y = column_labels(frame, request.target, request.name, first)
        yield Block(first, X, ids, y)
        first += len(frame)
    if first == 0:
        raise ValueError(f"{request.name} has no rows")


def _require_columns(
    request: Request, names: list[str], columns: Sequence[str] | None, known: Sequence[str]
) -> None:
    """Refuse a table that lacks a column, or has one that nobody knows what to do with."""
    own = replace(request, target=() if request.labels else request.target).special
    require(names, own, request.name, "named by --target, --id, --weights or --drop")
    if columns is None:
        return
    require(names, columns, request.name, "which the model was fitted to")
    unknown = [n for n in names if n not in columns and n not in request.special + tuple(known)]
    if unknown:
        raise ValueError(
            f"{request.name} has the column {unknown[0]!r}, which the model does not know"
            f"{f' (and {len(unknown) - 1} more)' if len(unknown) > 1 else ''}: leave it out by "
            f"--drop {','.join(unknown[:3])}, or name row ids by --id"
        )


def _labels(request: Request, rows: RowBlocks) -> Any:
    if request.labels is not None:
        y = labels_in(request.labels)
    elif Path(request.path).is_dir() and label_shards(Path(request.path)):
        y = read_labels(label_shards(Path(request.path)), rows)
    elif request.target:
        y = array_in(files_of(request.path)[0], request.target[0])
    else:
        return None
    if len(y) != rows.n_rows:
        raise ValueError(f"there are {len(y)} labels for {rows.n_rows} rows of {request.name}")
    return y


def _of_rows(rows: RowBlocks, y: Any) -> Iterator[Block]:
    step = max(1, BLOCK_ENTRIES // max(1, rows.n_features))
    parts = [slice(i, min(i + step, rows.n_rows)) for i in range(0, rows.n_rows, step)]
    pieces = rows.read(parts)
    for part in parts:
        X = _widened(whole(pieces, part, rows), rows)
        _require_finite(X, part.start, rows)
        yield Block(part.start, X, None, None if y is None else y[part])


def _widened(X: Any, rows: RowBlocks) -> Any:
    """A copy that can be computed with: the buffer is overwritten by the next piece."""
    if is_bfloat16(X.dtype):
        return (X.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.array(X, dtype=rows.working_dtype)


def _require_finite(X: Any, first: int, rows: RowBlocks) -> None:
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(bad):
        raise ValueError(f"{rows.describe(first + int(bad[0]))} holds NaN or infinity")


def _of_array(X: Any, y: Any) -> Iterator[Block]:
    step = max(1, BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        part = slice(start, min(start + step, X.shape[0]))
        yield Block(start, X[part], None, None if y is None else y[part])


def _require_width(found: int, wanted: int, name: str) -> None:
    if found != wanted:
        raise ValueError(f"{name} has {found} columns, and the model was fitted to {wanted}")
