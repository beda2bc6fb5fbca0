"""X as a NumPy array in memory, read where it lies: neither copied nor converted."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.linalg import blas

from admm_softmax._arrays import Array
from admm_softmax._cpu import measured
from admm_softmax._parallel import blas_threads, ordered_map
from admm_softmax.design.blocks import (
    PANEL_BYTES,
    RowBlockDesign,
    as_floating,
    mirror_upper,
)
from admm_softmax.design.fold import Request
from admm_softmax.design.workers import Readable, Worker
from admm_softmax.kernels.thresholds import repays_panels

if TYPE_CHECKING:
    from admm_softmax.kernels.compiled.programs import Program

#: Bytes of X that go through both products of a compiled pass together: a part of the second-level
#: cache, which two threads may share. On an AVX-512 Xeon (2 MB), 40,000 × 7056 with ten classes
#: in blocks of 16, 32 and 64 rows took 83, 94 and 100 ms in turns, and 64 before this 96 ms; with
#: three classes 66, 57, 66 and 69 ms; stored in float16, widened as they are since, 62, 68 and 74
#: ms, and with three classes 41, 39 and 46 ms. On Zen 3 (512 KB, and 32 MB behind it), 20,000 rows
#: with ten classes on one core took 94, 90 and 92 ms, the least of thirty. On an Emerald Rapids
#: 40,000 × 7056 in blocks of 8, 16, 32 and 64 rows take 112, 119, 110 and 131 ms, held to AVX2 128,
#: 131, 128 and 132; 45,000 × 768 in blocks of 256, 512 and 1,024 KB 19.3, 20.4 and 21.1 ms, held to
#: AVX2 44, 39 and 31.
FUSED_BYTES = 512 << 10
MOST_BLOCK_ROWS, LEAST_BLOCK_ROWS = 64, measured(wide=16, narrow=32)
#: Rows where X W goes by turned panels: with many classes the cache does not hold W and the sums,
#: which are read once per block, and products take longer than reading X twice. With 64, 128 and
#: 256 rows passes with 1,000 classes take 138, 112 and 118 ms on an Emerald Rapids with AVX-512,
#: with 100 classes held to AVX2 162, 150 and 155 ms.
PANELS_BLOCK = 128
#: Entries of the groups' sums that one thread adds up at a time. With a quarter, this and four
#: times as many passes over 2,000 × 7056 with ten classes take 8.4, 8.3 and 9.3 ms on an Emerald
#: Rapids with AVX-512, held to AVX2 9.8, 9.3 and 9.6 ms.
SUMMED_TOGETHER = 1 << 16
#: What it costs to add one up from memory, in multiplications of a product.
SUMMING = 30.0


class DenseDesign(RowBlockDesign):
    """X̃ = [X, 1] for a two-dimensional float32 or float64 array X of either order."""

    is_in_memory = True
    half: str | None = None

    def __init__(self, X: Any, *, intercept: bool = True, state_dtype: Any = np.float64) -> None:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional, got {X.ndim} dimensions")
        X = as_floating(X)
        super().__init__(X.shape, X.dtype, intercept, state_dtype)
        self.X, self.offset = X, 0
        #: What passes add up in, kept for the next one: fresh memory costs more than the sums.
        self.buffers: dict[tuple[Hashable, ...], Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Buffers fit the memory that X lies in here, and a copy's lies elsewhere.
        return {**self.__dict__, "buffers": {}}

    def use_buffers(self, buffers: dict[tuple[Hashable, ...], Any]) -> None:
        """Work in the buffers of another design with as many columns of the same type."""
        self.buffers = buffers

    def block(self, rows: slice) -> Any:
        """Rows of X: a view."""
        return self.X[rows]

    def rows_at(self, indices: Any) -> Any:
        """Rows of X, copied."""
        return self.X[indices]

    def _worker(self, requests: list[Request], W: Array, n_groups: int, compiled: bool) -> Worker:
        """One compiled pass, where it pays, for X in any order."""
        flags = self.X.flags
        readable = flags.aligned and self.X.dtype.isnative
        if compiled and readable and requests[0].kernel.twin is not None:
            return FusedWorker(self, W, program_of(requests, self.dtype), n_groups)
        return super()._worker(requests, W, n_groups, compiled)

    def row_gram(self, scale: Array) -> Any:
        """X diag(scale) Xᵀ, n × n, in the data's precision, by symmetric updates."""
        self._reads.add(1)
        n, d = self.X.shape
        G = np.zeros((n, n), self.dtype, order="F")
        update = blas.dsyrk if self.dtype == np.float64 else blas.ssyrk
        root = np.sqrt(scale).astype(self.dtype)
        size = max(1, PANEL_BYTES // (self.dtype.itemsize * n))
        with blas_threads(operations=float(n) * n * d):
            for j in range(0, d, size):
                panel = np.asfortranarray((self.X[:, j : j + size] * root[j : j + size]).T)
                G = update(1.0, panel, trans=1, beta=1.0, c=G, overwrite_c=1)
        mirror_upper(G)
        return G


def program_of(requests: list[Request], dtype: Any = np.float64) -> Program:
    """The requests, laid out for a compiled pass over X of this precision. Loads compiled code."""
    from admm_softmax.kernels.compiled.programs import Call, Program  # noqa: PLC0415

    calls = [
        Call(r.kernel, [rows.held for rows in r.rows], [rows.key for rows in r.rows])
        for r in requests
    ]
    return Program.of(calls, requests[0].W.shape[1], dtype)


class Located(Readable, Protocol):
    """Rows that lie in memory, all of them or a window of them."""

    @property
    def X(self) -> Any:
        """The rows that are in memory."""

    @property
    def offset(self) -> int:
        """The number of the first of them among all rows."""

    buffers: dict[tuple[Hashable, ...], Any]
    #: "float16" or "bfloat16" where X has the bits of such; else X is of `dtype`.
    half: str | None


class FusedWorker(Worker):
    """Both products and the row kernel in one compiled loop, a few rows at a time.

    Groups may come in pieces, and between pieces other rows may come into memory. Sums in the
    data's precision then go on from piece to piece, as if the group were in one.
    """

    def __init__(self, design: Located, W: Array, program: Program, n_groups: int) -> None:
        # Loads compiled code: not before a problem is large enough.
        from admm_softmax.kernels.compiled import layout, passes  # noqa: PLC0415

        X, d = design.X, design.X.shape[1]
        dtype, state_dtype = design.dtype, program.state_dtype(design.state_dtype)
        self.by_panels = repays_panels(d, W.shape[1])
        self.block = PANELS_BLOCK if self.by_panels else _block_rows(d * dtype.itemsize)
        program = replace(program, tile_rows=min(program.tile_rows, self.block))
        self.design, self.program = design, program
        kind = design.half, self.by_panels, program.is_single
        self.fold = passes.dense_pass(dtype, state_dtype, *kind)
        self.bias = np.array(W[d] if design.intercept else np.zeros(W.shape[1]), np.float64)
        self.state = program.states(design.state_dtype)
        in_rows = X.strides[1] == X.itemsize
        self.whole = layout.whole_columns(d, dtype.itemsize) if in_rows else 0
        if self.by_panels:
            self.Wt = layout.interleaved(W[:d], self.whole, dtype)
        else:
            self.Wt = layout.transposed(W[:d], dtype)
        self.outputs = program.new_rows(design.n_rows, design.state_dtype, design.room)
        shape = (n_groups, program.n_results, design.n_features)
        kinds = design.half, len(program.soft) > 0, program.is_single
        # All that the sizes of buffers follow from: designs of as many features may share them.
        sizes = d, self.whole, self.block, self.by_panels, program.n_columns, len(program.which)
        self.key = (*shape, *sizes, *kinds)
        kept: Any = design.buffers.pop(self.key, None)
        if kept is None:
            parts = layout.panels_of_groups(n_groups, program.n_results, d, dtype)
            kept = parts, np.empty(parts.shape), []
        #: The sums of each group, in panels: of the last rows, in the data's precision, and in
        #: double of those before. Only the latter may hold anything between two passes.
        self.parts, self.totals = kept[:2]
        #: One room for each thread that runs at the same time; passes take and return them.
        self.rooms: list[Any] = kept[2]
        #: The sums of the columns of each group's R, where the intercept needs them.
        self.of_columns = np.zeros((n_groups, program.n_results if design.intercept else 0))
        #: How many rows each part has, and whether there are others.
        self.waiting, self.has_total = [0] * n_groups, [False] * n_groups

    def run(self, numbered: tuple[int, slice]) -> Array:
        """One call of the compiled loop."""
        index, group = numbered
        program, design, X = self.program, self.design, self.design.X
        sums, rows = program.sums(), self.waiting[index] + group.stop - group.start
        try:
            room = self.rooms.pop()
        except IndexError:
            room = self._room()
        # Rows are counted from the first of all, wherever those in memory begin.
        address = X.ctypes.data - design.offset * X.strides[0]
        self.waiting[index] = self.fold(
            program.twin, address, *X.strides, X.shape[1], self.whole, group.start,
            group.stop, room, self.Wt, self.bias, program.settings, program.codes, program.soft,
            program.weights, program.which, self.state, self.outputs, self.parts[index],
            self.totals[index], self.of_columns[index], sums, self.waiting[index],
            not self.has_total[index],
        )  # fmt: skip
        self.has_total[index] |= self.waiting[index] < rows
        self.rooms.append(room)
        return sums

    def _room(self) -> tuple[Any, ...]:
        """What one thread works in; see `folds`."""
        from admm_softmax.kernels.compiled import layout  # noqa: PLC0415

        program, d, dtype = self.program, self.design.X.shape[1], self.design.dtype
        block = self.block
        S, R, work, lane = program.room(block)
        size = program.n_results * block
        packed = R.reshape(-1)[:size] if program.is_single else np.zeros(size, dtype)
        rest = layout.aligned(block, d - self.whole, dtype)
        widens = self.design.half is not None
        chunk = layout.product_room(block, len(self.Wt), dtype, self.by_panels, widens)
        copied = np.zeros((block, layout.panel(dtype.itemsize)), dtype)
        return S, R, work, lane, packed, rest, chunk, copied

    def product(self) -> Array:
        """The sum over the groups, and the buffers back to the design."""
        from admm_softmax.kernels.compiled import layout  # noqa: PLC0415

        n_groups, n_results, d = len(self.waiting), self.program.n_results, self.design.X.shape[1]
        total = np.empty((self.design.n_features, n_results))
        if self.design.intercept:
            total[d] = self.of_columns.sum(axis=0)
        width = self.parts.shape[2]

        def add(columns: slice) -> None:
            # Panels lie in the order from the last to the first.
            begin, end = (-(-(d - j) // width) * n_results for j in (columns.stop, columns.start))
            added = np.zeros((end - begin, width))
            for i in range(n_groups):
                if self.has_total[i]:
                    added += self.totals[i, begin:end]
                if self.waiting[i]:
                    added += self.parts[i, begin:end]
                    self.parts[i, begin:end] = 0.0
            sums = layout.from_panels(added, n_results, columns.stop - columns.start)
            total[columns] = sums.T

        size = max(1, SUMMED_TOGETHER // max(1, width * n_results)) * width
        cuts = [slice(j, min(j + size, d)) for j in range(0, d, size)]
        if n_results:
            ordered_map(add, cuts, operations=SUMMING * self.parts.size)
        self.design.buffers[self.key] = (self.parts, self.totals, self.rooms)
        return total

    def new_rows(self) -> list[Any]:
        """The arrays that the loop wrote to."""
        return [rows if self.program.n_new else None for rows in self.outputs]


def _block_rows(row_bytes: int) -> int:
    """How many rows go through both products together: a power of two."""
    rows = MOST_BLOCK_ROWS
    while rows > LEAST_BLOCK_ROWS and rows * row_bytes > FUSED_BYTES:
        rows //= 2
    return rows
