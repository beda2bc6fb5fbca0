"""Rows that can be read block by block: all passes, given a function that returns a block."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, qr

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads, ordered_map
from admm_softmax.design.base import Design, Sample
from admm_softmax.design.fold import Fold, Request
from admm_softmax.design.rows import Rows
from admm_softmax.design.workers import BlasWorker, Worker
from admm_softmax.kernels.row_kernel import Sums
from admm_softmax.sources import RowBlocks

#: Bytes of X in one block: small enough for a core's cache, large enough for BLAS. With a quarter,
#: this and four times as many passes over 1,500 × 500 with ten classes take 2.2, 2.3 and 1.7 ms on
#: an Emerald Rapids with AVX-512, over 5,000 × 64 with eight 2.4, 2.3 and 3.0 ms; held to AVX2 3.4,
#: 2.5 and 2.2, and 2.7, 2.4 and 3.0 ms.
BLOCK_BYTES = 1 << 20
#: The most groups of blocks that are summed separately, whatever the thread count.
MAX_GROUPS = 16
#: Bytes that those partial sums may occupy together in double; compiled passes have others beside
#: them, in the precision of the data.
GROUP_BYTES = 64 << 20
#: Sums of more bytes than a core's cache holds are written and read anew by every group: then a
#: group has at least so many rows, of which the products take fifty times as long. On an Emerald
#: Rapids passes over 4,000 × 768 with 100 classes take 12.8, 13.5 and 14.8 ms with 512, 1,024 and
#: 2,048; held to AVX2 18.0, 17.8 and 19.2 ms.
LARGE_SUM = 256 << 10
LARGE_SUM_ROWS = 1024
#: Groups begin at multiples of so many rows, so that they are of about the same size.
CUT_ROWS = 64
#: What a row kernel costs per score, in multiplications of a product: an exponential and others. By
#: passes over 40,000 × 16 and 40,000 × 96 with ten classes on one thread of an Emerald Rapids 100
#: with AVX-512, which multiplies faster, and 18 held to AVX2; it counts for the choice of threads.
ROW_KERNEL = 60
#: Rows of weight zero stay in a product if more than this share of the rows has weight.
KEPT_ABOVE = 0.95
#: Bytes that a dense panel of rows may occupy.
PANEL_BYTES = 64 << 20


class RowBlockDesign(Design):
    """X̃ = [X, 1] for an X whose rows can be read by slices, with row state as NumPy arrays.

    A subclass must define `__init__` and `block` only; it may override `rows_at`, `block_rows`
    and the passes where it has a faster way.
    """

    can_form_row_gram = True
    can_take_columns = True

    def __init__(
        self, shape: tuple[int, int], dtype: Any, intercept: bool, state_dtype: Any = np.float64
    ) -> None:
        super().__init__(shape, dtype, intercept)
        #: What row state (Z, P) is kept in: float64, or float32 for half the memory.
        self.state_dtype = np.dtype(state_dtype)

    @abstractmethod
    def block(self, rows: slice) -> Any:
        """Rows of X, as something that multiplies (`@`) and transposes (`.T`)."""

    def block_rows(self) -> int:
        """The number of rows per block. It depends on X alone, never on the threads."""
        n_columns = self.n_features - self.intercept
        return int(max(64, BLOCK_BYTES // (n_columns * self.dtype.itemsize)))

    def rows_at(self, indices: Any) -> Any:
        """Rows of X at increasing positions, copied."""
        cuts = [np.searchsorted(indices, [part.start, part.stop]) for part in self.partition()]
        found = [
            self.block(part)[indices[i:j] - part.start]
            for part, (i, j) in zip(self.partition(), cuts, strict=True)
            if j > i
        ]
        return stacked(found)

    @property
    def entries(self) -> int:
        """The number of entries of X, as for a dense matrix."""
        return self.n_rows * (self.n_features - self.intercept)

    def partition(self) -> list[slice]:
        """The fixed cut of the rows into blocks."""
        size = max(1, self.block_rows())
        return [slice(i, min(i + size, self.n_rows)) for i in range(0, self.n_rows, size)]

    # ---- passes over X ----

    def _fold_batch(self, requests: list[Request], compiled: bool) -> list[Fold]:
        W = np.concatenate([r.W for r in requests], axis=1) if len(requests) > 1 else requests[0].W
        groups = self._groups(W)
        worker = self._worker(requests, W, len(groups), compiled)
        numbered = list(enumerate(groups))
        sums = reduce(np.add, ordered_map(worker.run, numbered, operations=self._operations(W)))
        product = worker.product()
        products = [product] if len(requests) == 1 else np.split(product, len(requests), axis=1)
        folds = []
        for i, new_rows in enumerate(worker.new_rows()):
            rows = None if new_rows is None else self._placed(new_rows)
            folds.append(Fold(products[i], rows, Sums(requests[i].kernel.sums, sums[i])))
        return folds

    def _worker(self, requests: list[Request], W: Array, n_groups: int, compiled: bool) -> Worker:
        """The worker that folds the groups of one pass; here by BLAS, block by block."""
        return BlasWorker(self, requests, W, n_groups, compiled)

    def _operations(self, W: Array) -> float:
        """Multiplications in one pass: two for each entry of X, ROW_KERNEL for each score."""
        return float((2 * self.entries + ROW_KERNEL * self.n_rows) * W.shape[1])

    def use_buffers(self, buffers: dict[tuple[Hashable, ...], Any]) -> None:
        """Work in what passes over other rows of the same width have left; here none is kept."""

    def _groups(self, W: Array) -> list[slice]:
        """The fixed cut of the rows into groups, each summed on its own by one thread."""
        size = max(1, self.block_rows())
        if size >= self.n_rows:
            return [slice(0, self.n_rows)]
        n_blocks = -(-self.n_rows // size)
        # A kernel's R may be twice as wide as W (ADMM's is).
        by_memory = GROUP_BYTES // max(1, 16 * W.size)
        count = int(min(n_blocks, MAX_GROUPS, max(4, by_memory)))
        if 8 * W.size > LARGE_SUM:
            while count > 4 and self.n_rows < LARGE_SUM_ROWS * count:
                count //= 2
        unit = min(size, CUT_ROWS)
        cuts = np.linspace(0, -(-self.n_rows // unit), count + 1).astype(int) * unit
        return [slice(int(i), int(min(j, self.n_rows))) for i, j in pairwise(cuts)]

    def gram(self, weights: Rows, dtype: Any = np.float64) -> Any:
        """X̃ᵀ diag(w) X̃ by symmetric rank-k updates: half the work of a full product."""
        d = self.n_features
        G = np.zeros((d, d), dtype, order="F")
        update = blas.dsyrk if G.dtype == np.float64 else blas.ssyrk
        with blas_threads(operations=float(self.n_rows) * d * d):
            for panel in self._panels(weights, dtype=G.dtype):
                G = update(1.0, panel.T, beta=1.0, c=G, overwrite_c=1)
        mirror_upper(G)
        return G

    def triangle(self, weights: Rows) -> Array:
        """R of the QR factorisation of diag(√w) X̃, taken panel by panel."""
        R = np.zeros((0, self.n_features))
        with blas_threads(operations=2.0 * self.n_rows * self.n_features**2):
            for panel in self._panels(weights, at_least=self.n_features):
                R = next_triangle(R, panel)
        return R

    def column_squares(self, weights: Rows) -> Array:
        """Σᵢ wᵢ x̃ᵢⱼ² for every column j."""
        self._reads.add(1)
        w = weights.held

        def part(rows: slice) -> Array:
            squares = w[rows].astype(self.dtype) @ np.square(self.block(rows))
            return np.asarray(squares, dtype=np.float64)

        total = np.sum(ordered_map(part, self.partition()), axis=0)
        return np.append(total, w.sum()) if self.intercept else np.asarray(total)

    def transformed(self, function: Callable[[Any], Any]) -> Design:
        """The rows put through a function at every pass, so that X is not copied."""
        from admm_softmax.design.streamed import StreamedDesign  # noqa: PLC0415  (a cycle)

        def blocks() -> Iterator[Any]:
            for part in self.partition():
                yield function(self.block(part))

        n, d = self.shape
        rows = RowBlocks(blocks, n_rows=n, n_features=d, dtype=self.dtype)
        return StreamedDesign(rows, intercept=self.intercept)

    def row_products(self, inverse_penalty: Callable[[Any], Array]) -> Array:
        """X P Xᵀ, n × n, by panels of columns."""
        self._reads.add(1)
        M = np.empty((self.n_rows, self.n_rows))
        size = max(1, PANEL_BYTES // (8 * (self.n_features - self.intercept)))
        cuts = [slice(i, min(i + size, self.n_rows)) for i in range(0, self.n_rows, size)]
        with blas_threads(operations=float(self.n_rows) ** 2 * self.n_features):
            for columns in cuts:
                V = inverse_penalty(self.block(columns).T.astype(np.float64, copy=False))
                for rows in cuts:
                    M[rows, columns] = dense(self.block(rows).astype(np.float64, copy=False) @ V)
        return M

    def _panels(self, weights: Rows, at_least: int = 1, dtype: Any = np.float64) -> Iterator[Any]:
        """Rows √wᵢ x̃ᵢ of those that have weight, panel by panel, in C order. Counts a read."""
        chosen, w = rows_with_weight(weights.held), weights.held
        n, d = self.n_rows if chosen is None else len(chosen), self.n_features
        self._reads.add(n / self.n_rows)
        size = max(at_least, PANEL_BYTES // (np.dtype(dtype).itemsize * d), 1)
        for i in range(0, n, size):
            part = slice(i, min(i + size, n))
            rows = self.block(part) if chosen is None else self.rows_at(chosen[part])
            root = np.sqrt(w[part] if chosen is None else w[chosen[part]]).astype(dtype)[:, None]
            panel = np.empty((len(root), d), dtype)
            out = panel[:, : d - self.intercept]
            np.multiply(dense(rows), root, out=out, casting="same_kind")
            if self.intercept:
                panel[:, -1] = root[:, 0]
            yield panel

    def as_matrix(self) -> Array:
        """X̃ as one dense float64 array, copied from rows that are in memory."""
        if not self.is_in_memory:
            return super().as_matrix()
        self._reads.add(1)
        X, d = np.empty((self.n_rows, self.n_features)), self.shape[1]
        X[:, :d] = dense(self.block(slice(0, self.n_rows)))
        X[:, d:] = 1.0
        return X

    # ---- rows ----

    def _placed(self, array: Any) -> Rows:
        return Rows(array, len(array), None if array.ndim == 1 else array.shape[1])

    def room(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A new array for row state, not filled."""
        return np.empty(shape, dtype)

    def zeros(self, columns: int) -> Rows:
        """A handle to a new array of zeros."""
        return self._placed(np.zeros((self.n_rows, columns), self.state_dtype))

    def gather(self, rows: Rows) -> Any:
        """The array behind the handle, not a copy."""
        self._check_rows(rows)
        return rows.held

    def map_rows(self, function: Callable[..., Any], *rows: Rows) -> Rows:
        """The function applied to whole arrays."""
        return self.place(function(*[self.gather(r) for r in rows]))

    def total(self, rows: Rows) -> float:
        """The sum of the array's entries."""
        return float(self.gather(rows).sum())

    def take(self, indices: Any, *rows: Rows) -> Sample:
        """The rows at increasing positions, copied into memory."""
        self._reads.add(len(indices) / self.n_rows)
        design = self.in_memory(self.rows_at(indices))
        return Sample(design, tuple(design.place(self.gather(r)[indices]) for r in rows))

    def columns(self, features: Any) -> RowBlockDesign:
        """Some columns of every block, put together in memory."""
        self._reads.add(1)
        parts = ordered_map(lambda rows: self.block(rows)[:, features], self.partition())
        return self.in_memory(stacked(parts))

    def in_memory(self, X: Any) -> RowBlockDesign:
        """A design in memory for rows that were copied out of this one."""
        from admm_softmax.design import DenseDesign, SparseDesign  # noqa: PLC0415  (a cycle)

        kind = SparseDesign if sp.issparse(X) else DenseDesign
        return kind(X, intercept=self.intercept, state_dtype=self.state_dtype)

    def fingerprint(self, digest: Any, *rows: Rows) -> None:
        """Feed the bytes of every block of X, and of the rows, to the digest."""
        digest.update(repr((self.n_rows, self.n_features, self.intercept)).encode())
        for part in self.partition():
            block = self.block(part)
            sparse = sp.issparse(block)
            feed(digest, [block.data, block.indices, block.indptr] if sparse else [block])
        feed(digest, [self.gather(r) for r in rows])


