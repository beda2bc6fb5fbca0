"""Rows of several sources, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np

from admm_softmax.sources.base import Piece, Source


class Shards(Source):
    """The rows of shard 0, then of shard 1, … All have the same columns and type."""

    def __init__(self, shards: Sequence[Source]) -> None:
        #: All of them; `shards` are those that hold rows.
        self.given = list(shards)
        self.shards = [shard for shard in shards if shard.n_rows]
        if not self.shards:
            raise ValueError(f"{shards[0].name}: the shards hold no rows")
        first = self.shards[0]
        for i, shard in enumerate(shards):
            if shard.row_shape != first.row_shape:
                raise ValueError(
                    f"shard {i}, {shard.name}, has rows of shape {shard.row_shape}, "
                    f"{first.name} has {first.row_shape}"
                )
            if shard.dtype != first.dtype:
                raise ValueError(
                    f"shard {i}, {shard.name}, holds {shard.dtype}, {first.name} holds "
                    f"{first.dtype}"
                )
        self.name = f"{first.name} … {self.shards[-1].name}" if len(shards) > 1 else first.name
        self.starts = np.array([0, *accumulate(shard.n_rows for shard in self.shards)])
        self.n_rows = int(self.starts[-1])
        self.row_shape, self.dtype = first.row_shape, first.dtype
        self.can_skip = all(shard.can_skip for shard in self.shards)
        self.lasting = all(shard.lasting for shard in self.shards)
        self.fills = all(shard.fills for shard in self.shards)

    def read(self, wanted: Sequence[slice]) -> Iterator[Piece]:
        """The rows of the shards that the slices touch, others are not opened."""
        return chain.from_iterable(map(self._read_one, *self._by_shard(wanted)))

    def _by_shard(self, wanted: Sequence[slice]) -> tuple[list[int], list[list[slice]]]:
        """The numbers of the shards that are touched, and the slices of each."""
        slices: dict[int, list[slice]] = {}
        for part in wanted:
            s = int(np.searchsorted(self.starts, part.start, side="right")) - 1
            while s < len(self.shards) and self.starts[s] < part.stop:
                start, end = int(self.starts[s]), int(self.starts[s + 1])
                own = slice(max(part.start, start) - start, min(part.stop, end) - start)
                slices.setdefault(s, []).append(own)
                s += 1
        return list(slices), list(slices.values())

    def _read_one(self, number: int, wanted: list[slice]) -> Iterator[Piece]:
        start = int(self.starts[number])
        for first, rows in self.shards[number].read(wanted):
            yield start + first, rows

    def mapped(self, rows: slice) -> Any:
        """The rows of a slice that lies within one shard, if the page cache has them."""
        numbers, slices = self._by_shard([rows])
        return self.shards[numbers[0]].mapped(slices[0][0]) if len(numbers) == 1 else None

    def fill(self, rows: slice, out: Any) -> None:
        """Read the rows of a slice from the shards that it touches."""
        done = 0
        for number, (part,) in zip(*self._by_shard([rows]), strict=True):
            count = part.stop - part.start
            self.shards[number].fill(part, out[done : done + count])
            done += count

    def describe(self, row: int) -> str:
        """The row as the shard counts it."""
        s = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.shards[s].describe(row - int(self.starts[s]))
