"""X as a NumPy array in memory, read where it lies: neither copied nor converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import blas, qr

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads, ordered_map
from admm_softmax.design.base import (
    BLOCK_BYTES,
    Design,
    Task,
    Worker,
    as_floating,
)
from admm_softmax.kernels.choice import FUSED_CLASSES

if TYPE_CHECKING:
    from admm_softmax.kernels.compiled.programs import Program

#: Bytes of X that go through both products of a compiled pass together.
FUSED_BYTES = 2 << 20

#: Rows of X converted to float64 at a time for the Gram matrix and for QR.
PANEL_BYTES = 64 << 20


class DenseDesign(Design):
    """X̃ = [X, 1] for a two-dimensional float32 or float64 array X of either order."""

    def __init__(self, X: Any, *, intercept: bool = True, n_threads: int | None = None) -> None:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional, got {X.ndim} dimensions")
        X = as_floating(X)
        super().__init__(X.shape, X.dtype, intercept, n_threads)
        self.X = X
        #: What passes add up in, kept for the next one: fresh memory costs more than the sums.
        self.buffers: dict[tuple[int, ...], Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Buffers fit the memory that X lies in here, and a copy's lies elsewhere.
        return {**self.__dict__, "buffers": {}, "kept": {}}

    def block(self, rows: slice) -> Any:
        """Rows of X: a view."""
        return self.X[rows]

    def block_rows(self) -> int:
        """As many rows as fit a megabyte, at least 64."""
        return int(max(64, BLOCK_BYTES // max(1, self.X.shape[1] * self.X.itemsize)))

    @property
    def entries(self) -> int:
        """All of them."""
        return int(self.X.size)

    def _worker(self, tasks: list[Task], W: Array, n_groups: int) -> Worker:
        """One compiled pass for few classes; BLAS for many, and for X in Fortran order."""
        K = W.shape[1] or tasks[0].rows[0].shape[1]
        flags = self.X.flags
        in_order = flags.c_contiguous and flags.aligned and self.X.dtype.isnative
        if in_order and K <= FUSED_CLASSES and self.compiles(K):
            from admm_softmax.kernels.compiled.programs import Program  # noqa: PLC0415

            if Program.knows(tasks[0].kernel):
                return FusedWorker(self, W, Program.of(tasks, tasks[0].W.shape[1]), n_groups)
        return super()._worker(tasks, W, n_groups)

    def gram(self, weights: Array, dtype: Any = np.float64) -> Any:
        """X̃ᵀ diag(w) X̃ by symmetric rank-k updates: half the work of a full product."""
        self._count(1)
        d = self.n_features
        G = np.zeros((d, d), dtype, order="F")
        update = blas.dsyrk if G.dtype == np.float64 else blas.ssyrk
        with blas_threads(self.n_threads):
            for panel in self._panels(weights, dtype=G.dtype):
                G = update(1.0, panel.T, beta=1.0, c=G, overwrite_c=1)
        mirror_upper(G)
        return G

    def row_gram(self, scale: Array) -> Any:
        """X diag(scale) Xᵀ, n × n, in the data's precision. One read."""
        self._count(1)
        n, d = self.X.shape
        G = np.zeros((n, n), self.dtype, order="F")
        update = blas.dsyrk if self.dtype == np.float64 else blas.ssyrk
        root = np.sqrt(scale).astype(self.dtype)
        size = max(1, PANEL_BYTES // (self.dtype.itemsize * n))
        with blas_threads(self.n_threads):
            for j in range(0, d, size):
                panel = np.asfortranarray((self.X[:, j : j + size] * root[j : j + size]).T)
                G = update(1.0, panel, trans=1, beta=1.0, c=G, overwrite_c=1)
        mirror_upper(G)
        return G

    def triangle(self, weights: Array) -> Array:
        """R of the QR factorisation of diag(√w) X̃, taken panel by panel."""
        self._count(1)
        R = np.zeros((0, self.n_features))
        with blas_threads(self.n_threads):
            for panel in self._panels(weights, at_least=self.n_features):
                R = qr(np.concatenate([R, panel]), mode="r", overwrite_a=True)[0]
                R = R[: self.n_features]
        return R

    def column_squares(self, weights: Array) -> Array:
        """Σᵢ wᵢ x̃ᵢⱼ² for every column j."""
        self._count(1)

        def part(rows: slice) -> Array:
            squares = np.square(self.X[rows])
            return np.asarray(weights[rows].astype(self.dtype) @ squares, dtype=np.float64)

        total = np.sum(ordered_map(part, self.partition(), self.n_threads), axis=0)
        return np.append(total, weights.sum()) if self.intercept else np.asarray(total)

    def outer(self, inverse_penalty: Callable[[Any], Array]) -> Array:
        """X P Xᵀ, n × n."""
        self._count(1)
        K = np.empty((self.n_rows, self.n_rows))
        size = max(1, PANEL_BYTES // (8 * self.X.shape[1]))
        cuts = [slice(i, i + size) for i in range(0, self.n_rows, size)]
        with blas_threads(self.n_threads):
            for columns in cuts:
                V = inverse_penalty(self.X[columns].T.astype(np.float64, copy=False))
                for rows in cuts:
                    K[rows, columns] = self.X[rows].astype(np.float64, copy=False) @ V
        return K

    def take(self, indices: Array, n_threads: int = 1) -> DenseDesign:
        """Some rows, copied."""
        self._count(len(indices) / self.n_rows)
        return DenseDesign(self.X[indices], intercept=self.intercept, n_threads=n_threads)

    def _panels(self, weights: Array, at_least: int = 1, dtype: Any = np.float64) -> Any:
        """Rows √wᵢ x̃ᵢ, a panel at a time, in C order."""
        d = self.n_features
        size = max(at_least, PANEL_BYTES // (np.dtype(dtype).itemsize * d), 1)
        root = np.sqrt(weights).astype(dtype)
        for i in range(0, self.n_rows, size):
            part = root[i : i + size, None]
            panel = np.empty((len(part), d), dtype)
            rows = self.X[i : i + size]
            np.multiply(rows, part, out=panel[:, : self.X.shape[1]], casting="same_kind")
            if self.intercept:
                panel[:, -1] = part[:, 0]
            yield panel


class FusedWorker(Worker):
    """Both products and the row kernel in one compiled loop, a few rows at a time."""

    def __init__(self, design: DenseDesign, W: Array, program: Program, n_groups: int) -> None:
        # Loads Numba: not before a problem is large enough.
        from admm_softmax.kernels.compiled import folds, thin  # noqa: PLC0415

        X, d = design.X, design.X.shape[1]
        self.fold, self.design, self.program = folds.fold_dense, design, program
        self.lead = thin.lead_of(X)
        self.Wt = thin.transposed(W[:d], X.dtype, self.lead)
        self.bias = np.ascontiguousarray(W[d] if design.intercept else np.zeros(W.shape[1]))
        self.width = int(np.clip(FUSED_BYTES // (d * X.itemsize), 8, 64)) // 4 * 4
        self.outputs = program.new_rows(design.n_rows)
        self.key = (n_groups, program.n_results, self.lead)
        kept = design.buffers.pop(self.key, None)
        if kept is None:
            parts = [
                thin.aligned(program.n_results, self.lead + d, X.dtype) for _ in range(n_groups)
            ]
            kept = parts, np.empty((n_groups, program.n_results, design.n_features))
        self.parts, self.totals = kept

    def run(self, numbered: tuple[int, slice]) -> Array:
        """One call of the compiled loop."""
        index, group = numbered
        program, design = self.program, self.design
        sums, total = program.sums(), self.totals[index]
        total[:] = 0.0
        self.fold(
            design.X, self.lead, group.start, group.stop, self.width, self.Wt, self.bias,
            design.intercept, program.code, program.settings, program.codes, program.soft,
            program.weights, program.which, program.state, self.outputs, self.parts[index],
            total, sums,
        )  # fmt: skip
        return sums

    def product(self) -> Array:
        """The sum over the groups, and the buffers back to the design."""
        total = self.totals.sum(axis=0)
        self.design.buffers[self.key] = (self.parts, self.totals)
        return np.ascontiguousarray(total.T)

    def new_rows(self) -> list[tuple[Array, ...]]:
        """As they were written."""
        return [(rows,) if self.program.n_new else () for rows in self.outputs]


def mirror_upper(G: Array, size: int = 512) -> None:
    """Copy the upper triangle onto the lower one in place, a block column at a time."""
    for i in range(0, len(G), size):
        j = min(i + size, len(G))
        G[i:j, :i] = G[:i, i:j].T
        G[i:j, i:j] = np.triu(G[i:j, i:j]) + np.triu(G[i:j, i:j], 1).T
