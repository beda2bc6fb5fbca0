"""The Design contract, and the fold over row blocks that in-memory designs share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import check_threads, ordered_map

#: kernel(scores, *rows) -> (R or None, new_rows, sums); see `admm_softmax.kernels`.
Kernel: TypeAlias = Callable[..., tuple[Array | None, tuple[Array, ...], Array]]

#: Bytes of X in one block: small enough for a core's cache, large enough for BLAS.
BLOCK_BYTES = 1 << 20
#: At most so many groups of blocks are summed separately, whatever the thread count.
MAX_GROUPS = 64
#: What those partial sums may occupy together.
GROUP_BYTES = 256 << 20


@dataclass(frozen=True)
class Fold:
    """What one read of X returns: Σ_b X_bᵀ R_b, the new rows, and the summed scalars.

    Where the kernel had no R, `product` has no columns.
    """

    product: Array
    rows: tuple[Array, ...]
    sums: Array


class Design(ABC):
    """The matrix X̃ = [X, 1] (n × d, the constant column only with an intercept).

    X̃ is never formed: the constant column is implied in every product. Subclasses
    provide blocks of rows; everything a solver does with X is one of these ::

        fold(W, kernel, rows)   Σ_b X̃_bᵀ R_b,  R_b from kernel(X̃_b W, *rows_b)
        gram(weights)           X̃ᵀ diag(w) X̃           d × d
        triangle(weights)       R with RᵀR = gram, by QR without forming it
        outer(...)              X P Xᵀ                  n × n, for wide X
        take(indices)           some rows, as a design of their own

    Each counts the times it reads X in `reads`.
    """

    n_rows: int
    #: Columns of X̃, and so rows of W: the intercept counts.
    n_features: int
    dtype: np.dtype[Any]
    intercept: bool
    n_threads: int
    #: How often X was read; part of the rows is part of a read.
    reads: float

    def __init__(
        self, shape: tuple[int, int], dtype: Any, intercept: bool, n_threads: int | None
    ) -> None:
        self.n_rows, n_columns = shape
        if self.n_rows < 1 or n_columns < 1:
            raise ValueError(f"X must have rows and columns, got shape {shape}")
        self.n_features = n_columns + bool(intercept)
        self.dtype = np.dtype(dtype)
        self.intercept = bool(intercept)
        self.n_threads = check_threads(n_threads)
        self.reads = 0.0

    @abstractmethod
    def block(self, rows: slice) -> Any:
        """Rows of X, as something that multiplies (`@`) and transposes (`.T`)."""

    @abstractmethod
    def block_rows(self) -> int:
        """How many rows make a block. A function of X alone, never of the threads."""

    @abstractmethod
    def gram(self, weights: Array) -> Array:
        """X̃ᵀ diag(weights) X̃, symmetric, float64. One read."""

    @abstractmethod
    def triangle(self, weights: Array) -> Array:
        """An upper triangular (or trapezoidal) R with RᵀR = gram(weights). One read."""

    @abstractmethod
    def column_squares(self, weights: Array) -> Array:
        """The diagonal of `gram(weights)`. One read."""

    @abstractmethod
    def outer(self, inverse_penalty: Callable[[Any], Array]) -> Array:
        """X P Xᵀ without the constant column, P given by its action on Xᵀ. One read."""

    @abstractmethod
    def take(self, indices: Array, n_threads: int = 1) -> Design:
        """A design of some rows, copied. Part of a read."""

    def fold(self, W: Array, kernel: Kernel, rows: Sequence[Array] = ()) -> Fold:
        """Run `kernel` over every block of X̃ W and sum X̃_bᵀ R_b. One read."""
        self.reads += 1
        blocks = self.partition()
        groups = self._groups(blocks, W)
        W_data = np.ascontiguousarray(W, dtype=self.dtype)
        outputs = _RowOutputs(self.n_rows)

        def work(group: Sequence[slice]) -> tuple[Array | None, Array]:
            product: Array | None = None
            sums: Array | float = 0.0
            for rows_b in group:
                R, new_rows, sums_b = kernel(
                    self._scores(rows_b, W_data), *[array[rows_b] for array in rows]
                )
                outputs.store(rows_b, new_rows)
                sums = sums + sums_b
                if R is not None:
                    part = self._transpose_product(rows_b, R)
                    if product is None:
                        product = part
                    else:
                        product += part
            return product, np.asarray(sums)

        parts = ordered_map(work, groups, self.n_threads if len(blocks) > 1 else 1)
        products = [product for product, _ in parts if product is not None]
        return Fold(
            product=sum(products[1:], start=products[0]) if products else self._no_product(),
            rows=outputs.arrays,
            sums=np.asarray(sum(sums for _, sums in parts)),
        )

    def _no_product(self) -> Array:
        return np.zeros((self.n_features, 0))

    def partition(self) -> list[slice]:
        """The fixed cut of the rows into blocks."""
        size = max(1, self.block_rows())
        return [slice(i, min(i + size, self.n_rows)) for i in range(0, self.n_rows, size)]

    def _groups(self, blocks: list[slice], W: Array) -> list[list[slice]]:
        # A kernel's R may be twice as wide as W (ADMM's is).
        by_memory = GROUP_BYTES // max(1, 16 * W.size)
        count = int(min(len(blocks), MAX_GROUPS, max(4, by_memory)))
        cuts = np.linspace(0, len(blocks), count + 1).astype(int)
        return [blocks[i:j] for i, j in pairwise(cuts)]

    def _scores(self, rows: slice, W: Any) -> Array:
        """X̃_b W in float64: the product in the data's precision, all after it in double."""
        if not self.intercept:
            return np.asarray(self.block(rows) @ W, dtype=np.float64)
        scores = np.asarray(self.block(rows) @ W[:-1], dtype=np.float64)
        scores += W[-1]
        return scores

    def _transpose_product(self, rows: slice, R: Array) -> Array:
        out = np.empty((self.n_features, R.shape[1]))
        d = self.n_features - self.intercept
        out[:d] = self.block(rows).T @ R.astype(self.dtype, copy=False)
        if self.intercept:
            out[d] = R.sum(axis=0)
        return out


def as_floating(X: Any) -> Any:
    """X itself if it is float32 or float64, else converted to float64."""
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got type {X.dtype}")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


class _RowOutputs:
    """Arrays of n rows, filled block by block; shapes are learnt from the first block."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.arrays: tuple[Array, ...] = ()

    def store(self, rows: slice, new_rows: tuple[Array, ...]) -> None:
        if new_rows and not self.arrays:
            arrays = tuple(np.empty((self.n_rows, *a.shape[1:])) for a in new_rows)
            # Two threads may both arrive first; setdefault is atomic, so one pair wins.
            self.arrays = self.__dict__.setdefault("_first", arrays)
        for array, new in zip(self.arrays, new_rows, strict=bool(new_rows)):
            array[rows] = new
