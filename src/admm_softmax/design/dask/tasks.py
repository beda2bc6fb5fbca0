"""What workers run: pure functions of one partition, or of a few results to add up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof
from distributed import get_worker

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads, use_threads
from admm_softmax.design import as_design
from admm_softmax.design.blocks import RowBlockDesign, next_triangle
from admm_softmax.design.fold import Request
from admm_softmax.kernels.row_kernel import RowKernel

#: Room for the sums of compiled passes, shared by all partitions of a worker with such rows:
#: kept per partition it would take GROUP_BYTES and more in each.
_buffers: dict[tuple[int, str], dict[Any, Any]] = {}


class Facts(NamedTuple):
    """What the client must know of a partition."""

    n_rows: int
    n_columns: int
    dtype: Any
    is_sparse: bool
    entries: int
    rounding: float


@dataclass(frozen=True)
class Order:
    """What one pass is to do, the same for every partition; scattered once per pass.

    inputs : for every request, which of the partition's row arrays its kernel takes
    share : partitions per worker, which share its threads
    """

    Ws: tuple[Array, ...]
    kernels: tuple[RowKernel, ...]
    inputs: tuple[tuple[int, ...], ...]
    compiled: bool
    share: int


@contextmanager
def _threads(share: int) -> Iterator[None]:
    """The threads that one task may use: the worker's own, divided among its partitions."""
    try:
        available = int(get_worker().state.nthreads)
    except ValueError:  # not on a worker
        available = 1
    with use_threads(max(1, available // max(1, share))), blas_threads(1):
        yield


# ---- partitions ----


def as_block(chunk: Any) -> Any:
    """A partition as an array or a sparse matrix: frames and series lose their index."""
    if sp.issparse(chunk):
        return chunk
    if hasattr(chunk, "tocsr"):
        return chunk.tocsr()
    return chunk.to_numpy() if hasattr(chunk, "to_numpy") else np.asarray(chunk)


def make_part(chunk: Any, number: int, intercept: bool, state_dtype: Any) -> Any:
    """A partition as a design in memory; None if it is empty, an error where it cannot be one.

    Errors are returned, so that the client raises that of the first partition.
    """
    try:
        block = as_block(chunk)
        if block.ndim != 2:
            raise ValueError(f"X must be two-dimensional, got {block.ndim} dimensions")
        if block.shape[0] == 0:
            return None
        design = as_design(block, intercept=intercept)
    except (TypeError, ValueError) as error:
        return type(error)(f"partition {number} of X: {error}")
    design.state_dtype = np.dtype(state_dtype)  # type: ignore[attr-defined]
    return design


def facts_of(part: Any) -> Facts | Exception | None:
    """The facts of a partition; None for an empty one."""
    if part is None or isinstance(part, Exception):
        return part
    rows, columns = part.shape
    return Facts(rows, columns, part.dtype, part.is_sparse, part.entries, part.rounding)


def place_part(part: Any, piece: Any, number: int, name: str) -> Any:
    """Row arrays of one partition, checked; runs where the partition is."""
    try:
        array = as_block(piece)
        if array.ndim == 2 and array.shape[1] == 1 and hasattr(piece, "columns"):
            array = array[:, 0]
        if array.ndim not in (1, 2):
            raise ValueError(f"must have one or two dimensions, got {array.ndim}")
    except (TypeError, ValueError) as error:
        return type(error)(f"partition {number} of {name} {error}")
    n_rows = 0 if part is None else part.n_rows
    if len(array) != n_rows:
        return ValueError(
            f"partition {number} of {name} has {len(array)} rows for {n_rows} rows of X"
        )
    return array


def width_of(array: Any) -> Any:
    """Columns of a row array, −1 for a vector, or the error that stands in its place."""
    if isinstance(array, Exception):
        return array
    return -1 if array.ndim == 1 else array.shape[1]


def zeros(part: RowBlockDesign, columns: int) -> Array:
    """New row state."""
    return np.zeros((part.n_rows, columns), part.state_dtype)


def apply(arrays: list[Any], number: int, function: Callable[..., Any]) -> Any:
    """A function of row arrays; its errors name the partition."""
    try:
        return function(*arrays)
    except (TypeError, ValueError) as error:
        raise type(error)(f"partition {number}: {error}") from error


# ---- passes ----


def fold(part: RowBlockDesign, arrays: list[Any], order: Order) -> tuple[Any, ...]:
    """One pass over a partition: products and sums to add up, then each request's new rows."""
    part.use_buffers(_buffers.setdefault((part.n_features, part.dtype.str), {}))
    placed = [part.place(array) for array in arrays]
    requests = [
        Request(W, kernel, tuple(placed[i] for i in inputs))
        for W, kernel, inputs in zip(order.Ws, order.kernels, order.inputs, strict=True)
    ]
    with _threads(order.share):
        folds = part._fold_batch(requests, order.compiled)
    summands = [(f.product, f.sums.values) for f in folds]
    return summands, *[None if f.rows is None else f.rows.held for f in folds]


def fold_sums(part: RowBlockDesign, arrays: list[Any], order: Order) -> Any:
    """As `fold`, for kernels without new rows: only products and sums."""
    return fold(part, arrays, order)[0]


def item(outcome: tuple[Any, ...], number: int) -> Any:
    """One of a task's results, which stays on its worker."""
    return outcome[number]


def add_folds(parts: list[list[tuple[Array, Array]]]) -> list[tuple[Array, Array]]:
    """Products and sums of several partitions, added in their order."""
    return [
        (reduce(np.add, [p for p, _ in of_parts]), reduce(np.add, [s for _, s in of_parts]))
        for of_parts in zip(*parts, strict=True)
    ]


def gram(part: RowBlockDesign, weights: Array, dtype: Any, share: int) -> Array:
    """The Gram matrix of a partition."""
    with _threads(share):
        return np.asarray(part.gram(part.place(weights), dtype))


def column_squares(part: RowBlockDesign, weights: Array, share: int) -> Array:
    """The diagonal of the Gram matrix of a partition."""
    with _threads(share):
        return part.column_squares(part.place(weights))


def add_arrays(parts: list[Array]) -> Array:
    """Arrays of several partitions, added in their order."""
    total = parts[0] + parts[1]
    for part in parts[2:]:
        total += part
    return total


def triangle(part: RowBlockDesign, weights: Array, share: int) -> Array:
    """The triangle of a partition."""
    with _threads(share):
        return part.triangle(part.place(weights))


def join_triangles(parts: list[Array]) -> Array:
    """The triangle of triangles, one below the other."""
    return reduce(next_triangle, parts)


# ---- rows ----


def choose(weights: Array, positions: Any) -> Array:
    """The weights times how often each row is chosen."""
    return weights * np.bincount(positions, minlength=len(weights))


def positions_of(weights: Array, ranks: Any) -> Any:
    """The positions of some of the rows that have weight, by their rank among them."""
    return np.flatnonzero(weights)[ranks]


def shuffled(weights: Array, seed: Any) -> Any:
    """The positions of the rows that have weight, in random order."""
    return np.random.default_rng(seed).permutation(np.flatnonzero(weights))


def take(part: RowBlockDesign, arrays: list[Any], positions: Any) -> tuple[Any, list[Any]]:
    """Some rows, copied, with their row arrays."""
    return part.rows_at(positions), [array[positions] for array in arrays]


def take_shuffled(
    part: RowBlockDesign, arrays: list[Any], order: Any, cut: tuple[int, int]
) -> tuple[Any, list[Any]]:
    """Rows from a cut of a random order; they come in rising order."""
    return take(part, arrays, np.sort(order[slice(*cut)]))


def digest(part: RowBlockDesign, arrays: list[Any]) -> bytes:
    """A digest of a partition and of its row arrays."""
    found = hashlib.blake2b(digest_size=32)
    part.fingerprint(found, *[part.place(array) for array in arrays])
    return found.digest()


@sizeof.register(RowBlockDesign)  # type: ignore[untyped-decorator]
def _size(part: Any) -> int:
    """Bytes of a partition, by which Dask decides where a task runs and when to spill."""
    if not part.is_sparse:
        return int(part.entries * part.dtype.itemsize)
    X = part.X  # by rows and, after the first pass, by columns
    return int(2 * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes))
