"""Blocks of rows in memory, one after the other: from a cache, or read ahead by a thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from itertools import chain
from threading import RLock
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from admm_softmax.kernels.thresholds import repays_widening
from admm_softmax.kernels.widening import widen
from admm_softmax.sources import RowBlocks
from admm_softmax.sources.base import is_bfloat16
from admm_softmax.sources.mapping import is_mapped
from admm_softmax.sources.memory import memory_bytes

#: Bytes of a block in memory: large beside the cost of a call, small beside memory. Blocks of
#: wide rows have at least LEAST_READ_ROWS rows, unless that makes them larger than
#: MOST_BLOCK_BYTES.
READ_BLOCK_BYTES, LEAST_READ_ROWS, MOST_BLOCK_BYTES = 8 << 20, 256, 32 << 20
#: Blocks in memory of their own, in use, waiting or being read; and how many of them a pass
#: works on at the same time.
BLOCKS_IN_FLIGHT, BLOCKS_HELD = 3, 2
#: Blocks without memory of their own that are handed out together. Over two classes a block of
#: 8 MB takes a thread less than a millisecond, and handing it over a tenth of that.
BLOCKS_TOGETHER = 8


class Memory:
    """What a limit leaves for blocks, besides row state and the sums of passes.

    Half of the free memory, where no limit is given, is that at the first pass: by then other
    rows have taken theirs.
    """

    def __init__(self, limit: int | str | None) -> None:
        self.limit = None if limit is None else memory_bytes(limit)
        self.reserved = 0
        self._state: list[Any] = []

    def hold(self, array: Any) -> None:
        """Count an array of row state for as long as it lives."""
        self._state.append(ref(array))

    @property
    def held(self) -> int:
        """Bytes of row state."""
        alive = [array for array in (state() for state in self._state) if array is not None]
        self._state = [ref(array) for array in alive]
        return int(sum(array.nbytes for array in alive))

    def available(self, reserve: int) -> int:
        """What is left for blocks in a pass that needs so many bytes besides."""
        if self.limit is None:
            self.limit = memory_bytes(None)
        # The most so far, not what this pass needs: the cache should not change all the time.
        self.reserved = max(self.reserved, reserve)
        return self.limit - self.reserved - self.held


class Block(NamedTuple):
    """Some rows in memory; X may be the bits of halves, see `BlockReader.half`."""

    number: int
    rows: slice
    X: Any


class _Loaded(NamedTuple):
    """A block that was read."""

    X: Any
    #: Whether its memory may be used for other blocks.
    is_own: bool
    #: Whether it takes no memory of its own.
    is_free: bool


class BlockReader:
    """The rows of a `RowBlocks`, cut into blocks, of which a cache keeps as many as may be.

    The cut depends on the shape of the rows alone. So sums over blocks have the same bits
    whatever the cache holds. Where not all blocks fit, those kept are spread evenly over the
    rows, so that reading and computing overlap all the time; with less memory, fewer of the same
    blocks are kept. (Dropping the block that was used least recently would keep none: every
    pass goes through all of them in the same order.)

    Rows of float16 and bfloat16 stay as they are stored, where compiled passes widen them:
    twice as many fit into the cache. Only one pass runs at a time.
    """

    def __init__(self, rows: RowBlocks, check_finite: bool = True) -> None:
        self.rows, self.dtype = rows, rows.working_dtype
        row_bytes = rows.n_features * self.dtype.itemsize
        size = max(
            1,
            min(max(READ_BLOCK_BYTES // row_bytes, LEAST_READ_ROWS), MOST_BLOCK_BYTES // row_bytes),
        )
        n = rows.n_rows
        self.compiled = repays_widening(n * rows.n_features)
        #: "float16" or "bfloat16" where blocks hold the bits of such, else None.
        self.half = _half_of(rows) if self.compiled else None
        self.stored = self.dtype if self.half is None else np.dtype(np.uint16)
        #: Whether rows are stored as they are used, one after the other.
        #: Whether rows are used as they are stored, so that none is converted.
        self.as_stored = self.half is not None or rows.dtype == self.dtype
        self.fills = rows.fills and self.as_stored
        self.cuts = [slice(i, min(i + size, n)) for i in range(0, n, size)]
        self.block_rows = min(size, n)
        self.block_bytes = self.block_rows * rows.n_features * self.stored.itemsize
        #: The order in which blocks enter the cache: each is far from those before it.
        self.priority = _spread(len(self.cuts))
        self.cache: dict[int, Any] = {}
        self.spare: list[Any] = []
        self.unchecked = set(range(len(self.cuts))) if check_finite else set()
        #: Where blocks of halves are widened, for those who cannot take them as they are.
        self.widened_rows: Any = None
        #: Whether blocks are kept from pass to pass.
        self.keeps = True
        #: How many blocks were read from the source so far.
        self.blocks_read = 0
        self.lock = RLock()
        self.memory = Memory(rows.memory_limit)
        self._check_limit(0)

    def _check_limit(self, reserve: int) -> None:
        limit, needed = self.memory.limit, self.in_flight_bytes + reserve
        if limit is not None and limit < needed:
            raise ValueError(
                f"memory_limit must be at least {needed} bytes for blocks of "
                f"{self.block_rows} rows and the sums over them, got {limit}"
            )

    @property
    def in_flight_bytes(self) -> int:
        """What the blocks in use and those waiting take, besides the cache."""
        own = self.block_bytes * BLOCKS_IN_FLIGHT
        if self.half is not None:
            own += 2 * self.block_bytes
        if self.rows.transform is not None:
            raw = self.rows.source
            own += self.block_rows * raw.n_features * raw.dtype.itemsize
        if self.half is None:
            own = min(own, self.block_bytes * len(self.cuts))
        return own

    def widened(self, block: Block) -> Block:
        """The block as numbers to compute with, valid until the next."""
        if self.half is None:
            return block
        if self.widened_rows is None:
            self.widened_rows = np.empty((self.block_rows, self.rows.n_features), self.dtype)
        out = self.widened_rows[: len(block.X)]
        widen(block.X.view(np.float16 if self.half == "float16" else "V2"), out, self.compiled)
        return block._replace(X=out)

    def blocks(self, reserve: int = 0, wanted: Sequence[int] | None = None) -> Iterator[Block]:
        """The wanted blocks, or all, in the order asked for; each is valid until the next.

        reserve : bytes that the pass needs besides blocks
        """
        return chain.from_iterable(self.batches(reserve, wanted))

    def batches(
        self, reserve: int = 0, wanted: Sequence[int] | None = None, held: int = 1
    ) -> Generator[list[Block], None, None]:
        """The same blocks, a few at a time; a batch is valid until `held` more were asked for.

        A batch has at most one block that takes memory; the others are in the cache, in the
        page cache, or in an array.
        """
        self._check_limit(reserve)
        with self.lock:
            keep = self._to_keep(self.memory.available(reserve))
            for number in [number for number in self.cache if number not in keep]:
                del self.cache[number]
            wanted = range(len(self.cuts)) if wanted is None else wanted
            missing = [number for number in wanted if number not in self.cache]
            batch: list[Block] = []
            in_use: deque[tuple[list[Block], bool]] = deque()
            loaded: deque[_Loaded] = deque()
            with closing(self._ahead(missing, BLOCKS_IN_FLIGHT - held)) as read:
                for i, number in enumerate(wanted):
                    X, last = self.cache.get(number), _Loaded(None, False, True)
                    if X is None:
                        if not loaded:
                            loaded.extend(next(read))
                        last = loaded.popleft()
                        X = last.X
                    batch.append(Block(number, self.cuts[number], X))
                    if not last.is_free or len(batch) == BLOCKS_TOGETHER or i + 1 == len(wanted):
                        yield batch
                        in_use.append((batch, last.is_own))
                        batch = []
                        if len(in_use) == held:
                            self._settle(*in_use.popleft(), keep)
            for used in in_use:
                self._settle(*used, keep)
            if len(self.cache) == len(self.cuts):
                self.spare.clear()

    def _settle(self, batch: list[Block], last_is_own: bool, keep: set[int]) -> None:
        """Keep blocks that were used, or their memory."""
        for block in batch:
            if block.number in keep:
                # The page cache may drop what is mapped.
                self.cache[block.number] = block.X.copy() if is_mapped(block.X) else block.X
        if last_is_own and batch[-1].number not in keep:
            self.spare.append(batch[-1].X)

    def _to_keep(self, available: int) -> set[int]:
        if not self.keeps:
            return set()
        count = available // self.block_bytes
        if count < len(self.cuts) or self.half is not None:
            count = max(0, (available - self.in_flight_bytes) // self.block_bytes)
        return set(self.priority[:count])

    def _ahead(self, numbers: Sequence[int], count: int) -> Generator[list[_Loaded], None, None]:
        """Blocks in memory, so many read ahead by a thread while those before are used.

        Where rows are neither read nor converted, or none ahead, a thread would take longer than a
        small pass.
        """
        if (self.rows.in_memory and self.as_stored) or len(numbers) <= 1:
            yield from self._load(numbers)
            return
        loading, context = self._load(numbers), copy_context()
        waiting: deque[Future[list[_Loaded] | None]] = deque()

        def following() -> list[_Loaded] | None:
            return next(loading, None)

        thread = ThreadPoolExecutor(1, thread_name_prefix="admm-softmax-read")
        try:
            while True:
                while len(waiting) <= count:
                    waiting.append(thread.submit(context.run, following))
                found = waiting.popleft().result()
                if found is None:
                    return
                yield found
        finally:
            thread.shutdown(cancel_futures=True)
            loading.close()

    def _load(self, numbers: Sequence[int]) -> Generator[list[_Loaded], None, None]:
        """Read, widen and check blocks: those that take no memory together with the next."""
        together: list[_Loaded] = []
        for number, X, is_own in self._read(numbers) if self.fills else self._pieced(numbers):
            self.blocks_read += 1
            if number in self.unchecked:
                self._check_finite(X, self.cuts[number])
                self.unchecked.discard(number)
            is_free = self.rows.in_memory or is_mapped(X)
            together.append(_Loaded(X, is_own, is_free))
            if not is_free or len(together) == BLOCKS_TOGETHER:
                yield together
                together = []
        if together:
            yield together

    def _read(self, numbers: Sequence[int]) -> Iterator[tuple[int, Any, bool]]:
        """Blocks that are stored as they are used: in the page cache, or read to their place.

        Neighbours are mapped together: to open a file, map it and unmap it again takes as long
        as a tenth of a pass over a block with two classes.
        """
        for i in range(0, len(numbers), BLOCKS_TOGETHER):
            some = numbers[i : i + BLOCKS_TOGETHER]
            whole = slice(self.cuts[some[0]].start, self.cuts[some[-1]].stop)
            neighbours = list(some) == list(range(some[0], some[0] + len(some)))
            X = self._mapped(whole) if neighbours and len(some) > 1 else None
            for number in some:
                rows = self.cuts[number]
                if X is not None:
                    yield number, X[rows.start - whole.start : rows.stop - whole.start], False
                elif (alone := self._mapped(rows)) is not None:
                    yield number, alone, False
                else:
                    room = self._room()[: length(rows)]
                    self.rows.fill(rows, room.view(self.rows.dtype))
                    yield number, room, len(room) == self.block_rows

    def _mapped(self, rows: slice) -> Any:
        X = self.rows.mapped(rows)
        return None if X is None or not _usable(X, self.rows.dtype) else X.view(self.stored)

    def _pieced(self, numbers: Sequence[int]) -> Iterator[tuple[int, Any, bool]]:
        """Blocks put together from pieces, which come in the source's own sizes."""
        for run in _rising(numbers):
            pieces = self.rows.read([self.cuts[number] for number in run])
            for number in run:
                yield number, *self._fill(number, pieces)

    def _fill(self, number: int, pieces: Iterator[tuple[int, Any]]) -> tuple[Any, bool]:
        rows, width = self.cuts[number], self.rows.n_features
        count, done, room = rows.stop - rows.start, 0, None
        while done < count:
            first, piece = next(pieces)
            if piece.shape[1:] != (width,):
                raise ValueError(
                    f"{self.rows.describe(first)}: {piece.shape[1:]} numbers in a row, not {width}"
                )
            if self.half is not None:
                piece = np.ascontiguousarray(piece).view(np.uint16)
            lasts = self.rows.lasting or is_mapped(piece)
            if len(piece) == count and lasts and _usable(piece, self.stored):
                return piece, False
            if room is None:
                room = self._room()
            if self.half is not None:
                room[done : done + len(piece)] = piece
            else:
                widen(piece, room[done : done + len(piece)], self.compiled)
            done += len(piece)
        assert room is not None
        return room[:count], count == self.block_rows

    def _room(self) -> Any:
        if self.spare:
            return self.spare.pop()
        return np.empty((self.block_rows, self.rows.n_features), self.stored)

    def _check_finite(self, X: Any, rows: slice) -> None:
        if self.half is not None:
            # Infinities and NaN have an exponent of ones alone.
            exponent = np.uint16(0x7C00 if self.half == "float16" else 0x7F80)
            bad = np.flatnonzero(((X & exponent) == exponent).any(axis=1))
        else:
            # A sum is finite only if every entry is, unless it overflows: then look again.
            with np.errstate(all="ignore"):
                if np.isfinite(X.sum()):
                    return
            bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if len(bad):
            where = self.rows.describe(rows.start + int(bad[0]))
            raise ValueError(f"X must be finite, got NaN or infinity in {where}")


def _half_of(rows: RowBlocks) -> str | None:
    """Which halves the rows are stored in, if they are computed with in single precision."""
    if rows.transform is not None or rows.working_dtype != np.float32:
        return None
    if is_bfloat16(rows.dtype):
        return "bfloat16"
    return "float16" if rows.dtype == np.float16 and rows.dtype.isnative else None


def length(rows: slice) -> int:
    """How many rows a slice has."""
    return int(rows.stop - rows.start)


def _usable(piece: Any, dtype: Any) -> bool:
    flags = piece.flags
    return bool(piece.dtype == dtype and flags.c_contiguous and flags.aligned)


def _rising(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Numbers cut where they do not rise: a source is read from its beginning for each part."""
    run: list[int] = []
    for number in numbers:
        if run and number < run[-1]:
            yield run
            run = []
        run.append(number)
    if run:
        yield run


def _spread(count: int) -> list[int]:
    """0 … count−1 in an order whose beginnings are spread evenly: by reversed bits.

    >>> _spread(6)
    [0, 4, 2, 1, 5, 3]
    """
    bits = max(1, (count - 1).bit_length())
    order = (int(format(i, f"0{bits}b")[::-1], 2) for i in range(1 << bits))
    return [i for i in order if i < count]