def feed(digest: Any, arrays: list[Any]) -> None:
    """Feed arrays, with their shapes and types, to a digest."""
    for part in arrays:
        array = np.ascontiguousarray(part)
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(array.view(np.uint8).reshape(-1).data if array.size else b"")


def rows_with_weight(weights: Array) -> Any:
    """The positions of the rows that have weight; None where that is nearly all of them.

    Selecting rows costs a copy; keeping a row costs d multiplications per entry.
    """
    chosen = np.flatnonzero(weights)
    return chosen if len(chosen) <= KEPT_ABOVE * len(weights) else None


def dense(block: Any) -> Any:
    """A block as a NumPy array."""
    return block.toarray() if sp.issparse(block) else block


def stacked(blocks: list[Any]) -> Any:
    """Blocks of rows as one, sparse where all of them are."""
    if len(blocks) == 1:
        return blocks[0]
    if all(map(sp.issparse, blocks)):
        return sp.vstack(blocks, format="csr")
    return np.concatenate([dense(block) for block in blocks])


def next_triangle(R: Array, panel: Array) -> Array:
    """The triangle of [R; panel] by QR."""
    below = qr(np.concatenate([R, panel]), mode="r", overwrite_a=True)[0]
    return np.asarray(below[: R.shape[1]])


def mirror_upper(G: Array, size: int = 512) -> None:
    """Copy the upper triangle onto the lower one in place, one block column at a time."""
    for i in range(0, len(G), size):
        j = min(i + size, len(G))
        G[i:j, :i] = G[:i, i:j].T
        G[i:j, i:j] = np.triu(G[i:j, i:j]) + np.triu(G[i:j, i:j], 1).T


def as_floating(X: Any) -> Any:
    """X itself if it is float32 or float64, else converted to float64."""
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got type {X.dtype}")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
