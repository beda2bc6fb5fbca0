"""Thin products over a block of rows of X: any number of classes, any number of columns.

A block is given by the address of its first entry and the bytes between its rows. Its columns
come in two parts: `whole` of them, whole panels, are read where they lie; the others were
copied by `pack` to memory of ours, with zeros up to a whole panel. So no product needs a mask,
and X may lie anywhere, in any order.

Sums are taken in an order that depends on the numbers of rows and columns alone, never on
where X begins. So vectors of X may straddle two cache lines. On Zen 3 (AVX2) that costs X W up to
4 % and Xᵀ R up to 14 %. On an Ice Lake with AVX-512, where every vector of an X that begins between
lines straddles, a pass with ten classes takes 4 to 7 % longer (7,056 and 768 columns).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from admm_softmax._cached import cached_property
from admm_softmax.kernels.compiled.integers import groups, smaller
from admm_softmax.kernels.compiled.jit import compiled, separate, with_globals
from admm_softmax.kernels.compiled.lanes import (
    load,
    load_stored,
    spread,
    spread_single,
    store,
    store_as,
    sum_lanes,
)
from admm_softmax.kernels.compiled.layout import CHUNK_BYTES, LANES
from admm_softmax.kernels.compiled.panels import (
    HALF_BYTES,
    copy_panel,
    product_by_panels,
    take_scores,
)
from admm_softmax.kernels.compiled.single_rows import SINGLE_MATRIX
from admm_softmax.kernels.compiled.target import TILES, VECTOR_BYTES
from admm_softmax.kernels.compiled.tiles import (
    I,
    address_of,
    pointed_at,
    product_tile,
    sum_of_lanes_tile,
    transpose_tile,
)
from admm_softmax.kernels.compiled.zstep import MATRIX, VECTOR
from admm_softmax.kernels.thresholds import MANY_CLASSES

#: Groups of classes that a tile of rows meets before the next rows come, so that X comes from
#: further away once per ten classes, not once per five. With one, two and three groups passes over
#: 45,000 × 768 with twenty classes take 28.0, 25.0 and 28.6 ms on an Emerald Rapids with AVX-512,
#: held to AVX2 40.5, 33.9 and 38.3 ms; with ten classes, which are two groups, the same.
GROUPS_TOGETHER = max(1, 12 // TILES.classes)
#: How far ahead of the rows of a tile the cache fetches. With 2, 4, 8 and 12 rows passes over
#: 40,000 × 7056 take 143, 130, 127 and 146 ms on an Emerald Rapids with AVX-512, held to AVX2 165,
#: 166, 158 and 159 ms.
ROWS_AHEAD = 2 * TILES.rows

#: Whether X is stored in halves; `Products` puts it in.
widens = False


@compiled
def first_tile(
    size: int, x: int, row_bytes: int, last: int, count: int, Wt: Any, k: int, first: int,
    sums: int, sums_bytes: int, is_new: bool, kept: int, kept_bytes: int, soon: int,
    soon_bytes: int,
) -> None:  # fmt: skip
    """Stands for the tile that reads halves: among floats none does, and compiling takes time."""


def _product(
    x: int, row_bytes: int, count: int, first: int, n_columns: int, Wt: Any, ahead: bool, room: Any
) -> None:
    """Add Σ_j X[t, j] Wt[k, first + j] over j < n_columns to the sums in `room`, for t < count.

    X begins at the address x; column 0 begins new sums. `room` has a row for each row of a block,
    with a vector for each class, whose lanes are added up when the block is done. Rows that come
    soon are fetched `ahead`, if they lie in memory one after the other.

    Halves are widened for the first group of classes, which leaves them in rows of `room` that
    follow: a tile of rows for groups that come together, else all rows of a chunk.
    """
    K, size, room_bytes = Wt.shape[0], Wt.itemsize, room.shape[1] * room.itemsize
    stored, copies = HALF_BYTES if widens else size, len(room) // 2 * room_bytes
    n_groups, pair = groups(K, TILES.classes), TILES.pair * VECTOR_BYTES // size
    # The first groups may have one class more. Dividing anew for each tile takes 6 % of a pass with
    # ten classes over 7,056 columns (both products; Ice Lake held to AVX2), 2 % with AVX-512.
    least = K // n_groups
    n_larger = K - n_groups * least
    stop_column = groups(n_columns, pair) * pair
    # Where as many groups come together as a tile has rows, each fetches one of the rows to come.
    one_each = TILES.rows == GROUPS_TOGETHER and n_groups >= TILES.rows
    n_fetching, soon_bytes = (TILES.rows, 0) if one_each else (1, row_bytes)
    # Columns are multiplied in pieces of about the same size, in pairs of vectors.
    chunk = groups(groups(n_columns, pair), groups(n_columns * size, CHUNK_BYTES)) * pair
    for j in range(0, stop_column, chunk):
        length, is_new = smaller(chunk, stop_column - j), first + j == 0
        for start in range(0, n_groups, GROUPS_TOGETHER):
            for t in range(0, count, TILES.rows):
                here, sums = x + t * row_bytes + j * stored, address_of(room) + t * room_bytes
                # The first groups of classes see X come, and the rows after next are fetched.
                soon = here + ROWS_AHEAD * row_bytes
                if t + ROWS_AHEAD >= count and j + chunk < stop_column:
                    soon += chunk * stored - count * row_bytes  # the first rows' next chunk
                copy = address_of(room) + copies
                if n_groups > GROUPS_TOGETHER:
                    copy += t * room_bytes
                source, source_bytes = (copy, room_bytes) if widens else (here, row_bytes)
                k = start * least + smaller(start, n_larger)
                for g in range(start, smaller(n_groups, start + GROUPS_TOGETHER)):
                    n_classes = least + 1 if g < n_larger else least
                    fetches = ahead and g < n_fetching
                    coming = soon + g * row_bytes if fetches else source
                    coming_bytes = soon_bytes if fetches else source_bytes
                    if widens and g == 0:
                        first_tile(n_classes, here, row_bytes, count - 1 - t, length, Wt, k,
                                   first + j, sums, room_bytes, is_new, copy, room_bytes, coming,
                                   coming_bytes)  # fmt: skip
                    else:
                        product_tile(n_classes, source, source_bytes, count - 1 - t, length, Wt, k,
                                     first + j, sums, room_bytes, is_new, copy, 0, coming,
                                     coming_bytes)  # fmt: skip
                    k += n_classes


def _take_scores(room: Any, first: int, bias: Any, S: Any) -> None:
    """S[k, t] = bias and sum of class k of the block's row first + t, for a tile of rows."""
    sum_of_lanes_tile(room, first, bias, S)


