"""Sparse rows times a dense matrix of few columns, which stays in registers while they last."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic

from admm_softmax.kernels.compiled.jit import separate, with_globals
from admm_softmax.kernels.compiled.layout import LANES
from admm_softmax.kernels.compiled.tiles import Emitter, I

#: Vectors of columns that are summed in one sweep over the entries of a row: as many sums as 16
#: registers hold beside the factor and a widened vector. Each sweep reads entries and places anew.
#: With 4, 8 and 16 passes over text with 58 classes take 62, 54 and 54 ms on an Emerald Rapids with
#: AVX-512, and 62, 51 and 46 ms held to AVX2; with 200 classes there 268, 213 and 222 ms.
GATHERED = 8
#: So many entries before its turn the cache is asked for a row of the dense matrix, which lies
#: anywhere. With 20 columns in float32 and 91 entries per row, one thread of an EPYC (Zen 3) takes
#: 5.2 ns per entry of X W without, 3.4 ns with 12 ahead; for Xᵀ R 3.8 and 2.5 ns. With 0, 4, 8, 12,
#: 16 and 24 whole passes over 50,000 × 100,000 text with five classes take 123, 119, 107, 118, 125
#: and 120 ms on an Emerald Rapids, and held to AVX2 146, 138, 129, 125, 119 and 132 ms.
AHEAD = 12

#: Stand for functions of one precision in the templates below; `with_globals` puts them in.
multiply: Any = None


@cache
def multiply_rows(dtype: str, index: str, of_matrix: str) -> Any:
    """`_multiply` for entries, indices and a dense matrix of these types."""
    data, indices, M = (from_dtype(np.dtype(kind)) for kind in (dtype, index, of_matrix))
    signature = types.void(
        data[::1], indices[::1], types.intp[::1], types.intp, types.intp, M[:, ::1],
        types.float64[:, ::1],
    )  # fmt: skip
    return separate(signature, name=f"multiply.{data}.{indices}.{M}")(_multiply)


@cache
def columns_pass(dtype: str, index: str, of_product: str) -> Any:
    """The product with the transpose, for X stored by columns: see `_add_columns`."""
    data, indices, out = (from_dtype(np.dtype(kind)) for kind in (dtype, index, of_product))
    signature = types.void(
        data[::1], indices[::1], types.intp[::1], types.intp, types.intp, data[:, ::1],
        types.float64[:, ::1], out[:, ::1],
    )  # fmt: skip
    multiply = multiply_rows(dtype, index, dtype)
    name = f"{dtype}.{index}.{of_product}"
    return separate(signature)(with_globals(_add_columns, name, multiply=multiply))


@intrinsic  # type: ignore[untyped-decorator]
def gather_tile(typing: Any, size: Any, data: Any, indices: Any, pointers: Any, first: Any,
                count: Any, M: Any, k: Any, out: Any) -> Any:  # fmt: skip
    """Sparse rows times a dense M: out[t, k + ·] = Σ_e data[e] M[indices[e], k + ·].

    Over the entries e of row first + t, for 0 ≤ t < count and `size` vectors of columns from k. M's
    rows are whole vectors; sums are in double, in registers until a row ends.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size, _, places, _, first, count, _, k, _ = arguments
        e = Emitter(context, builder, signature, arguments, ir.DoubleType())
        stored = context.get_value_type(M.dtype)
        shape = context.make_array(indices)(context, builder, places).shape
        last = builder.sub(builder.extract_value(shape, 0), e.number(1))

        def row_of(entry: Any) -> Any:
            row = builder.load(e.entry(2, entry))
            return e.entry(6, row if row.type == e.index else builder.sext(row, e.index), k)

        def emit_row(t: Any, columns: list[Any]) -> None:
            row = builder.add(first, t)
            start = builder.load(e.entry(3, row))
            stop = builder.load(e.entry(3, builder.add(row, e.number(1))))
            totals = e.sums(len(columns))
            for total in totals:
                builder.store(e.zeros, total)
            n_bytes = len(columns) * e.lanes * context.get_abi_sizeof(stored)
            with e.loop(start, stop) as entry:
                # Beyond this row there are the next ones, and beyond the last entry nothing.
                later = builder.add(entry, e.number(AHEAD))
                later = builder.select(builder.icmp_signed("<", later, last), later, last)
                e.fetch(row_of(later), e.number(0), n_bytes)
                factor = e.spread(e.widened(builder.load(e.entry(1, entry)), e.scalar))
                base = row_of(entry)
                for column, total in zip(columns, totals, strict=True):
                    e.add_product(total, factor, e.widened(e.load(base, column, stored), e.vector))
            base = e.entry(8, t, k)
            for column, total in zip(columns, totals, strict=True):
                e.store(builder.load(total), base, column)

        for n_vectors in range(1, GATHERED + 1):
            with builder.if_then(builder.icmp_signed("==", size, e.number(n_vectors))):
                columns = [e.number(v * e.lanes) for v in range(n_vectors)]
                with e.loop(e.number(0), count) as t:
                    emit_row(t, columns)
        return context.get_dummy_value()

    return types.void(I, data, indices, pointers, I, I, M, I, out), emit


def _multiply(
    data: Any, indices: Any, pointers: Any, first: int, count: int, M: Any, out: Any
) -> None:
    """out[t] = row first + t of a CSR matrix, times M; both padded to whole vectors."""
    n_vectors = M.shape[1] // LANES
    for v in range(0, n_vectors, GATHERED):
        size = min(GATHERED, n_vectors - v)
        gather_tile(size, data, indices, pointers, first, count, M, v * LANES, out)


def _add_columns(
    data: Any, indices: Any, pointers: Any, start: int, stop: int, R: Any, room: Any, product: Any
) -> None:
    """product[j] = Σᵢ xᵢⱼ Rᵢ for the columns start ≤ j < stop of X, stored column by column.

    R and `room` are padded to whole vectors, `product` is not: some columns at a time are summed
    in `room`, which the first-level cache holds, and go to `product` in its own precision.
    """
    K = product.shape[1]
    for first in range(start, stop, len(room)):
        count = min(len(room), stop - first)
        multiply(data, indices, pointers, first, count, R, room)
        for t in range(count):
            for k in range(K):
                product[first + t, k] = room[t, k]
