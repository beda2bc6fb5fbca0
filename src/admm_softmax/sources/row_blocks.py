"""`RowBlocks`: rows in files or from functions, with what happens to them on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax.sources.base import Piece, Source, working_dtype
from admm_softmax.sources.iterators import PickedRows
from admm_softmax.sources.memory import memory_bytes
from admm_softmax.sources.opening import open_source
from admm_softmax.sources.parquet import ParquetRows


class RowBlocks(Source):
    """Rows that need not fit into memory, read block by block in every pass.

    Estimators, `softmax_path` and `Problem.of` take it as X. They also take the first argument
    alone; `RowBlocks` is for the settings.

    Parameters
    ----------
    rows : what holds the rows
        - a path or a pattern (`"x-*.npy"`), or a list of them: `.npy`, `.parquet`,
          `.safetensors`, `.h5` and `.zarr`; several files are shards, one after the other;
        - an array, also `np.memmap`; a data set of h5py or zarr; a `pyarrow.dataset`;
        - a function that returns an iterator over blocks of rows, or any iterable of blocks
          that can be iterated again and again;
        - another `RowBlocks`.
    n_rows, n_features : int, optional
        Of blocks from a function or an iterable: how many rows and columns they have
        together. Without `n_rows` one pass counts them.
    transform : function or fitted transformer, optional
        Applied to every block, so that its result is never stored as a whole. It must work row
        by row: the result for a row may not depend on the other rows of its block.
    key : str or list of str, optional
        Which tensor or data set of a file, or which columns of Parquet files. Without it, the
        only one that fits.
    dtype : float32 or float64, optional
        What to compute in. None is float32 where that holds every entry (float16, bfloat16,
        integers of 16 bits), otherwise float64.
    memory_limit : int or str, optional
        Bytes, or for example "4GB", for blocks, sums and row state together. What the blocks in
        flight leave is a cache of blocks. None is half of the memory that is free.
    state_dtype : float64 or float32
        What row state (ADMM's Z, Newton-CG's P) is kept in.
    state_dir : path, optional
        A folder for row state, in files that vanish with it. None keeps it in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from admm_softmax import RowBlocks, SoftmaxRegression
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((60, 4)), np.arange(60) % 3
    >>> rows = RowBlocks(lambda: (X[i : i + 10] for i in range(0, 60, 10)), n_rows=60)
    >>> SoftmaxRegression(alpha=0.1).fit(rows, y).predict(rows).shape
    (60,)
    """

    def __init__(
        self,
        rows: Any,
        *,
        n_rows: int | None = None,
        n_features: int | None = None,
        transform: Any = None,
        key: str | Sequence[str] | None = None,
        dtype: Any = None,
        memory_limit: int | str | None = None,
        state_dtype: Any = np.float64,
        state_dir: str | Path | None = None,
    ) -> None:
        columns = n_features if transform is None else None
        self.source = open_source(rows, key=key, n_rows=n_rows, n_features=columns)
        self.name, self.n_rows = self.source.name, self.source.n_rows
        if n_rows not in (None, self.n_rows):
            raise ValueError(f"{self.name} has {self.n_rows} rows, n_rows is {n_rows}")
        if self.n_rows < 1:
            raise ValueError(f"{self.name} holds no rows")
        self.can_skip = self.source.can_skip
        self.transform = transform
        self._apply: Callable[[Any], Any] | None = None
        self.row_shape, self.dtype = self.source.row_shape, self.source.dtype
        self.lasting = self.source.lasting or transform is not None
        self.in_memory = self.source.in_memory and transform is None
        self.fills = self.source.fills and transform is None
        if transform is not None:
            self._learn()
        if len(self.row_shape) != 1:
            raise ValueError(
                f"{self.name} must be two-dimensional, got shape {(self.n_rows, *self.row_shape)}"
            )
        if n_features not in (None, self.n_features):
            raise ValueError(
                f"{self.name} has {self.n_features} columns, n_features is {n_features}"
            )
        self.working_dtype = _checked_dtype("dtype", dtype or working_dtype(self.dtype, self.name))
        self.memory_limit = memory_limit
        memory_bytes(memory_limit)
        self.state_dtype = _checked_dtype("state_dtype", state_dtype)
        self.state_dir = state_dir

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns, where files have them."""
        names: list[str] | None = getattr(self.source, "feature_names", None)
        return None if self.transform is not None else names

    def read(self, wanted: Sequence[slice]) -> Iterator[Piece]:
        """The rows of some slices, transformed slice by slice if there is a transform."""
        if self._apply is None:
            return self.source.read(wanted)
        return self._transformed(wanted)

    def mapped(self, rows: slice) -> Any:
        """The rows of a slice where the page cache has them, else None."""
        return self.source.mapped(rows)

    def fill(self, rows: slice, out: Any) -> None:
        """Read the rows of a slice, as they are stored, into an array."""
        self.source.fill(rows, out)

    def picked(self, indices: Any) -> RowBlocks:
        """Some of the rows, by rising positions, with the same settings."""
        other = copy(self)
        other.source = PickedRows(self.source, indices)
        other.n_rows, other.can_skip = other.source.n_rows, other.source.can_skip
        other.in_memory = other.fills = False
        return other

    @property
    def origin(self) -> Source:
        """What the rows come from, beneath all transforms."""
        return self.source.origin if isinstance(self.source, RowBlocks) else self.source

    def without(self, column: str) -> RowBlocks:
        """The same rows without the column of the labels, if that is one of theirs."""
        inner = self.source
        if isinstance(inner, ParquetRows):
            reduced: Source = inner.without(column)
        else:
            reduced = inner.without(column) if isinstance(inner, RowBlocks) else inner
        if reduced is inner:
            return self
        other = copy(self)
        other.source, other.row_shape = reduced, reduced.row_shape
        if other.transform is not None:
            other._learn()
        return other

    def describe(self, row: int) -> str:
        """Where a row is, for errors."""
        return self.source.describe(row)

    def _transformed(self, wanted: Sequence[slice]) -> Iterator[Piece]:
        pieces = self.source.read(wanted)
        for part in wanted:
            yield part.start, self._of_block(whole(pieces, part, self.source), part.start)

    def _learn(self) -> None:
        """Find width and type of what the transform returns, from the first row."""
        first = whole(self.source.read([slice(0, 1)]), slice(0, 1), self.source)
        self._apply = _as_function(self.transform, first)
        found = self._of_block(first, 0)
        self.row_shape, self.dtype = found.shape[1:], found.dtype

    def _of_block(self, rows: Any, start: int) -> Any:
        assert self._apply is not None
        found = self._apply(rows)
        if hasattr(found, "toarray"):
            raise TypeError("transform must return dense rows, got a sparse matrix")
        found = np.asarray(found)
        if found.ndim != 2 or len(found) != len(rows):
            raise ValueError(
                f"transform must return one row per row, got shape {found.shape} for {len(rows)} "
                f"rows from {self.describe(start)} on"
            )
        return found