def _add_transpose_product(
    x: int, row_bytes: int, count: int, first: int, n_columns: int, R: Any, Gt: Any, room: Any
) -> None:
    """Gt[k, first + j] += Σ_t R[t, k] X[t, j] for t < count, j < n_columns.

    R is packed by `pack_results`; columns of X are whole panels, and those of Gt are in panels as
    `layout.panels` makes them. `room` holds a panel of a block, in which halves are widened.
    """
    place, width = room.shape
    K = len(R) // place
    n_groups = groups(K, TILES.columns if K < MANY_CLASSES else TILES.of_many)
    least = K // n_groups
    n_larger = K - n_groups * least
    panel_bytes = width * Gt.itemsize
    stored = HALF_BYTES if widens else Gt.itemsize
    # Rows that are 1,024 bytes or a multiple apart share few sets of the cache; and with many
    # columns of R a panel is read often enough to repay a copy that lies together.
    copies = widens or row_bytes % 1024 == 0 or n_groups > 4
    # From the right: `product` went from the left, so there the cache still has X.
    panel_row = len(Gt) - groups(first + n_columns, width) * K
    for j in range((n_columns - 1) // width * width, -1, -width):
        here, step = x + j * stored, row_bytes
        if copies:
            copy_panel(here, row_bytes, -width * stored, count, room)
            here, step = address_of(room), panel_bytes
        k, ahead = 0, 0 if copies else -panel_bytes
        for g in range(n_groups):
            size = least + 1 if g < n_larger else least
            transpose_tile(size, here, step, ahead, count, R, k * place, place, 1, Gt,
                           panel_row + k)  # fmt: skip
            k += size
        panel_row += K


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


def _pack_results(R: Any, first: int, count: int, out: Any, of_columns: Any) -> None:
    """A tile of R, of `count` rows from `first` on of a block, in X's precision.

    Laid out as `add_transpose_product` takes it: column by column. The sums of the columns are
    added to `of_columns`, unless that is empty.
    """
    place = len(out) // R.shape[0]
    for k in range(R.shape[0]):
        of_column = spread(0.0)
        for t in range(0, count, LANES):
            numbers = load(R, k, t)
            of_column = of_column + numbers
            store_as(numbers, out, k * place + first + t)
        if len(of_columns):
            of_columns[k] += sum_lanes(of_column)


def _flush(part: Any, total: Any, is_first: bool) -> None:
    """Add `part` to `total`, in double, or write it there at first. It becomes zero."""
    for k in range(part.shape[0]):
        if is_first:
            for j in range(part.shape[1]):
                total[k, j] = part[k, j]
                part[k, j] = 0.0
        else:
            for j in range(part.shape[1]):
                total[k, j] += part[k, j]
                part[k, j] = 0.0


def _scale_single_results(R: Any, first: int, count: int, out: Any, of_columns: Any) -> None:
    """As `_pack_results`, for single R of a whole block: it lies as it should, as `out`.

    Its last rows, one for each request, are factors of the others.
    """
    n_results = len(out) // R.shape[1]
    n_requests = R.shape[0] - n_results
    K = n_results // n_requests
    for k in range(n_results):
        of_column, factors = spread_single(0.0), n_results + k // K
        for t in range(first, first + count, 2 * LANES):
            numbers = load_stored(R, k, t) * load_stored(R, factors, t)
            of_column = of_column + numbers
            store(numbers, R, k, t)
        if len(of_columns):
            of_columns[k] += sum_lanes(of_column)


class Forward(NamedTuple):
    """X W of a block: what adds products, and what gives a tile's scores, or single ones."""

    product: Any
    take: Any
    take_single: Any


class Products:
    """The functions above, compiled for products of one precision, each on its own when needed.

    With `meanings` of the names that read X, for an X that is stored otherwise.
    """

    def __init__(
        self, scalar: Any, name: str | None = None, pack_rest: Any = _pack, **meanings: Any
    ) -> None:
        self.name, self.pack_rest, self.meanings = name or str(scalar), pack_rest, meanings
        self.matrix, self.flat = scalar[:, ::1], scalar[::1]

    def _made(self, function: Any, *arguments: Any, name: str = "", **meanings: Any) -> Any:
        function = with_globals(function, self.name + name, **self.meanings, **meanings)
        return separate(types.void(*arguments))(function)

    def _forward(self, product: Any, take: Any) -> Forward:
        product = self._made(product, I, I, I, I, I, self.matrix, types.boolean, self.matrix)
        take_single = self._made(
            take, self.matrix, I, VECTOR, SINGLE_MATRIX, name=".single", load_as=load_stored,
            n_lanes=2 * LANES,
        )  # fmt: skip
        return Forward(product, self._made(take, self.matrix, I, VECTOR, MATRIX), take_single)

    @cached_property
    def by_tiles(self) -> Forward:
        """X W by tiles of rows and classes, for few classes of wide X."""
        return self._forward(_product, _take_scores)

    @cached_property
    def by_panels(self) -> Forward:
        """X W by turned panels."""
        return self._forward(product_by_panels, take_scores)

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
        return self._made(_pack_results, MATRIX, I, I, self.flat, VECTOR)

    @cached_property
    def scale_single_results(self) -> Any:
        """Single R, but for its factors before, and its sums."""
        return self._made(_scale_single_results, SINGLE_MATRIX, I, I, self.flat, VECTOR)

    @cached_property
    def flush(self) -> Any:
        """Sums in the data's precision to those in double."""
        return self._made(_flush, self.matrix, MATRIX, types.boolean)


PRODUCTS = {
    np.dtype(np.float32): Products(types.float32),
    np.dtype(np.float64): Products(types.float64),
}
