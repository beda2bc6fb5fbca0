"""Dask collections as lists of partitions, and predictions on them that stay lazy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from dask.delayed import Delayed
from distributed import Client, Future

from admm_softmax.design.dask.tasks import as_block


def pieces(X: Any, name: str) -> list[Any]:
    """The partitions of a collection, each a delayed object or a future, in the order of rows.

    An array is cut by rows alone: its blocks of columns are put together.
    """
    if isinstance(X, da.Array):
        if X.ndim not in (1, 2):
            raise ValueError(f"{name} must have one or two dimensions, got {X.ndim}")
        whole = X if X.ndim == 1 else X.rechunk({1: -1})
        return list(whole.to_delayed().ravel())
    if isinstance(X, list | tuple):
        if not X:
            raise ValueError(f"{name} must have at least one partition, got none")
        odd = [i for i, piece in enumerate(X) if not isinstance(piece, Delayed | Future)]
        if odd:
            kind = type(X[odd[0]]).__name__
            raise TypeError(
                f"partition {odd[0]} of {name} must be a delayed object or a future, got {kind}"
            )
        return list(X)
    if hasattr(X, "to_delayed"):
        return list(X.to_delayed())
    kind = type(X).__name__
    raise TypeError(f"{name} must be a Dask array, frame or list of partitions, got {kind}")


def futures_of(given: Sequence[Any], client: Client) -> list[Future]:
    """The partitions as futures; what is not yet computed begins to be."""
    waiting = [piece for piece in given if not isinstance(piece, Future)]
    begun = iter(client.compute(waiting) if waiting else [])
    return [piece if isinstance(piece, Future) else next(begun) for piece in given]


def known_lengths(X: Any) -> tuple[int, ...] | None:
    """The lengths of an array's partitions; None where they are unknown."""
    if not isinstance(X, da.Array) or any(np.isnan(n) for n in X.chunks[0]):
        return None
    return tuple(int(n) for n in X.chunks[0])


def aligned(y: Any, lengths: Sequence[int], name: str) -> Any:
    """A collection with one partition per partition of X.

    Arrays of known chunks are cut again where their total length is right; of others the
    workers check the lengths.
    """
    chunks = known_lengths(y)
    if chunks is None or chunks == tuple(lengths):
        return y
    if sum(chunks) == sum(lengths):
        return y.rechunk({0: tuple(lengths)})
    p = next(
        (p for p, pair in enumerate(zip(chunks, lengths, strict=False)) if len(set(pair)) > 1), 0
    )
    raise ValueError(
        f"{name} has {sum(chunks)} rows for {sum(lengths)} rows of X: its partition {p} has "
        f"{chunks[p]} for {lengths[p]}"
    )


def lazily(
    function: Callable[[Any], Any], X: Any, columns: int | None, dtype: Any, name: str = "X"
) -> Any:
    """A row-wise function of a Dask collection, not computed yet.

    An array or frame gives a Dask array with this many columns (None: a vector); a list of
    partitions gives a list.
    """
    on_block = _OnBlock(function)
    end = () if columns is None else (columns,)
    if isinstance(X, da.Array):
        return X.rechunk({1: -1}).map_blocks(
            on_block,
            chunks=(X.chunks[0], *[(width,) for width in end]),
            drop_axis=1 if columns is None else None,
            meta=np.empty((0,) * (1 + len(end)), dtype),
        )
    parts = [delayed(on_block, pure=True)(piece) for piece in pieces(X, name)]
    if isinstance(X, list | tuple):
        return parts
    arrays = [da.from_delayed(part, shape=(np.nan, *end), dtype=dtype) for part in parts]
    return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def lazy_mean(function: Callable[..., tuple[float, float]], X: Any, *rows: Any) -> Any:
    """Σ_p f(X_p, *rows_p)[0] / Σ_p f(…)[1], as a Dask array without dimensions.

    Row arrays may be Dask collections, NumPy arrays (where the lengths of X's partitions are
    known), or None.
    """
    parts = pieces(X, "X")
    lengths = known_lengths(X)
    columns = [_row_pieces(array, lengths, len(parts)) for array in rows]
    on_blocks = delayed(_OnBlock(function), pure=True)
    sums = [on_blocks(part, *[c[p] for c in columns]) for p, part in enumerate(parts)]
    return da.from_delayed(delayed(_ratio)(sums), shape=(), dtype=np.float64)


def _row_pieces(array: Any, lengths: tuple[int, ...] | None, count: int) -> list[Any]:
    if array is None:
        return [None] * count
    if hasattr(array, "__dask_graph__") or isinstance(array, list | tuple):
        fitted = array if lengths is None else aligned(array, lengths, "y")
        found = pieces(fitted, "y")
        if len(found) != count:
            raise ValueError(f"y has {len(found)} partitions for {count} of X")
        return found
    if lengths is None:
        raise ValueError(
            "y must be a Dask collection where the lengths of X's partitions are unknown, got "
            f"{type(array).__name__}"
        )
    array = np.asarray(array)
    if len(array) != sum(lengths):
        raise ValueError(f"y has {len(array)} rows for {sum(lengths)} rows of X")
    return list(np.split(array, np.cumsum(lengths)[:-1]))


class _OnBlock:
    """A function that gets partitions as arrays, whatever they are."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = f"softmax-{getattr(function, '__name__', 'rows')}"

    def __call__(self, *partitions: Any) -> Any:
        return self.function(*[None if p is None else as_block(p) for p in partitions])


def _ratio(sums: Sequence[tuple[float, float]]) -> float:
    above, below = np.sum(sums, axis=0)
    return np.float64(above / below)
