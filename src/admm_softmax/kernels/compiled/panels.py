"""Panels of X in memory of ours: copied, or turned so that rows lie across; and X W by them.

The tile of X W in `thin` adds up lanes for every row and class, which is much beside products over
few columns; and with many classes it reads a block of X once per few of them. Where rows of X lie
across a vector, each lane is a row of its own: no lanes are added up, a panel is turned once for
all classes, and the product is the tile of Xᵀ R with Wᵀ in place of R.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from admm_softmax.kernels.compiled.integers import groups, smaller
from admm_softmax.kernels.compiled.lanes import load, store
from admm_softmax.kernels.compiled.layout import LANES, TURNED
from admm_softmax.kernels.compiled.target import TILES, VECTOR_BYTES
from admm_softmax.kernels.compiled.tiles import (
    Emitter,
    I,
    Reader,
    address_of,
    pointed_at,
    read_floats,
    transpose_tile,
)

#: Whether X is stored in halves, of so many bytes; `thin.Products` puts it in.
widens, HALF_BYTES = False, 2
#: How `take_scores` loads sums, and how many at a time; for scores in single precision others are
#: put in.
load_as, n_lanes = load, LANES


def copy_panel_of(read: Reader, stored: int | None = None) -> Any:
    """The copy of a panel of an X of which `read` gives vectors, of entries of `stored` bytes.

    out[t] = the `TILES.vectors` vectors of columns of X that begin at x, for t < count. Meanwhile
    the cache fetches what lies so many bytes `ahead` of them.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def copy_panel(typing: Any, x: Any, row_bytes: Any, ahead: Any, count: Any, out: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, row_bytes, ahead, count, _ = arguments
            e = Emitter(context, builder, signature, arguments, context.get_value_type(out.dtype))
            n_bytes = TILES.vectors * e.lanes * (stored or context.get_abi_sizeof(e.scalar))
            with e.loop(e.number(0), count) as t:
                row, place = e.at(x, t, row_bytes), e.entry(4, t, e.number(0))
                e.fetch(row, ahead, n_bytes)
                for v in range(TILES.vectors):
                    j = e.number(v * e.lanes)
                    e.store(read(e, row, j, None), place, j)
            return context.get_dummy_value()

        return types.void(I, I, I, I, out), emit

    return copy_panel


def turn_panel_of(read: Reader) -> Any:
    """The turned copy of some rows of an X of which `read` gives vectors.

    out[j, t] = X[t, j] for 0 ≤ j < n_columns, whole vectors, and the rows t of `TILES.vectors`
    vectors, of which those after `last` repeat it.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def turn_panel(typing: Any, x: Any, row_bytes: Any, last: Any, n_columns: Any, out: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, row_bytes, last, n_columns, _ = arguments
            e = Emitter(context, builder, signature, arguments, context.get_value_type(out.dtype))
            with e.loop(e.number(0), e.number(TILES.vectors * e.lanes), e.lanes) as t:
                rows = []
                for r in range(e.lanes):
                    row = builder.add(t, e.number(r))
                    inside = builder.icmp_signed("<", row, last)
                    rows.append(e.at(x, builder.select(inside, row, last), row_bytes))
                with e.loop(e.number(0), n_columns, e.lanes) as j:
                    vectors = _turned(e, [read(e, row, j, None) for row in rows])
                    for c, vector in enumerate(vectors):
                        e.store(vector, e.entry(4, builder.add(j, e.number(c)), t), e.number(0))
            return context.get_dummy_value()

        return types.void(I, I, I, I, out), emit

    return turn_panel


def _turned(e: Emitter, vectors: list[Any]) -> list[Any]:
    """As many vectors as each has lanes, turned: lane i of vector j is lane j of vector i.

    Interleaving the first half of the vectors with the second, as often as halves can be taken,
    moves every lane to its place: it turns the bits of (vector, lane) round by one each time.
    """
    n = len(vectors)
    pairs = [[i // 2 + n * (i % 2) + half for i in range(n)] for half in (0, n // 2)]
    for _ in range(n.bit_length() - 1):
        vectors = [
            e.shuffled(x, y, places)
            for x, y in zip(vectors[: n // 2], vectors[n // 2 :], strict=True)
            for places in pairs
        ]
    return vectors


copy_panel, turn_panel = copy_panel_of(read_floats), turn_panel_of(read_floats)


def product_by_panels(
    x: int, row_bytes: int, count: int, first: int, n_columns: int, Wt: Any, ahead: bool, room: Any
) -> None:
    """Add Σ_j X[t, j] W[first + j, k] over j < n_columns to the sums in `room`, for t < count.

    Takes what `product` of `thin` takes, but W as `layout.interleaved` makes it.
    `room` has a turned panel, and then the sums: for each panel of rows a row per class, in X's
    precision.
    """
    K, size, many = Wt.shape[0], Wt.itemsize, TILES.of_many
    stored, width = HALF_BYTES if widens else size, room.shape[1]
    padded = groups(n_columns * size, VECTOR_BYTES) * VECTOR_BYTES // size
    factors, sums = pointed_at(Wt, address_of(Wt), K * Wt.shape[1]), room[TURNED:]
    if first == 0:
        sums[:] = 0.0
    for j in range(0, padded, TURNED):
        length = smaller(TURNED, padded - j)
        for t in range(0, count, width):
            turn_panel(x + t * row_bytes + j * stored, row_bytes, count - 1 - t, length, room)
            for k in range(0, K, many):
                transpose_tile(many, address_of(room), width * size, 0, length, factors,
                               (first + j) * K + k * length, 1, many, sums,
                               t // width * K + k)  # fmt: skip


def take_scores(room: Any, first: int, bias: Any, S: Any) -> None:
    """S[k, t] = bias and sum of class k of the block's row first + t, for a tile of rows."""
    K, width = groups(S.shape[0], TILES.of_many) * TILES.of_many, room.shape[1]
    for t in range(0, S.shape[1], n_lanes):
        panel, place = TURNED + (first + t) // width * K, (first + t) % width
        for k in range(S.shape[0]):
            store(load_as(room, panel + k, place) + bias[k], S, k, t)
