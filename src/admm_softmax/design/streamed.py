"""Rows in files, or made block by block: one pass over them per request, whatever their size."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads, ordered_map
from admm_softmax.design.base import Sample
from admm_softmax.design.blocks import (
    BLOCK_BYTES,
    GROUP_BYTES,
    MAX_GROUPS,
    RowBlockDesign,
    feed,
)
from admm_softmax.design.dense import FusedWorker, program_of
from admm_softmax.design.fold import Fold, Request
from admm_softmax.design.reader import BLOCKS_HELD, Block, BlockReader, length
from admm_softmax.design.rows import Rows
from admm_softmax.design.streamed_pass import Flow, LastBuffers, Window, cut
from admm_softmax.design.workers import BlasWorker, Worker
from admm_softmax.kernels.row_kernel import Sums
from admm_softmax.sources import RowBlocks

#: Blocks whose rows are mixed with each other in mini-batches.
WINDOW = 4
#: The fewest rows of a block that are worth a group of their own, and how many are enough: with
#: 128 rows of 1,024 columns and ten classes a pass took half as long again as with 512 (EPYC,
#: Zen 3), because the cache had lost the group's sums by its next turn.
LEAST_GROUP_ROWS, ENOUGH_GROUP_ROWS = 64, 512


class StreamedDesign(RowBlockDesign):
    """X̃ = [X, 1] for the rows of a `RowBlocks`, of which a few blocks are in memory at a time.

    A pass goes through the blocks in order. Each is cut into the same number of groups of rows,
    and a group's sum goes on from block to block, of several blocks in turn ::

        Σ_b X̃_bᵀR_b = Σ_g Σ_b X̃_bgᵀR_bg

    so that partial sums are few, the order of summation is fixed, and all threads work on the
    block that is in memory while another thread reads the next.

    rows : where the rows come from, and how much memory they may take
    intercept : whether there is a constant column
    check_finite : whether to look for NaN, in the first pass
    """

    can_form_row_gram = False
    can_take_columns = False

    def __init__(
        self, rows: RowBlocks, *, intercept: bool = True, check_finite: bool = True
    ) -> None:
        shape = rows.n_rows, rows.n_features
        super().__init__(shape, rows.working_dtype, intercept, rows.state_dtype)
        self.source, self.feature_names = rows, rows.feature_names
        self.reader = BlockReader(rows, check_finite)
        self.buffers = LastBuffers()

    def transformed(self, function: Callable[[Any], Any]) -> StreamedDesign:
        """The rows put through a function as they are read."""
        return StreamedDesign(RowBlocks(self.source, transform=function), intercept=self.intercept)

    # ---- memory ----

    def blocks(self, reserve: int = 0, wanted: Sequence[int] | None = None) -> Iterator[Block]:
        """Blocks of rows, widened; `reserve` are the bytes that the caller needs besides."""
        return map(self.reader.widened, self.reader.blocks(reserve, wanted))

    def room(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A new array for row state: in memory, or in a file that vanishes with it."""
        if self.source.state_dir is None or 0 in shape:
            made = np.empty(shape, dtype)
            self.reader.memory.hold(made)
            return made
        folder = Path(self.source.state_dir)
        folder.mkdir(parents=True, exist_ok=True)
        # Without a name the file is gone when the last map of it is, also after a crash.
        with tempfile.TemporaryFile(prefix="rows-", dir=folder) as file:
            return np.memmap(file, dtype, "w+", shape=shape)

    def zeros(self, columns: int) -> Rows:
        """A handle to zeros, in memory or in a file."""
        made = self.room((self.n_rows, columns), self.state_dtype)
        if not isinstance(made, np.memmap):  # a new file is zero
            made[:] = 0.0
        return self._placed(made)

    # ---- passes over X ----

    def _fold_batch(self, requests: list[Request], compiled: bool) -> list[Fold]:
        W = np.concatenate([r.W for r in requests], axis=1) if len(requests) > 1 else requests[0].W
        cuts, turns = self._n_groups(W)
        n_groups = cuts * turns
        results = max(1, requests[0].kernel.results) * max(W.shape[1], requests[0].columns)
        reserve = n_groups * results * self.n_features * (8 + self.dtype.itemsize)
        sums = np.zeros((len(requests), len(requests[0].kernel.sums)))
        fused = compiled and requests[0].kernel.twin is not None
        window, worker = Window(self, self.reader.half if fused else None), None
        # Where blocks are widened first, one is in memory at a time.
        held = BLOCKS_HELD if fused else 1
        batches: Generator[list[Block]] = self.reader.batches(reserve, held=held)
        if not fused:
            batches = ([block] for block in self.blocks(reserve))
        flow = Flow(window, cuts, turns)
        with self.reader.lock, blas_threads(1), closing(batches), closing(flow):
            for batch in batches:
                window.show(batch[0])
                if worker is None:
                    worker = self._worker_on(window, requests, W, n_groups, compiled)
                flow.begin(worker, batch)
                for part in flow.sums(all_but=held - 1):
                    sums += part
            for part in flow.sums():
                sums += part
        assert worker is not None
        product = worker.product()
        products = [product] if len(requests) == 1 else np.split(product, len(requests), axis=1)
        folds = []
        for i, new_rows in enumerate(worker.new_rows()):
            handle = None if new_rows is None else self._placed(new_rows)
            folds.append(Fold(products[i], handle, Sums(requests[i].kernel.sums, sums[i])))
        return folds

    @staticmethod
    def _worker_on(
        window: Window, requests: list[Request], W: Array, n_groups: int, compiled: bool
    ) -> Worker:
        if compiled and requests[0].kernel.twin is not None:
            return FusedWorker(window, W, program_of(requests, window.dtype), n_groups)
        return BlasWorker(window, requests, W, n_groups, compiled)

    def _n_groups(self, W: Array) -> tuple[int, int]:
        """Into how many groups each block is cut, and how many blocks in turn have groups of
        their own: by the shape of X and W alone.

        Groups of many rows read their sums less often; a few per block let threads share one.
        """
        rows = self.reader.block_rows
        by_memory = max(4, GROUP_BYTES // max(1, 16 * W.size))
        n_groups = int(max(1, min(MAX_GROUPS, by_memory, rows // LEAST_GROUP_ROWS)))
        cuts = min(n_groups, max(4, rows // ENOUGH_GROUP_ROWS))
        return cuts, n_groups // cuts

    def map_scores(self, W: Array, function: Callable[[Array], Any]) -> Any:
        """function(X̃_b W) of every block, put together. One read."""
        self._reads.add(1)
        Wd = np.ascontiguousarray(W, dtype=self.dtype)
        d = self.n_features - self.intercept
        found = []
        reserve = Wd.nbytes + 2 * 8 * self.reader.block_rows * W.shape[1]
        with blas_threads(operations=2.0 * self.n_rows * W.size):
            for block in self.blocks(reserve):
                scores = np.asarray(block.X @ Wd[:d], dtype=np.float64)
                if self.intercept:
                    scores += Wd[d]
                found.append(function(scores))
        return np.concatenate(found)

    def _panels(self, weights: Rows, at_least: int = 1, dtype: Any = np.float64) -> Iterator[Any]:
        """Rows √wᵢ x̃ᵢ of those that have weight, panel by panel. Blocks without are not read."""
        w, d = weights.held, self.n_features
        wanted = [b for b, rows in enumerate(self.reader.cuts) if w[rows].any()]
        self._reads.add(sum(length(self.reader.cuts[b]) for b in wanted) / self.n_rows)
        size = min(max(at_least, 2 * self.reader.block_rows), int(np.count_nonzero(w)) or 1)
        panel = np.empty((size, d), dtype)
        filled = 0
        for block in self.blocks(panel.nbytes, wanted):
            chosen = np.flatnonzero(w[block.rows])
            while len(chosen):
                now, chosen = chosen[: size - filled], chosen[size - filled :]
                part = panel[filled : filled + len(now)]
                root = np.sqrt(w[block.rows][now]).astype(dtype)[:, None]
                X = block.X if len(now) == len(block.X) else block.X[now]
                np.multiply(X, root, out=part[:, : d - self.intercept], casting="same_kind")
                if self.intercept:
                    part[:, -1] = root[:, 0]
                filled += len(now)
                if filled == size:
                    yield panel
                    filled = 0
        if filled:
            yield panel[:filled]

    def column_squares(self, weights: Rows) -> Array:
        """Σᵢ wᵢ x̃ᵢⱼ² for every column j."""
        self._reads.add(1)
        w, d = weights.held, self.n_features
        total = np.zeros(d)
        X, start = np.zeros((0, 0)), 0

        def part(rows: slice) -> Array:
            here = X[rows.start - start : rows.stop - start]
            squares = w[rows].astype(self.dtype) @ np.square(here)
            return np.asarray(squares, dtype=np.float64)

        for block in self.blocks(self.reader.block_bytes):
            X, start = block.X, block.rows.start
            groups = cut(block.rows, -(-X.nbytes // BLOCK_BYTES))
            for squares in ordered_map(part, groups):
                total[: d - self.intercept] += squares
        if self.intercept:
            total[-1] = w.sum()
        return total

    def row_products(self, inverse_penalty: Callable[[Any], Array]) -> Array:
        """Not available: it would take a pass for every block."""
        raise self._cannot("form n × n matrices")

    # ---- rows ----

    def columns(self, features: Any) -> RowBlockDesign:
        """Not here: what is copied into memory may not fit."""
        raise self._cannot("take columns")

    def block_rows(self) -> int:
        """The number of rows per block."""
        return self.reader.block_rows

    def block(self, rows: slice) -> Any:
        """Rows of X, copied."""
        return self.rows_at(np.arange(rows.start, rows.stop))

    def rows_at(self, indices: Any) -> Any:
        """Rows of X at increasing positions, copied; blocks without any are not read."""
        starts = np.array([rows.start for rows in self.reader.cuts])
        of_block = np.searchsorted(starts, indices, side="right") - 1
        out = np.empty((len(indices), self.n_features - self.intercept), self.dtype)
        for block in self.blocks(0, np.unique(of_block).tolist()):
            own = np.searchsorted(of_block, [block.number, block.number + 1])
            places = np.asarray(indices[own[0] : own[1]]) - block.rows.start
            np.take(block.X, places, axis=0, out=out[own[0] : own[1]])
        return out

    def picked(self, indices: Any) -> StreamedDesign:
        """Some of the rows, by rising positions, still in files. No block of them is kept."""
        part = StreamedDesign(
            self.source.picked(indices), intercept=self.intercept, check_finite=False
        )
        # Folds of cross-validation are many, and the limit is that of all rows.
        part.reader.keeps = False
        return part

    def batches(
        self, count: int, random: np.random.Generator, weights: Rows, *rows: Rows
    ) -> Iterator[Sample]:
        """All rows that have weight, cut evenly into `count` batches, in nearly random order.

        Blocks come in random order, if the source can skip rows, and `WINDOW` of them are in
        memory at a time: rows are shuffled among those. So an epoch is one read. Where the order
        of the rows in the files means something and the source cannot skip, shuffle the files.
        """
        blocks = np.arange(len(self.reader.cuts))
        if self.source.can_skip:
            random.shuffle(blocks)
        w = weights.held
        total = int(np.count_nonzero(w))
        cuts = [b * total // count for b in range(count + 1)]
        waiting = _Waiting(self, rows)
        sent = 0
        for i in range(0, len(blocks), WINDOW):
            waiting.add(np.sort(blocks[i : i + WINDOW]).tolist(), w, random)
            last = i + WINDOW >= len(blocks)
            while sent < count and (last or waiting.count >= cuts[sent + 1] - cuts[sent]):
                self._reads.add((cuts[sent + 1] - cuts[sent]) / self.n_rows)
                yield waiting.take(cuts[sent + 1] - cuts[sent])
                sent += 1

    def fingerprint(self, digest: Any, *rows: Rows) -> None:
        """Feed the rows, as they are computed with, and the row arrays to the digest. One read."""
        digest.update(repr((self.n_rows, self.n_features, self.intercept)).encode())
        for block in self.blocks():
            feed(digest, [block.X])
        feed(digest, [self.gather(r) for r in rows])

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process reads for itself.
        return {"source": self.source, "intercept": self.intercept, "reads": self._reads.count}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["source"], intercept=state["intercept"])  # type: ignore[misc]
        self._reads.count = state["reads"]

    def __copy__(self) -> StreamedDesign:
        # A view shares the cache and the count of memory.
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other


class _Waiting:
    """Rows that were read and shuffled, waiting to be handed out in batches."""

    def __init__(self, design: StreamedDesign, rows: tuple[Rows, ...]) -> None:
        self.design, self.rows = design, rows
        self.X = np.empty((0, design.shape[1]), design.dtype)
        self.places = np.empty(0, np.intp)

    @property
    def count(self) -> int:
        """Rows that wait."""
        return len(self.places)

    def add(self, numbers: list[int], w: Array, random: np.random.Generator) -> None:
        """Read blocks, and put those of their rows that have weight behind the others, shuffled."""
        cuts = self.design.reader.cuts
        places = [rows.start + np.flatnonzero(w[rows]) for rows in map(cuts.__getitem__, numbers)]
        starts = np.cumsum([0, *map(len, places)]) + self.count
        order = random.permutation(int(starts[-1]) - self.count) + self.count
        X = np.empty((int(starts[-1]), self.design.shape[1]), self.design.dtype)
        X[: self.count] = self.X
        kept = np.concatenate([self.places, np.empty(len(order), np.intp)])
        extra = X.nbytes + self.X.nbytes
        for k, block in enumerate(self.design.blocks(extra, numbers)):
            to = order[starts[k] - self.count : starts[k + 1] - self.count]
            X[to] = block.X[places[k] - block.rows.start]
            kept[to] = places[k]
        self.X, self.places = X, kept

    def take(self, count: int) -> Sample:
        """The rows that have waited longest, as a design."""
        X, places = self.X[:count], self.places[:count]
        self.X, self.places = self.X[count:], self.places[count:]
        design = self.design.in_memory(X)
        return Sample(design, tuple(design.place(self.design.gather(r)[places]) for r in self.rows))
