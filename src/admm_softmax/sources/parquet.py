"""Rows of Parquet files, read by row group. The only module that imports pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from admm_softmax.sources.arrays import READ_BYTES
from admm_softmax.sources.base import Piece, Source, clipped


def parquet_parts(files: Any) -> list[tuple[str, Callable[[], Any]]]:
    """Name and opener of every file: of a list of paths, or of a `pyarrow.dataset`."""
    if isinstance(files, list | tuple):
        return [(str(path), partial(str, path)) for path in files]
    parts = []
    for fragment in files.get_fragments():
        if not hasattr(fragment, "row_groups"):
            raise TypeError(f"a dataset must be of Parquet files, got {type(fragment).__name__}")
        parts.append((fragment.path, fragment.open))
    return parts


class ParquetRows(Source):
    """The columns of numbers of Parquet files, or one column of vectors.

    files : paths, or a `pyarrow.dataset` of Parquet files
    columns : which columns; None is the only column of lists of one length, or without such
        a column all that hold numbers
    label : a column that is not among them
    """

    def __init__(
        self, files: Any, columns: str | Sequence[str] | None = None, label: str | None = None
    ) -> None:
        self.files = files
        self.parts = parquet_parts(files)
        if not self.parts:
            raise ValueError("a dataset must have files, got none")
        self.name = self.parts[0][0]
        first = _open(*self.parts[0])
        schema = first.schema_arrow
        self.columns = _columns(schema, columns, label, self.name)
        self.types = [schema.field(name).type for name in self.columns]
        self.is_list = _is_list(self.types[0])
        #: Names of the features, where each has a column of its own.
        self.feature_names = None if self.is_list else list(self.columns)
        groups = [self._row_groups(i, *part) for i, part in enumerate(self.parts)]
        #: The file and the number within it of every row group, and where each begins.
        self.groups = [(i, g) for i, sizes in enumerate(groups) for g in range(len(sizes))]
        sizes = [size for of_file in groups for size in of_file]
        self.starts = np.array([0, *accumulate(sizes)])
        self.n_rows = int(self.starts[-1])
        if not self.n_rows:
            raise ValueError(f"{self.name} holds no rows")
        self.dtype, self.row_shape = self._facts()

    def _row_groups(self, number: int, name: str, opener: Callable[[], Any]) -> list[int]:
        with _open(name, opener) as file:
            schema, facts = file.schema_arrow, file.metadata
            for column, wanted in zip(self.columns, self.types, strict=True):
                if column not in schema.names:
                    raise ValueError(f"file {number}, {name}, has no column {column!r}")
                if schema.field(column).type != wanted:
                    raise ValueError(
                        f"file {number}, {name}, has {schema.field(column).type} in column "
                        f"{column!r}, {self.name} has {wanted}"
                    )
            return [facts.row_group(g).num_rows for g in range(facts.num_row_groups)]

    def _facts(self) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Type and shape of a row, from the first row."""
        _, rows = next(self._pieces([0], 1))
        return rows.dtype, rows.shape[1:]

    def read(self, wanted: Sequence[slice]) -> Iterator[Piece]:
        """The rows of the row groups that the slices touch."""
        touched = [
            np.arange(
                np.searchsorted(self.starts, part.start, side="right") - 1,
                np.searchsorted(self.starts, part.stop, side="left"),
            )
            for part in wanted
        ]
        row_bytes = self.n_features * self.dtype.itemsize
        groups: Any = np.unique(np.concatenate(touched)) if touched else []
        return clipped(self._pieces(groups, max(1, READ_BYTES // row_bytes)), wanted)

    def _pieces(self, groups: Any, batch_rows: int) -> Iterator[Piece]:
        file, opened = None, -1
        for group in groups:
            i, g = self.groups[int(group)]
            if i != opened:
                file, opened = _open(*self.parts[i]), i
            first = int(self.starts[group])
            assert file is not None
            for batch in file.iter_batches(batch_rows, row_groups=[g], columns=self.columns):
                yield first, self._matrix(batch, first)
                first += batch.num_rows

    def _matrix(self, batch: Any, first: int) -> Any:
        for name in self.columns:
            if batch.column(name).null_count:
                raise ValueError(f"{self.describe(first)} or after: column {name!r} has nulls")
        if self.is_list:
            return self._vectors(batch.column(self.columns[0]), first)
        arrays = [batch.column(name).to_numpy(zero_copy_only=False) for name in self.columns]
        out = np.empty((batch.num_rows, len(arrays)), np.result_type(*arrays))
        for j, array in enumerate(arrays):
            out[:, j] = array
        return out

    def _vectors(self, column: Any, first: int) -> Any:
        flat = column.flatten()
        width, rest = divmod(len(flat), len(column))
        lengths = getattr(column, "value_lengths", None)
        equal = lengths is None or (np.asarray(lengths()) == width).all()
        known = getattr(self, "row_shape", (width,))
        if rest or not equal or flat.null_count or known != (width,):
            raise ValueError(
                f"{self.describe(first)} or after: the vectors of column {self.columns[0]!r} must "
                f"all have {known[0]} entries"
            )
        return flat.to_numpy(zero_copy_only=False).reshape(len(column), width)

    def without(self, column: str) -> ParquetRows:
        """The same rows without a column, if they have it."""
        if column not in self.columns:
            return self
        return ParquetRows(self.files, [name for name in self.columns if name != column])

    def column(self, name: str) -> Any:
        """One column of all files as an array: labels."""
        found = []
        for path, opener in self.parts:
            with _open(path, opener) as file:
                names = file.schema_arrow.names
                if name not in names:
                    raise ValueError(f"{path} has no column {name!r}; it has {names[:10]}")
                column = file.read(columns=[name]).column(0)
            if column.null_count:
                raise ValueError(f"column {name!r} of {path} has {column.null_count} nulls")
            found.append(column.to_numpy())
        return np.concatenate(found)

    def describe(self, row: int) -> str:
        """The file and the row within it."""
        group = int(np.searchsorted(self.starts, row, side="right")) - 1
        i, g = self.groups[group]
        return f"row {row - int(self.starts[group - g])} of {self.parts[i][0]}"


def _open(name: str, opener: Callable[[], Any]) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            'Parquet files need pyarrow: pip install "admm-softmax[files]"'
        ) from error
    try:
        return pq.ParquetFile(opener())
    except pa.ArrowInvalid as error:
        raise ValueError(f"{name} is not a Parquet file: {error}") from error


def _columns(
    schema: Any, columns: str | Sequence[str] | None, label: str | None, name: str
) -> list[str]:
    """The columns to read: those named, the only one of lists, or all of numbers."""
    if columns is not None:
        chosen = [columns] if isinstance(columns, str) else list(columns)
    else:
        others = [field for field in schema if field.name != label]
        lists = [field.name for field in others if _is_list(field.type)]
        chosen = lists or [field.name for field in others]
        if len(lists) > 1:
            raise ValueError(f"{name} has the columns of lists {lists}: name one by key=")
    missing = [column for column in chosen if column not in schema.names]
    if missing:
        raise ValueError(f"{name} has no column {missing[0]!r}; it has {schema.names[:10]}")
    if not chosen:
        raise ValueError(f"{name} has no columns of numbers; it has {schema.names[:10]}")
    for column in chosen:
        kind = schema.field(column).type
        if not _is_number(kind.value_type if _is_list(kind) else kind):
            raise TypeError(
                f"column {column!r} of {name} must hold numbers, got {kind}: name the columns by "
                "key=, or the labels by y="
            )
    return chosen


def _is_list(kind: Any) -> bool:
    return str(kind).startswith(("list<", "large_list<", "fixed_size_list<"))


def _is_number(kind: Any) -> bool:
    return str(kind).startswith(("int", "uint", "halffloat", "float", "double", "bool"))
