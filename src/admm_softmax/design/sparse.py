"""X as a SciPy sparse matrix in memory. It is never densified as a whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads, ordered_map
from admm_softmax.design.base import (
    BLOCK_BYTES,
    Design,
    Task,
    Worker,
    as_floating,
)

if TYPE_CHECKING:
    from admm_softmax.kernels.compiled.programs import Program

#: A block's product with its transpose is a dense d × K matrix, so blocks are few.
MAX_BLOCKS = 64


#: Parts of about the same size that threads share in a product with the transpose.
COLUMN_PARTS = 32

#: Rows that go through a compiled pass together.
FUSED_ROWS = 32

#: What a dense panel of some rows may occupy.
PANEL_BYTES = 64 << 20


class SparseDesign(Design):
    """X̃ = [X, 1] for a sparse X; anything but CSR is converted to CSR once."""

    def __init__(self, X: Any, *, intercept: bool = True, n_threads: int | None = None) -> None:
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        X = as_floating(X)
        super().__init__(X.shape, X.dtype, intercept, n_threads)
        self.X = X

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
        """As many rows as hold a megabyte of entries, and few enough blocks."""
        a_row = max(1, self.X.nnz // max(1, self.n_rows)) * (self.X.dtype.itemsize + 4)
        return int(max(64, BLOCK_BYTES // a_row, -(-self.n_rows // MAX_BLOCKS)))

    @property
    def entries(self) -> int:
        """Those that are stored."""
        return int(self.X.nnz)

    @cached_property
    def columns(self) -> Any:
        """X stored by columns as well, for products with its transpose."""
        return self.X.tocsc()

    @cached_property
    def column_cuts(self) -> list[int]:
        """Where to cut the columns into parts of about the same number of entries."""
        shares = np.linspace(0, self.entries, COLUMN_PARTS + 1)[:-1]
        cuts = np.searchsorted(self.columns.indptr, shares)
        return [*map(int, cuts), self.X.shape[1]]

    def _worker(self, tasks: list[Task], W: Array, n_groups: int) -> Worker:
        """One compiled pass, where it pays."""
        if self.compiles(W.shape[1] or tasks[0].rows[0].shape[1]):
            from admm_softmax.kernels.compiled.programs import Program  # noqa: PLC0415

            if Program.knows(tasks[0].kernel):
                return CsrWorker(self, W, Program.of(tasks, tasks[0].W.shape[1]))
        return super()._worker(tasks, W, n_groups)

    def gram(self, weights: Array, dtype: Any = np.float64) -> Any:
        """X̃ᵀ diag(w) X̃: a sparse product, then dense because it fills in."""
        self._count(1)
        d = self.X.shape[1]
        G = np.zeros((self.n_features, self.n_features))
        root = np.sqrt(weights)
        scaled = self._scaled(root)
        # The same matrix on both sides: the product is symmetric to the last bit.
        G[:d, :d] = (scaled.T @ scaled).toarray()
        if self.intercept:
            G[:d, d] = G[d, :d] = scaled.T @ root
            G[d, d] = weights.sum()
        return G.astype(dtype, copy=False)

    def triangle(self, weights: Array) -> Array:
        """R of the QR factorisation of diag(√w) X̃, a dense panel of rows at a time."""
        self._count(1)
        R = np.zeros((0, self.n_features))
        scaled = self._scaled(np.sqrt(weights))
        with blas_threads(self.n_threads):
            for i in range(0, self.n_rows, self.n_features):
                panel = np.empty((min(self.n_features, self.n_rows - i), self.n_features))
                panel[:, : self.X.shape[1]] = scaled[i : i + len(panel)].toarray()
                if self.intercept:
                    panel[:, -1] = np.sqrt(weights[i : i + len(panel)])
                R = qr(np.concatenate([R, panel]), mode="r", overwrite_a=True)[0]
                R = R[: self.n_features]
        return R

    def column_squares(self, weights: Array) -> Array:
        """Σᵢ wᵢ x̃ᵢⱼ² for every column j."""
        self._count(1)
        squares = self.X.astype(np.float64).power(2).T @ weights
        return np.append(squares, weights.sum()) if self.intercept else np.asarray(squares)

    def outer(self, inverse_penalty: Callable[[Any], Array]) -> Array:
        """X P Xᵀ, n × n dense."""
        self._count(1)
        X = self.X.astype(np.float64)
        K = np.empty((self.n_rows, self.n_rows))
        size = max(1, PANEL_BYTES // (8 * X.shape[1]))
        for i in range(0, self.n_rows, size):
            product = X @ inverse_penalty(X[i : i + size].T.tocsc())
            K[:, i : i + size] = product.toarray() if sp.issparse(product) else product
        return K

    def take(self, indices: Array, n_threads: int = 1) -> SparseDesign:
        """Some rows, copied."""
        self._count(len(indices) / self.n_rows)
        return SparseDesign(self.X[indices], intercept=self.intercept, n_threads=n_threads)

    def _scaled(self, factor: Array) -> Any:
        return sp.csr_array(sp.diags_array(factor) @ self.X.astype(np.float64))


class CsrWorker(Worker):
    """Scores and row kernel over CSR rows, then the product over CSC columns."""

    def __init__(self, design: SparseDesign, W: Array, program: Program) -> None:
        # Loads Numba: not before a problem is large enough.
        from admm_softmax.kernels.compiled import folds, gather  # noqa: PLC0415

        d = design.X.shape[1]
        self.folds, self.design, self.program = folds, design, program
        self.W = gather.padded_columns(W[:d], design.dtype)
        self.bias = np.ascontiguousarray(W[d] if design.intercept else np.zeros(W.shape[1]))
        self.outputs = program.new_rows(design.n_rows)
        self.R = gather.padded_columns(np.zeros((design.n_rows, program.n_results)))

    def run(self, numbered: tuple[int, slice]) -> Array:
        """One call of the compiled loop."""
        _, group = numbered
        program, X = self.program, self.design.X
        sums = program.sums()
        self.folds.fold_csr(
            X.data, X.indices, X.indptr, group.start, group.stop, FUSED_ROWS, self.W, self.bias,
            program.code, program.settings, program.codes, program.soft, program.weights,
            program.which, program.state, self.outputs, program.n_results, self.R, sums,
        )  # fmt: skip
        return sums

    def product(self) -> Array:
        """X̃ᵀR; each column is summed by one thread, in the order of its rows."""
        design, R = self.design, self.R
        out = np.empty((design.n_features, R.shape[1]))
        if not R.shape[1]:
            return out
        columns = design.columns

        def work(cut: tuple[int, int]) -> None:
            arrays = columns.data, columns.indices, columns.indptr
            self.folds.add_columns(*arrays, *cut, R, out)

        ordered_map(work, list(pairwise(design.column_cuts)), design.n_threads)
        if design.intercept:
            out[-1] = R.sum(axis=0)
        return np.ascontiguousarray(out[:, : self.program.n_results])

    def new_rows(self) -> list[tuple[Array, ...]]:
        """As they were written."""
        return [(rows,) if self.program.n_new else () for rows in self.outputs]
