"""Rows of anything that is sliced like an array: NumPy, h5py and zarr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from admm_softmax.sources.base import Piece, Source, clipped

#: Bytes that are read at a time, at least where chunks of the data allow.
READ_BYTES = 4 << 20


class ArrayRows(Source):
    """The rows of an array, or of a data set of h5py or zarr, by slices.

    Chunked data sets are read by whole chunks, so that none is unpacked twice in a pass.
    """

    def __init__(self, array: Any, name: str | None = None) -> None:
        self.array = array
        self.name = name or _name_of(array)
        if len(array.shape) < 1:
            raise ValueError(f"{self.name} must hold rows, got a single number")
        self.n_rows, *rest = (int(size) for size in array.shape)
        self.row_shape = tuple(rest)
        self.dtype = np.dtype(array.dtype)
        self.in_memory = isinstance(array, np.ndarray)

    def read(self, wanted: Sequence[slice]) -> Iterator[Piece]:
        """Views of an array in memory; copies of other rows."""
        if self.in_memory:
            return ((part.start, self.array[part]) for part in wanted)
        return clipped(self._chunks(wanted), wanted)

    def _chunks(self, wanted: Sequence[slice]) -> Iterator[Piece]:
        size = self._chunk_rows()
        done = 0
        for part in wanted:
            for start in range(max(done, part.start // size * size), part.stop, size):
                done = min(start + size, self.n_rows)
                yield start, self._rows(start, done)

    def _rows(self, start: int, end: int) -> Any:
        try:
            return np.asarray(self.array[start:end])
        except (OSError, MemoryError):
            raise
        except Exception as error:  # unpacking a damaged chunk can raise anything
            raise ValueError(f"{self.name} is damaged from row {start} on: {error!r}") from error

    def _chunk_rows(self) -> int:
        chunks = getattr(self.array, "chunks", None)
        own = int(chunks[0]) if chunks else 1
        row_bytes = max(1, self.n_features * self.dtype.itemsize)
        return own * max(1, READ_BYTES // (own * row_bytes))


def _name_of(array: Any) -> str:
    if isinstance(array, np.ndarray):
        return "X"
    file = getattr(getattr(array, "file", None), "filename", None)  # h5py
    place = getattr(array, "name", None) or type(array).__name__
    return f"{file}:{place}" if file else f"{type(array).__module__.split('.')[0]} {place}"
