"""The Design contract, and the fold over row blocks that in-memory designs share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import check_threads, ordered_map
from admm_softmax.kernels import choice
from admm_softmax.kernels.rows import LABELLED, function_and_settings

#: kernel(scores, *rows) -> (R or None, new_rows, sums); see `admm_softmax.kernels`.
Kernel: TypeAlias = Callable[..., tuple[Array | None, tuple[Array, ...], Array]]

#: Bytes of X in one block: small enough for a core's cache, large enough for BLAS.
BLOCK_BYTES = 1 << 20
#: At most so many groups of blocks are summed separately, whatever the thread count.
MAX_GROUPS = 16
#: What those partial sums may occupy together.
GROUP_BYTES = 64 << 20
#: Columns of W, all tasks together, that go through one read; more would gain nothing.
MOST_COLUMNS = 200


class Task(NamedTuple):
    """What one read of X is asked for: the scores X̃W, through a kernel with its row inputs."""

    W: Array
    kernel: Kernel
    rows: tuple[Array, ...] = ()

    @property
    def kind(self) -> Hashable:
        """Tasks of the same kind can share a read: same kernel and labels, equal shapes."""
        function, settings = function_and_settings(self.kernel)
        labels = id(self.rows[0]) if function in LABELLED else None
        shapes = self.W.shape, *(array.shape[1:] for array in self.rows)
        return function, settings.get("with_gradient"), labels, shapes


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
        fold_together(tasks)    the same for several W, in as few reads
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
    #: Who takes a guest's tasks; see `guest`.
    host: Callable[[Task], Fold] | None = None
    origin: Design | None = None

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
        #: What was made of X alone and may serve again; guests share it.
        self.kept: dict[str, Any] = {}

    @abstractmethod
    def block(self, rows: slice) -> Any:
        """Rows of X, as something that multiplies (`@`) and transposes (`.T`)."""

    @abstractmethod
    def block_rows(self) -> int:
        """How many rows make a block. A function of X alone, never of the threads."""

    @abstractmethod
    def gram(self, weights: Array, dtype: Any = np.float64) -> Any:
        """X̃ᵀ diag(weights) X̃, symmetric. One read.

        In float64 the products and sums are in double whatever X is stored in. In float32
        both are in single, several times as fast.
        """

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
        task = Task(np.asarray(W), kernel, tuple(rows))
        if self.host is None:
            return self.fold_together([task])[0]
        self._check(task)
        self.reads += 1
        return self.host(task)

    def fold_together(self, tasks: Sequence[Task]) -> list[Fold]:
        """One fold a task. Those of a kind share a read: X meets their W side by side."""
        folds: dict[int, Fold] = {}
        for numbers in self._batches(tasks):
            folds.update(zip(numbers, self._share_read([tasks[i] for i in numbers]), strict=True))
        return [folds[i] for i in range(len(tasks))]

    def guest(self, host: Callable[[Task], Fold]) -> Self:
        """The same rows, for one of several users who go through them together.

        A guest's folds are handed to `host`, and its `reads` count what it asked for.
        """
        guest = copy(self)
        guest.host, guest.reads, guest.origin = host, 0.0, self
        return guest

    def _count(self, reads: float) -> None:
        """Count a read that is no fold; a guest's is its host's too."""
        self.reads += reads
        if self.origin is not None:
            self.origin.reads += reads

    def _batches(self, tasks: Sequence[Task]) -> list[list[int]]:
        batches: list[list[int]] = []
        last: dict[Hashable, list[int]] = {}
        for i, task in enumerate(tasks):
            self._check(task)
            batch = last.get(task.kind)
            if batch is None or (len(batch) + 1) * task.W.shape[1] > MOST_COLUMNS:
                batch = last[task.kind] = []
                batches.append(batch)
            batch.append(i)
        return batches

    def _check(self, task: Task) -> None:
        if task.W.ndim != 2 or task.W.shape[0] != self.n_features:
            raise ValueError(f"W must have {self.n_features} rows, got shape {task.W.shape}")
        for array in task.rows:  # compiled code does not look
            if len(array) != self.n_rows:
                raise ValueError(f"row arrays must have {self.n_rows} rows, got {len(array)}")

    def _share_read(self, tasks: list[Task]) -> list[Fold]:
        self.reads += 1
        W = tasks[0].W if len(tasks) == 1 else np.concatenate([task.W for task in tasks], axis=1)
        groups = self._groups(W)
        worker = self._worker(tasks, W, len(groups))
        sums = np.asarray(sum(ordered_map(worker.run, list(enumerate(groups)), self.n_threads)))
        products = np.split(worker.product(), len(tasks), axis=1)
        return [Fold(*parts) for parts in zip(products, worker.new_rows(), sums, strict=True)]

    def _worker(self, tasks: list[Task], W: Array, n_groups: int) -> Worker:
        """What folds the groups of one pass; this one by BLAS, block by block."""
        return BlasWorker(self, tasks, W, n_groups)

    def row_kernel(self, kernel: Kernel, n_columns: int) -> Kernel:
        """The kernel, or its compiled twin where the scores are many."""
        if not self.compiles(n_columns):
            return kernel
        from admm_softmax.kernels.compiled import programs  # noqa: PLC0415  (loads Numba)

        return partial(programs.run, kernel) if programs.Program.knows(kernel) else kernel

    def compiles(self, n_classes: int) -> bool:
        """Whether passes over so many classes are worth loading compiled code for."""
        return choice.repays_compiling(self.n_rows, self.entries, n_classes)

    @property
    @abstractmethod
    def entries(self) -> int:
        """How many entries of X are stored."""

    def _groups(self, W: Array) -> list[slice]:
        """The fixed cut of the rows into groups, each summed on its own by one thread."""
        size = max(1, self.block_rows())
        n_blocks = -(-self.n_rows // size)
        # A kernel's R may be twice as wide as W (ADMM's is).
        by_memory = GROUP_BYTES // max(1, 16 * W.size)
        count = int(min(n_blocks, MAX_GROUPS, max(4, by_memory)))
        cuts = np.linspace(0, n_blocks, count + 1).astype(int) * size
        return [slice(int(i), int(min(j, self.n_rows))) for i, j in pairwise(cuts)]

    def partition(self) -> list[slice]:
        """The fixed cut of the rows into blocks."""
        size = max(1, self.block_rows())
        return [slice(i, min(i + size, self.n_rows)) for i in range(0, self.n_rows, size)]

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


class Worker(ABC):
    """One pass in the making: runs on groups of rows, in any order and in parallel."""

    @abstractmethod
    def run(self, numbered: tuple[int, slice]) -> Array:
        """Fold the rows of one group, and return its sums, a row a task."""

    @abstractmethod
    def product(self) -> Array:
        """Σ X̃_bᵀ R_b over all groups, added up in their order, one task after the other."""

    @abstractmethod
    def new_rows(self) -> list[tuple[Array, ...]]:
        """The rows that each task's kernel returned."""


