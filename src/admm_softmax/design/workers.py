"""How one pass over rows in memory runs: groups of rows, in parallel, in a fixed order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Protocol

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.design.fold import Request
from admm_softmax.kernels.row_kernel import Outcome, RowKernel


class Readable(Protocol):
    """What workers ask of the rows that they read."""

    n_rows: int
    n_features: int
    intercept: bool
    dtype: Any
    state_dtype: Any

    def block(self, rows: slice) -> Any:
        """Rows of X."""

    def block_rows(self) -> int:
        """The number of rows per block."""

    def room(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array for new rows, not filled."""


class Worker(ABC):
    """One pass in the making: runs on groups of rows, in any order and in parallel.

    A group may come in several parts, one after the other.
    """

    @abstractmethod
    def run(self, numbered: tuple[int, slice]) -> Array:
        """Fold the rows of one group, and return its sums, one row per request."""

    @abstractmethod
    def product(self) -> Array:
        """Σ X̃_bᵀ R_b over all groups, added up in their order, one request after the other."""

    @abstractmethod
    def new_rows(self) -> list[Any]:
        """The array of new rows of each request, None where its kernel has none."""


class BlasWorker(Worker):
    """Multiplies block by block with `@`, on whatever a block is."""

    def __init__(
        self,
        design: Readable,
        requests: list[Request],
        W: Array,
        n_groups: int,
        compiled: bool,
    ) -> None:
        self.design, self.requests = design, requests
        self.kernels = [_runnable(request.kernel, compiled) for request in requests]
        self.W = np.ascontiguousarray(W, dtype=design.dtype)
        self.outputs = [_room(design, request) for request in requests]
        self.parts: list[Array | None] = [None] * n_groups

    def run(self, numbered: tuple[int, slice]) -> Array:
        """Product, kernels, transposed product for every block of the group."""
        index, group = numbered
        design, size = self.design, self.design.block_rows()
        sums: Array | float = 0.0
        for i in range(group.start, group.stop, size):
            rows_b = slice(i, min(i + size, group.stop))
            block = design.block(rows_b)
            R, sums_b = self._run_kernels(rows_b, self._scores(block))
            sums = sums + sums_b
            if R is not None:
                part, kept = self._transpose_product(block, R), self.parts[index]
                if kept is None:
                    self.parts[index] = part
                else:
                    kept += part
        return np.asarray(sums)

    def _scores(self, block: Any) -> Array:
        """X̃_b W in float64: the product in the data's precision, all after it in double."""
        if not self.design.intercept:
            return np.asarray(block @ self.W, dtype=np.float64)
        scores = np.asarray(block @ self.W[:-1], dtype=np.float64)
        scores += self.W[-1]
        return scores

    def _run_kernels(self, rows_b: slice, scores: Array) -> tuple[Array | None, Array]:
        """Every request's kernel on its own scores; their R side by side, their sums in rows."""
        results, sums = [], []
        K = scores.shape[1] // len(self.requests)
        for g, (request, kernel) in enumerate(zip(self.requests, self.kernels, strict=True)):
            own = scores[:, g * K : (g + 1) * K]
            given = [_block(rows.held[rows_b]) for rows in request.rows]
            R, new_rows, own_sums = kernel(own, *given)
            if new_rows is not None:
                self.outputs[g][rows_b] = new_rows
            results.append(R)
            sums.append(own_sums)
        with_results = [R for R in results if R is not None]
        if len(with_results) < 2:
            return with_results[0] if with_results else None, np.stack(sums)
        return np.concatenate(with_results, axis=1), np.stack(sums)

    def _transpose_product(self, block: Any, R: Array) -> Array:
        design = self.design
        out = np.empty((design.n_features, R.shape[1]))
        d = design.n_features - design.intercept
        out[:d] = block.T @ R.astype(design.dtype, copy=False)
        if design.intercept:
            out[d] = R.sum(axis=0)
        return out

    def product(self) -> Array:
        """The sum of the groups' parts, written over the first."""
        parts = [part for part in self.parts if part is not None]
        if not parts:
            return np.zeros((self.design.n_features, 0))
        total, *others = parts
        for other in others:
            total += other
        return total

    def new_rows(self) -> list[Any]:
        """The arrays that the blocks were written to."""
        return self.outputs


def _runnable(kernel: RowKernel, compiled: bool) -> Any:
    """The kernel itself, or its compiled twin."""
    if not compiled or kernel.twin is None:
        return kernel
    from admm_softmax.kernels.compiled import programs  # noqa: PLC0415  (loads LLVM)

    run: partial[Outcome] = partial(programs.run, kernel)
    return run


def _block(block: Any) -> Any:
    """Kernels compute in double, also where row state is kept in single."""
    return block.astype(np.float64) if block.dtype == np.float32 else block


def _room(design: Readable, request: Request) -> Any:
    """An array for a request's new rows, None where its kernel has none."""
    if not request.kernel.new_rows:
        return None
    columns = request.kernel.new_rows * request.columns
    return design.room((design.n_rows, columns), design.state_dtype)
