"""Rows from any iterable of blocks that can be started again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from admm_softmax.sources.base import Piece, Source, clipped


class IteratedRows(Source):
    """Blocks of rows from a function that returns a new iterator at every call.

    Without `n_rows` one pass counts them. A read that begins where another has ended goes on
    with its iterator, so that reading a part at a time costs one pass.
    """

    can_skip = False

    def __init__(
        self,
        factory: Callable[[], Iterable[Any]],
        n_rows: int | None = None,
        n_features: int | None = None,
        name: str = "the blocks",
    ) -> None:
        self.factory, self.name = factory, name
        first = np.asarray(next(iter(factory()), np.zeros((0, n_features or 0))))
        if first.ndim < 2:
            raise ValueError(f"{name} must be arrays of rows, got shape {first.shape} in block 0")
        self.row_shape, self.dtype = tuple(first.shape[1:]), first.dtype
        if n_features is not None and n_features != self.n_features:
            raise ValueError(
                f"{name} have {self.n_features} columns in block 0, n_features is {n_features}"
            )
        self.n_rows = sum(len(block) for block in factory()) if n_rows is None else n_rows
        self._paused: _Cursor | None = None

    def read(self, wanted: Sequence[slice]) -> Iterator[Piece]:
        """All blocks up to the last row wanted, the rows that are not wanted left out."""
        # Taken, so that no other read uses it at the same time.
        cursor, self._paused = self._paused, None
        if cursor is None or (wanted and wanted[0].start < cursor.first):
            cursor = _Cursor(self._blocks())
        try:
            yield from clipped(cursor.pieces(), wanted)
        except GeneratorExit:  # the reader has what it wanted
            self._paused = cursor if wanted[-1].stop < self.n_rows else None
            raise

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_paused": None}

    def _blocks(self) -> Iterator[Piece]:
        first = 0
        for b, block in enumerate(self.factory()):
            rows = np.asarray(block)
            if rows.shape[1:] != self.row_shape:
                raise ValueError(
                    f"block {b} of {self.name} has rows of shape {rows.shape[1:]}, block 0 has "
                    f"{self.row_shape}"
                )
            if first + len(rows) > self.n_rows:
                raise ValueError(f"{self.name} hold more rows than n_rows = {self.n_rows}")
            yield first, rows
            first += len(rows)
        if first < self.n_rows:
            raise ValueError(f"{self.name} hold {first} rows, n_rows is {self.n_rows}")


class _Cursor:
    """An iterator over blocks, and the last block that came from it."""

    def __init__(self, blocks: Iterator[Piece]) -> None:
        self.blocks = blocks
        self.first, self.block = 0, np.zeros(0)

    def pieces(self) -> Iterator[Piece]:
        """The last block again, of which rows may be left, and those after it."""
        if len(self.block):
            yield self.first, self.block
        for piece in self.blocks:
            self.first, self.block = piece
            yield piece


class PickedRows(Source):
    """Some rows of another source, by rising positions."""

    def __init__(self, source: Source, indices: Any) -> None:
        self.source, self.indices = source, np.asarray(indices)
        self.name, self.n_rows = source.name, len(self.indices)
        self.row_shape, self.dtype = source.row_shape, source.dtype
        self.can_skip = source.can_skip

    def read(self, wanted: Sequence[slice]) -> Iterator[Piece]:
        """The rows picked from what lies between the first and the last of each slice."""
        spans = [
            slice(int(self.indices[part.start]), int(self.indices[part.stop - 1]) + 1)
            for part in wanted
        ]
        for first, rows in self.source.read(spans):
            start, stop = np.searchsorted(self.indices, [first, first + len(rows)])
            if stop > start:
                yield int(start), rows[self.indices[start:stop] - first]

    def describe(self, row: int) -> str:
        """The row as the other source describes it."""
        return self.source.describe(int(self.indices[row]))
