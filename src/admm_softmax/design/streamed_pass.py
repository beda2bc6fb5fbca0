"""How a pass goes over blocks in memory: what workers see of them, and who runs what."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from itertools import chain, pairwise
from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._interrupts import check_interrupt
from admm_softmax._parallel import Lanes, thread_count
from admm_softmax.design.blocks import BLOCK_BYTES
from admm_softmax.design.reader import Block, length
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
        self.buffers: dict[tuple[Hashable, ...], Any] = design.buffers
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


class LastBuffers(dict[tuple[Hashable, ...], Any]):
    """Buffers of the last pass alone: those of other shapes go before new ones are made."""

    def pop(self, key: tuple[Hashable, ...], default: Any = None) -> Any:
        """The buffers for this key, if the last pass had it."""
        found = super().pop(key, default)
        self.clear()
        return found


class Flow:
    """Runs the groups of blocks as these come, and hands out their sums in order.

    A group's parts run one after the other, in one lane; blocks need not wait for each other.
    Before the next batch is begun, only the batch before it need have ended, so that threads
    have work while this one fetches blocks, and no one waits for the slowest at every block.
    """

    def __init__(self, window: Window, n_cuts: int, turns: int) -> None:
        self.window, self.n_cuts, self.turns = window, n_cuts, turns
        self.lanes = Lanes(min(n_cuts * turns, 2 * thread_count()))
        #: Sums of the batches begun, by block and group, with the jobs that write them.
        self.begun: deque[tuple[list[list[Any]], list[Future[None]]]] = deque()

    def begin(self, worker: Worker, batch: list[Block]) -> None:
        """Let threads run the groups of these blocks."""
        check_interrupt()
        # Block b has the groups from (b mod turns) · cuts on.
        parts = [(block, block.number % self.turns * self.n_cuts) for block in batch]
        slices = [cut(block.rows, self.n_cuts) for block in batch]
        sums: list[list[Any]] = [[None] * len(own) for own in slices]
        n_lanes = len(self.lanes)

        def job(lane: int) -> None:
            for (block, first), own, out in zip(parts, slices, sums, strict=True):
                self.window.show(block)
                for i in range((lane - first) % n_lanes, len(own), n_lanes):
                    out[i] = worker.run((first + i, own[i]))

        used = {(first + i) % n_lanes for (_, first), own in zip(parts, slices, strict=True)
                for i in range(len(own))}  # fmt: skip
        self.begun.append(
            (sums, [self.lanes.start(lane, partial(job, lane)) for lane in sorted(used)])
        )

    def sums(self, all_but: int = 0) -> Iterator[Array]:
        """Sums of the batches begun, block by block and group by group, but for the last ones."""
        while len(self.begun) > all_but:
            sums, jobs = self.begun[0]
            for job in jobs:
                job.result()
            self.begun.popleft()
            yield from chain.from_iterable(sums)

    def close(self) -> None:
        """Wait for what still runs, after an error: its rows must stay until then."""
        for _, jobs in self.begun:
            wait(jobs)


def cut(rows: slice, count: int) -> list[slice]:
    """Rows cut into so many slices of about the same length; a short block into fewer."""
    count = max(1, min(count, length(rows)))
    cuts = np.linspace(rows.start, rows.stop, count + 1).astype(int)
    return [slice(int(i), int(j)) for i, j in pairwise(cuts)]
