"""Thin products over a block of rows of X: any number of classes, any number of columns.

A block is given by the address of its first entry and the bytes between its rows. Its columns
come in two parts: `whole` of them, whole panels, are read where they lie; the others were
copied by `pack` to memory of ours, with zeros up to a whole panel. So no product needs a mask,
and X may lie anywhere, in any order.

Sums are taken in an order that depends on the numbers of rows and columns alone, never on
where X begins. So vectors of X may straddle two cache lines. On AVX2 the loads still take less
time than the multiplications, by count; with AVX-512 every vector of an X that begins between
lines straddles, and what that costs has not been measured.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from admm_softmax._cached import cached_property
from admm_softmax.kernels.compiled.integers import groups, smaller
from admm_softmax.kernels.compiled.jit import compiled, separate, with_globals
from admm_softmax.kernels.compiled.lanes import load, spread, store, store_as, sum_lanes
from admm_softmax.kernels.compiled.layout import CHUNK_BYTES, LANES
from admm_softmax.kernels.compiled.panels import (
    HALF_BYTES,
    clear_sums,
    copy_panel,
    product_by_panels,
    take_scores,
)
from admm_softmax.kernels.compiled.target import TILES, VECTOR_BYTES
from admm_softmax.kernels.compiled.tiles import (
    LINE,
    I,
    address_of,
    fetch_ahead,
    pointed_at,
    product_tile,
    transpose_tile,
)
from admm_softmax.kernels.compiled.zstep import MATRIX, VECTOR

#: Groups of classes that a tile of rows meets before the next rows come. A chunk of twelve classes
#: of W and of the tile's rows about fill a first-level cache, so X comes from further away once per
#: twelve classes, not once per three. On Zen 3, both products over 40,000 × 7056 with ten
#: classes, in float32 and two threads, took 0.142 s with chunks of 4 KB and all rows of a block
#: for each group of classes in turn; in this order 0.128 s, and 0.103 s when the rows of the tile
#: after next are asked for in time.
GROUPS_TOGETHER = max(1, 12 // TILES.classes)
ROWS_AHEAD = 2 * TILES.rows

#: Whether X is stored in halves; `Products` puts it in.
widens = False


@compiled
def first_tile(
    size: int, x: int, row_bytes: int, last: int, count: int, Wt: Any, k: int, first: int, S: Any,
    place: int, T: int, kept: int, kept_bytes: int,
) -> None:  # fmt: skip
    """Stands for the tile that reads halves: among floats none does, and compiling takes time."""


def _product(
    x: int, row_bytes: int, count: int, first: int, n_columns: int, Wt: Any, S: Any, ahead: bool,
    room: Any,
) -> None:  # fmt: skip
    """S[t // T, k, t % T] += Σ_j X[t, j] Wt[k, first + j] for t < count, j < n_columns.

    X begins at the address x. S is tiles × K × T, T a multiple of the rows of a tile here;
    entries beyond `count` mean nothing. Rows that come soon are fetched `ahead`, if they lie
    in memory one after the other.

    Halves are widened for the first group of classes, which leaves them in `room` for the others:
    a tile of rows for groups that come together, else all rows of a chunk.
    """
    K, T, size = Wt.shape[0], S.shape[2], Wt.itemsize
    stored, copied_bytes = HALF_BYTES if widens else size, room.shape[1] * room.itemsize
    n_groups, lanes = groups(K, TILES.classes), VECTOR_BYTES // size
    vectors = groups(n_columns, lanes)
    # Columns are multiplied in pieces of about the same size, in vectors.
    chunk = groups(vectors, groups(n_columns * size, CHUNK_BYTES)) * lanes
    for j in range(0, vectors * lanes, chunk):
        length = smaller(chunk, vectors * lanes - j)
        for start in range(0, n_groups, GROUPS_TOGETHER):
            stop = smaller(n_groups, start + GROUPS_TOGETHER)
            # Each group of classes asks for its share of the lines, the first time X goes past.
            n_lines = groups(chunk * stored, LINE * stop) if ahead and start == 0 else 0
            for t in range(0, count, TILES.rows):
                here = x + t * row_bytes + j * stored
                soon = here + ROWS_AHEAD * row_bytes
                if t + ROWS_AHEAD >= count and j + chunk < vectors * lanes:
                    soon += chunk * stored - count * row_bytes  # the first rows' next chunk
                place = t // T * K * T + t % T
                copy = address_of(room) + (t * copied_bytes if n_groups > GROUPS_TOGETHER else 0)
                source, source_bytes = (copy, copied_bytes) if widens else (here, row_bytes)
                for g in range(start, stop):
                    k = g * K // n_groups
                    n_classes = (g + 1) * K // n_groups - k
                    fetch_ahead(soon + g * n_lines * LINE, row_bytes, n_lines)
                    if widens and g == 0:
                        first_tile(n_classes, here, row_bytes, count - 1 - t, length, Wt, k,
                                   first + j, S, place + k * T, T, copy, copied_bytes)  # fmt: skip
                    else:
                        product_tile(n_classes, source, source_bytes, count - 1 - t, length, Wt, k,
                                     first + j, S, place + k * T, T, copy, 0)  # fmt: skip


def _spread_bias(bias: Any, S: Any, room: Any) -> None:
    """Begin a block: every score begins with its bias."""
    for tile in range(S.shape[0]):
        of_tile = S[tile]
        for k in range(S.shape[1]):
            of_class = spread(bias[k])
            for t in range(0, S.shape[2], LANES):
                store(of_class, of_tile, k, t)


def _leave_scores(room: Any, first: int, bias: Any, S: Any) -> None:
    """A tile's scores are where the product has put them."""


def _add_transpose_product(
    x: int, row_bytes: int, count: int, first: int, n_columns: int, R: Any, Gt: Any, room: Any
) -> None:
    """Gt[k, first + j] += Σ_t R[t, k] X[t, j] for t < count, j < n_columns.

    R is packed by `pack_results`; columns of X are whole panels. `room` holds a panel, in which
    halves are widened.
    """
    K, width, place = Gt.shape[0], room.shape[1], len(R) // Gt.shape[0]
    n_groups, panel_bytes = groups(K, TILES.columns), width * Gt.itemsize
    stored = HALF_BYTES if widens else Gt.itemsize
    # Rows that are 1,024 bytes or a multiple apart share few sets of the cache; and with many
    # columns of R a panel is read often enough to repay a copy that lies together.
    copies = widens or row_bytes % 1024 == 0 or n_groups > 4
    # From the right: `product` went from the left, so there the cache still has X.
    for j in range((n_columns - 1) // width * width, -1, -width):
        here, step = x + j * stored, row_bytes
        if copies:
            copy_panel(here, row_bytes, -width * stored, count, room)
            here, step = address_of(room), panel_bytes
        for g in range(n_groups):
            k = g * K // n_groups
            size = (g + 1) * K // n_groups - k
            ahead = 0 if copies else -panel_bytes
            transpose_tile(size, here, step, ahead, count, R, k * place, place, Gt, k, first + j)


def _pack(
    x: int, row_bytes: int, column_bytes: int, count: int, first: int, stop: int, out: Any
) -> None:
    """out[t, j] = X[t, first + j] for t < count, first + j < stop."""
    if column_bytes == out.itemsize:
        for t in range(count):
            row = pointed_at(out, x + t * row_bytes + first * column_bytes, stop - first)
            for j in range(stop - first):
                out[t, j] = row[j]
    else:  # column by column, in which order such an X lies
        for j in range(first, stop):
            for t in range(count):
                entry = pointed_at(out, x + t * row_bytes + j * column_bytes, 1)
                out[t, j - first] = entry[0]


def _pack_results(R: Any, first: int, out: Any, total: Any, column: int) -> None:
    """A tile of R, of the rows from `first` on of a block, in X's precision.

    Laid out as `add_transpose_product` takes it: column by column. The sums of the columns are
    added to a column of `total`, if that is not negative.
    """
    place = len(out) // R.shape[0]
    for k in range(R.shape[0]):
        of_column = spread(0.0)
        for t in range(0, R.shape[1], LANES):
            numbers = load(R, k, t)
            of_column = of_column + numbers
            store_as(numbers, out, k * place + first + t)
        if column >= 0:
            total[k, column] += sum_lanes(of_column)


def _flush(part: Any, total: Any, n_columns: int, is_first: bool) -> None:
    """Add `part` to `total`, in double, or write it there at first, and make it zero."""
    for k in range(total.shape[0]):
        if is_first:
            for j in range(n_columns):
                total[k, j] = part[k, j]
                part[k, j] = 0.0
        else:
            for j in range(n_columns):
                total[k, j] += part[k, j]
                part[k, j] = 0.0


class Forward(NamedTuple):
    """X W of a block: what begins it, what adds products, and what gives a tile's scores."""

    begin: Any
    product: Any
    take: Any


class Products:
    """The functions above, compiled for products of one precision, each on its own when needed.

    With `meanings` of the names that read X, for an X that is stored otherwise.
    """

    def __init__(
        self, scalar: Any, name: str | None = None, pack_rest: Any = _pack, **meanings: Any
    ) -> None:
        self.name, self.pack_rest, self.meanings = name or str(scalar), pack_rest, meanings
        self.matrix, self.flat = scalar[:, ::1], scalar[::1]

    def _made(self, function: Any, *arguments: Any) -> Any:
        function = with_globals(function, self.name, **self.meanings)
        return separate(types.void(*arguments))(function)

    def _forward(self, begin: Any, product: Any, take: Any) -> Forward:
        scores = types.float64[:, :, ::1]
        return Forward(
            self._made(begin, VECTOR, scores, self.matrix),
            self._made(product, I, I, I, I, I, self.matrix, scores, types.boolean, self.matrix),
            self._made(take, self.matrix, I, VECTOR, MATRIX),
        )

    @cached_property
    def with_few(self) -> Forward:
        """X W with few classes."""
        return self._forward(_spread_bias, _product, _leave_scores)

    @cached_property
    def with_many(self) -> Forward:
        """X W with many classes."""
        return self._forward(clear_sums, product_by_panels, take_scores)

    @cached_property
    def add_transpose_product(self) -> Any:
        """Xᵀ R."""
        kinds = (I, I, I, I, I, self.flat, self.matrix, self.matrix)
        return self._made(_add_transpose_product, *kinds)

    @cached_property
    def pack(self) -> Any:
        """Columns of X in memory of ours."""
        return self._made(self.pack_rest, I, I, I, I, I, I, self.matrix)

    @cached_property
    def pack_results(self) -> Any:
        """R as `add_transpose_product` takes it."""
        return self._made(_pack_results, MATRIX, I, self.flat, MATRIX, I)

    @cached_property
    def flush(self) -> Any:
        """Sums in the data's precision to those in double."""
        return self._made(_flush, self.matrix, MATRIX, I, types.boolean)


PRODUCTS = {
    np.dtype(np.float32): Products(types.float32),
    np.dtype(np.float64): Products(types.float64),
}
