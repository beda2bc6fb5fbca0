"""X as a SciPy sparse matrix in memory. It is never densified as a whole."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax._cached import cached_property
from admm_softmax._parallel import ordered_map
from admm_softmax.design.blocks import BLOCK_BYTES, RowBlockDesign, as_floating, rows_with_weight
from admm_softmax.design.dense import program_of
from admm_softmax.design.fold import Request
from admm_softmax.design.rows import Rows
from admm_softmax.design.workers import Worker

if TYPE_CHECKING:
    from admm_softmax.kernels.compiled.programs import Program

#: The most blocks: the product with each block's transpose is a dense d × K matrix.
MAX_BLOCKS = 64

#: Parts of about equal size into which a product with the transpose is cut for the threads: this
#: many at most, each of so many entries at least, which take a tenth of a millisecond.
COLUMN_PARTS, LEAST_PART = 32, 20_000
#: What it costs to gather the row of W or R for one entry, in multiplications per column: a pass
#: over 912,684 entries with 20 columns takes one thread of a Sapphire Rapids 7.3 ms. On an Emerald
#: Rapids beside other work it took 18.5 ms, 8.5 of such multiplications, and held to AVX2 17.4 ms,
#: 1.9.
GATHERING = 3
#: Columns of X whose sums a thread holds in its first-level cache.
SUMMED_COLUMNS = 64


def _checked(X: Any) -> Any:
    """X, if its indices lie within its shape: compiled passes do not look."""
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X is not a valid CSR matrix of shape {X.shape}: {error}") from error
    return X


class SparseDesign(RowBlockDesign):
    """X̃ = [X, 1] for a sparse X; anything but CSR is converted to CSR once."""

    is_sparse = True

    is_in_memory = True

    def __init__(self, X: Any, *, intercept: bool = True, state_dtype: Any = np.float64) -> None:
        X = _checked(sp.csr_array(X))
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        X = as_floating(X)
        if X.indices.dtype == np.int64 and max(X.nnz, *X.shape) <= np.iinfo(np.int32).max:
            # Half the memory to read; and one compiled pass serves both types.
            X = sp.csr_array(
                (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape
            )
        super().__init__(X.shape, X.dtype, intercept, state_dtype)
        self.X = X
        #: X by columns, once it is needed: in a list, so that all views share it.
        self._by_columns: list[Any] = []
        #: What passes work in, kept for the next one: fresh memory costs more than its use.
        self.buffers: dict[tuple[int, ...], Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Small to send, and no two passes at once may work in the same buffers.
        return {**self.__dict__, "buffers": {}}

    def block(self, rows: slice) -> Any:
        """Rows of X as a CSR view: only the row pointer is new."""
        X = self.X
        pointer = X.indptr[rows.start : rows.stop + 1]
        first, last = pointer[0], pointer[-1]
        view = sp.csr_array((rows.stop - rows.start, X.shape[1]), dtype=X.dtype)
        # Set one by one: the constructor copies what is a small part of a larger array.
        view.data, view.indices = X.data[first:last], X.indices[first:last]
        view.indptr = pointer - first
        return view

    def block_rows(self) -> int:
        """As many rows as hold a megabyte of entries, or more to have at most MAX_BLOCKS blocks."""
        row_bytes = max(1, self.X.nnz // max(1, self.n_rows)) * (self.X.dtype.itemsize + 4)
        return int(max(64, BLOCK_BYTES // row_bytes, -(-self.n_rows // MAX_BLOCKS)))

    def rows_at(self, indices: Any) -> Any:
        """Rows of X as a CSR matrix of their own."""
        return self.X[indices]

    def columns(self, features: Any) -> SparseDesign:
        """Some columns, taken from X stored by columns."""
        self._reads.add(1)
        X = self.by_columns[:, features]
        return SparseDesign(X, intercept=self.intercept, state_dtype=self.state_dtype)

    def transformed(self, function: Callable[[Any], Any]) -> SparseDesign:
        """The rows put through a function, once: sparse rows stay in memory."""
        X = sp.vstack([function(self.block(part)) for part in self.partition()], format="csr")
        return SparseDesign(X, intercept=self.intercept, state_dtype=self.state_dtype)

    @property
    def entries(self) -> int:
        """The number of stored entries."""
        return int(self.X.nnz)

    @property
    def by_columns(self) -> Any:
        """X stored by columns as well, for products with its transpose."""
        if not self._by_columns:
            self._by_columns.append(self.X.tocsc())
        return self._by_columns[0]

    @cached_property
    def column_cuts(self) -> list[int]:
        """Where to cut the columns into parts of about the same number of entries."""
        parts = min(COLUMN_PARTS, 1 + self.entries // LEAST_PART)
        shares = np.linspace(0, self.entries, parts + 1)[:-1]
        cuts = np.searchsorted(self.by_columns.indptr, shares)
        return [*map(int, cuts), self.X.shape[1]]

    def _operations(self, W: Array) -> float:
        """As of dense rows, each entry taken for as many as its gathering costs."""
        return super()._operations(W) + float(2 * GATHERING * self.entries * W.shape[1])

    def _worker(self, requests: list[Request], W: Array, n_groups: int, compiled: bool) -> Worker:
        """The compiled worker, where compiled code is to be used."""
        if compiled and requests[0].kernel.twin is not None:
            return CsrWorker(self, W, program_of(requests), n_groups)
        return super()._worker(requests, W, n_groups, compiled)

    def gram(self, weights: Rows, dtype: Any = np.float64) -> Any:
        """X̃ᵀ diag(w) X̃: a sparse product, then dense because it fills in."""
        chosen, w, X = rows_with_weight(weights.held), weights.held, self.X
        self._reads.add(1 if chosen is None else len(chosen) / self.n_rows)
        if chosen is not None:
            w, X = w[chosen], X[chosen]
        d = X.shape[1]
        G = np.zeros((self.n_features, self.n_features))
        root = np.sqrt(w)
        scaled = sp.csr_array(sp.diags_array(root) @ X.astype(np.float64))
        # The same matrix on both sides: the product is symmetric to the last bit.
        G[:d, :d] = (scaled.T @ scaled).toarray()
        if self.intercept:
            G[:d, d] = G[d, :d] = scaled.T @ root
            G[d, d] = w.sum()
        return G.astype(dtype, copy=False)

    def column_squares(self, weights: Rows) -> Array:
        """Σᵢ wᵢ x̃ᵢⱼ² for every column j, entry by entry in the order of the rows."""
        self._reads.add(1)
        X, w = self.X, weights.held
        squares = np.square(X.data, dtype=np.float64)
        # The rows of X, read as columns of its transpose.
        total = sp.csc_array((squares, X.indices, X.indptr), X.shape[::-1]) @ w
        return np.append(total, w.sum()) if self.intercept else np.asarray(total)


class CsrWorker(Worker):
    """Scores and row kernel over CSR rows, then the product over CSC columns."""

    def __init__(self, design: SparseDesign, W: Array, program: Program, n_groups: int) -> None:
        # Loads compiled code: not before a problem is large enough.
        from admm_softmax.kernels.compiled import arrays, layout, passes  # noqa: PLC0415

        d = design.X.shape[1]
        self.design, self.program, self.plain = design, program, arrays.plain
        state_dtype = program.state_dtype(design.state_dtype)
        self.fold = passes.csr_pass(design.dtype, design.X.indices.dtype, state_dtype)
        self.state = program.states(design.state_dtype)
        self.bias = np.array(W[d] if design.intercept else np.zeros(W.shape[1]), np.float64)
        self.outputs = program.new_rows(design.n_rows, design.state_dtype)
        #: The product comes in the precision of W.
        self.dtype = np.promote_types(W.dtype, design.dtype)
        self.add_columns = passes.columns_pass(
            design.dtype, design.X.indices.dtype, self.dtype
        )  # fmt: skip
        # Padded with zeros, which stay: only what is before them is written.
        self.key = (W.shape[1], program.n_results)
        self.kept = design.buffers.pop(self.key, None) or (
            np.zeros((d, layout.padded_lanes(W.shape[1])), design.dtype),
            np.zeros((design.n_rows, layout.padded_lanes(program.n_results)), design.dtype),
        )
        self.R: Any = self.kept[1]
        self.W: Any = self._without_copy(W[:d], self.kept[0])
        self.arrays = self._plain(design.X)
        # At the start of most fits W is zero, and X need not be read. A look at few rows tells
        # that it is not.
        if not (self.W[:SUMMED_COLUMNS].any() or self.W.any()):
            self.arrays = (*self.arrays[:2], np.zeros_like(self.arrays[2]))
        #: The sum of the rows of R in each group.
        self.totals = np.zeros((n_groups, program.n_results))

    def _without_copy(self, W: Any, room: Any) -> Any:
        """W itself where it is as passes take it, else a copy in `room`."""
        if W.dtype == room.dtype and W.shape == room.shape and W.flags.c_contiguous:
            return self.plain(W, room.dtype)
        room[:, : W.shape[1]] = W
        return room

    def run(self, numbered: tuple[int, slice]) -> Array:
        """One call of the compiled loop."""
        index, group = numbered
        program = self.program
        sums, room = program.sums(), program.room(program.tile_rows)
        scores = np.zeros((program.tile_rows, self.W.shape[1]))
        self.fold(
            program.twin, *self.arrays, group.start, group.stop, (*room, scores), self.W, self.bias,
            program.settings, program.codes, program.soft, program.weights, program.which,
            self.state, self.outputs, self.R, self.totals[index], sums,
        )  # fmt: skip
        return sums

    def _plain(self, X: Any) -> tuple[Any, Any, Any]:
        """Data, indices and pointers of CSR or CSC, as compiled passes take them."""
        index = self.design.X.indices.dtype
        return (
            self.plain(X.data, X.dtype),
            self.plain(X.indices, index),
            self.plain(X.indptr, np.intp),
        )

    def product(self) -> Array:
        """X̃ᵀR; each column is summed by one thread, in the order of its rows."""
        design, R, n_results = self.design, self.R, self.program.n_results
        out = np.empty((design.n_features, n_results), self.dtype)
        if n_results:
            arrays = self._plain(design.by_columns)

            def work(cut: tuple[int, int]) -> None:
                room = np.empty((SUMMED_COLUMNS, R.shape[1]))
                self.add_columns(*arrays, *cut, R, room, out)

            cuts = list(pairwise(design.column_cuts))
            ordered_map(work, cuts, operations=design._operations(self.W))
            if design.intercept:
                out[-1] = self.totals.sum(axis=0)
        design.buffers[self.key] = self.kept
        return out

    def new_rows(self) -> list[Any]:
        """The arrays that the loop wrote to."""
        return [rows if self.program.n_new else None for rows in self.outputs]
