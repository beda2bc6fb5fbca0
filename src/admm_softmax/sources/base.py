"""`Source`: rows that can be read again and again, in order, a few at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

#: The number of a piece's first row, and the rows as they are stored.
Piece: TypeAlias = tuple[int, Any]

#: Bytes that are read from a file at a time: few enough for a cache to hold them until they are
#: widened, and many beside the cost of a call. On an EPYC (Zen 3) reading and widening took 15 %
#: longer with a quarter of it, and as long with twice as much.
PIECE_BYTES = 1 << 20


class Source(ABC):
    """n rows of the same shape and type, read in order.

    Random access to single rows is not assumed. `read` yields the rows of some slices; a source
    that can skip the rows between them should, and says so by `can_skip`.
    """

    #: What errors call it: a path, or what kind of thing it is.
    name: str
    n_rows: int
    #: The shape of one row: (d,), or that of an image.
    row_shape: tuple[int, ...]
    #: What the rows are stored in.
    dtype: np.dtype[Any]
    #: Whether rows that are not wanted cost nothing.
    can_skip: bool = True
    #: Whether pieces stay valid when the next one is read.
    lasting: bool = True
    #: Whether the rows are in memory already, so that pieces of them take none.
    in_memory: bool = False
    #: Whether rows are stored one after the other, so that `fill` reads any of them at once.
    fills: bool = False

    @abstractmethod
    def read(self, wanted: Sequence[slice]) -> Iterator[Piece]:
        """The rows of rising, disjoint slices, in pieces that lie within one slice each."""

    def mapped(self, rows: slice) -> Any:
        """The rows of a slice where the page cache has them; None where it has not all of them."""
        return None

    def fill(self, rows: slice, out: Any) -> None:
        """Read the rows of a slice, as they are stored, into an array."""
        raise NotImplementedError(f"{type(self).__name__} reads its rows in order only")

    def describe(self, row: int) -> str:
        """Where a row is, for errors."""
        return f"row {row} of {self.name}"

    @property
    def n_features(self) -> int:
        """Numbers per row."""
        return int(np.prod(self.row_shape, dtype=np.int64))


def clipped(pieces: Iterable[Piece], wanted: Sequence[slice]) -> Iterator[Piece]:
    """What lies in the wanted slices, of pieces that come in their own sizes.

    >>> [(i, list(p)) for i, p in clipped([(0, "abcd"), (4, "efg")], [slice(1, 3), slice(3, 6)])]
    [(1, ['b', 'c']), (3, ['d']), (4, ['e', 'f'])]
    """
    waiting = iter(wanted)
    part = next(waiting, None)
    for first, rows in pieces:
        end = first + len(rows)
        while part is not None and part.start < end:
            start = max(first, part.start)
            stop = min(end, part.stop)
            if start < stop:
                yield start, rows[start - first : stop - first]
            if part.stop > end:
                break
            part = next(waiting, None)
        if part is None:
            return


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether entries are bfloat16: by name, or as `.npy` files name it, two bytes of no type."""
    return dtype.name == "bfloat16" or (dtype.kind == "V" and dtype.itemsize == 2)


def working_dtype(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """What rows are computed in: float32 where that holds every entry, else float64.

    >>> working_dtype(np.dtype("float16"), "x").name, working_dtype(np.dtype("int64"), "x").name
    ('float32', 'float64')
    """
    if is_bfloat16(dtype):
        return np.dtype(np.float32)
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got type {dtype}")
    few_bits = dtype.itemsize <= (4 if dtype.kind == "f" else 2)
    return np.dtype(np.float32 if few_bits else np.float64)
