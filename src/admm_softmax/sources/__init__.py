"""Rows in files, or from functions: what is read block by block, one file per kind."""

from __future__ import annotations

from typing import Any

from admm_softmax.sources.base import Source
from admm_softmax.sources.labels import is_label_file, read_labels
from admm_softmax.sources.opening import is_file_like, is_parquet, is_path, open_source
from admm_softmax.sources.parquet import ParquetRows
from admm_softmax.sources.row_blocks import RowBlocks

__all__ = ["RowBlocks", "Source", "is_file_like", "open_rows"]


def open_rows(X: Any, y: Any = None, columns: Any = None) -> tuple[Any, Any]:
    """Rows in files as `RowBlocks`, and labels in files as an array; all else as it is.

    `y` may be the name of a column where X stands for Parquet files. `columns` are those to
    read of such files, unless X is a `RowBlocks`, which has its own.
    """
    if not is_file_like(X):
        return X, read_labels(y) if is_path(y) else y
    label = y if isinstance(y, str) and not y.endswith(".npy") else None
    if not isinstance(X, RowBlocks):
        X = RowBlocks(open_source(X, key=columns if is_parquet(X) else None, label=label))
    if label is not None and isinstance(X.origin, ParquetRows):
        return X.without(label), X.origin.column(label)
    return X, read_labels(y, X) if is_label_file(y) else y