class BlasWorker(Worker):
    """Multiplies block by block with `@`, on whatever a block is."""

    def __init__(self, design: Design, tasks: list[Task], W: Array, n_groups: int) -> None:
        self.design, self.tasks = design, tasks
        self.kernels = [design.row_kernel(task.kernel, W.shape[1]) for task in tasks]
        self.W = np.ascontiguousarray(W, dtype=design.dtype)
        self.outputs = [RowOutputs(design.n_rows) for _ in tasks]
        self.parts: list[Array | None] = [None] * n_groups

    def run(self, numbered: tuple[int, slice]) -> Array:
        """Product, kernels, transposed product for every block of the group."""
        index, group = numbered
        design, size = self.design, self.design.block_rows()
        sums: Array | float = 0.0
        for i in range(group.start, group.stop, size):
            rows_b = slice(i, min(i + size, group.stop))
            R, sums_b = self._kernels(rows_b, design._scores(rows_b, self.W))
            sums = sums + sums_b
            if R is not None:
                part, kept = design._transpose_product(rows_b, R), self.parts[index]
                if kept is None:
                    self.parts[index] = part
                else:
                    kept += part
        return np.asarray(sums)

    def _kernels(self, rows_b: slice, scores: Array) -> tuple[Array | None, Array]:
        """Every task's kernel on its own scores; their R side by side, their sums in rows."""
        results, sums = [], []
        K = scores.shape[1] // len(self.tasks)
        for g, (task, kernel) in enumerate(zip(self.tasks, self.kernels, strict=True)):
            own = scores[:, g * K : (g + 1) * K]
            R, new_rows, own_sums = kernel(own, *[array[rows_b] for array in task.rows])
            self.outputs[g].store(rows_b, new_rows)
            results.append(R)
            sums.append(own_sums)
        with_results = [R for R in results if R is not None]
        if len(with_results) < 2:
            return with_results[0] if with_results else None, np.stack(sums)
        return np.concatenate(with_results, axis=1), np.stack(sums)

    def product(self) -> Array:
        """The sum of the groups' parts, written over the first."""
        parts = [part for part in self.parts if part is not None]
        if not parts:
            return np.zeros((self.design.n_features, 0))
        total, *others = parts
        for other in others:
            total += other
        return total

    def new_rows(self) -> list[tuple[Array, ...]]:
        """As they were stored."""
        return [output.arrays for output in self.outputs]


class RowOutputs:
    """Arrays of n rows, filled block by block; shapes are learnt from the first block."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.arrays: tuple[Array, ...] = ()

    def store(self, rows: slice, new_rows: tuple[Array, ...]) -> None:
        """Put a block's new rows in their place."""
        if new_rows and not self.arrays:
            arrays = tuple(np.empty((self.n_rows, *a.shape[1:])) for a in new_rows)
            # Two threads may both arrive first; setdefault is atomic, so one pair wins.
            self.arrays = self.__dict__.setdefault("_first", arrays)
        for array, new in zip(self.arrays, new_rows, strict=bool(new_rows)):
            array[rows] = new