def whole(pieces: Iterator[Piece], part: slice, source: Source) -> Any:
    """The rows of one slice as one array, from the pieces that come next."""
    first, rows = next(pieces)
    count = part.stop - part.start
    if len(rows) == count:
        return rows
    out = np.empty((count, *source.row_shape), rows.dtype)
    out[: len(rows)] = rows
    done = len(rows)
    while done < count:
        first, rows = next(pieces)
        out[first - part.start : first - part.start + len(rows)] = rows
        done += len(rows)
    return out


def _as_function(transform: Any, first: Any) -> Callable[[Any], Any]:
    """What to call on a block; a transformer that learns only the shape of a row is fitted."""
    if not hasattr(transform, "transform"):
        if not callable(transform):
            raise TypeError(f"transform must be a function or a transformer, got {transform!r}")
        function: Callable[[Any], Any] = transform
        return function
    fitted = any(name.endswith("_") and not name.startswith("_") for name in vars(transform))
    if not fitted and getattr(transform, "learns_only_shape", False):
        transform = copy(transform).fit(first)
    bound: Callable[[Any], Any] = transform.transform
    return bound


def _checked_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    found: np.dtype[Any] = np.dtype(dtype)
    if found not in (np.float32, np.float64):
        raise ValueError(f"{name} must be float32 or float64, got {found}")
    return found
