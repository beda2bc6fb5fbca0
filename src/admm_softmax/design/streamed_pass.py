"""How a pass goes over blocks in memory: what workers see of them, and who runs what."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import ordered_map, thread_count
from admm_softmax.design.blocks import BLOCK_BYTES
from admm_softmax.design.reader import Block
from admm_softmax.design.workers import Worker

if TYPE_CHECKING:
    from admm_softmax.design.streamed import StreamedDesign


class Window:
    """The block in memory, as workers see it: rows have their numbers among all rows.

    Each thread sees a block of its own.
    """

    def __init__(self, design: StreamedDesign, half: str | None) -> None:
        self.half = half
        self.n_rows, self.n_features = design.n_rows, design.n_features
        self.intercept, self.dtype = design.intercept, design.dtype
        self.state_dtype, self.room = design.state_dtype, design.room
        self.buffers: dict[tuple[int, ...], Any] = design.buffers
        self._shown = local()

    def show(self, block: Block) -> None:
        """Let the calling thread see this block."""
        self._shown.X, self._shown.offset = block.X, block.rows.start

    @property
    def X(self) -> Any:
        """The rows of the block."""
        return self._shown.X

    @property
    def offset(self) -> int:
        """The number of its first row."""
        return int(self._shown.offset)

    def block(self, rows: slice) -> Any:
        """Rows of the block."""
        return self.X[rows.start - self.offset : rows.stop - self.offset]

    def block_rows(self) -> int:
        """At most so many rows are multiplied at a time."""
        return int(max(64, BLOCK_BYTES // (self.X.shape[1] * self.X.itemsize)))


class LastBuffers(dict[tuple[int, ...], Any]):
    """Buffers of the last pass alone: those of other shapes go before new ones are made."""

    def pop(self, key: tuple[int, ...], default: Any = None) -> Any:
        """The buffers for this key, if the last pass had it."""
        found = super().pop(key, default)
        self.clear()
        return found


def run_all(
    worker: Worker, window: Window, batch: list[Block], n_cuts: int, turns: int
) -> Iterator[Array]:
    """Run the groups of every block, and return their sums, block by block in order.

    A task has several groups, and goes through all blocks: handing tasks to threads would
    otherwise take longer than a pass with few classes.
    """
    # Block b has the groups from (b mod turns) · cuts on.
    firsts = [block.number % turns * n_cuts for block in batch]
    parts = [cut(block.rows, n_cuts) for block in batch]
    used = sorted({f + i for f, own in zip(firsts, parts, strict=True) for i in range(len(own))})
    ends = np.linspace(0, len(used), min(len(used), 2 * thread_count()) + 1).astype(int)

    def task(groups: list[int]) -> list[list[Array]]:
        found = []
        for block, first, own in zip(batch, firsts, parts, strict=True):
            window.show(block)
            here = [g for g in groups if 0 <= g - first < len(own)]
            found.append([worker.run((g, own[g - first])) for g in here])
        return found

    tasks = ordered_map(task, [used[i:j] for i, j in pairwise(ends)])
    return chain.from_iterable(of_task[b] for b in range(len(batch)) for of_task in tasks)


def length(rows: slice) -> int:
    """How many rows a slice has."""
    return int(rows.stop - rows.start)


def cut(rows: slice, count: int) -> list[slice]:
    """Rows cut into so many slices of about the same length; a short block into fewer."""
    count = max(1, min(count, length(rows)))
    cuts = np.linspace(rows.start, rows.stop, count + 1).astype(int)
    return [slice(int(i), int(j)) for i, j in pairwise(cuts)]
