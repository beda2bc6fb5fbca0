"""float16 and bfloat16 to float32, exactly.

LLVM's own conversion of float16 needs instructions that not every CPU has: without them it
calls functions that no one may have linked. Then bits are moved instead.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from admm_softmax.kernels.compiled.arrays import plain
from admm_softmax.kernels.compiled.jit import (
    callable_from_python,
    compiled,
    keep_small,
    separate,
    with_globals,
)
from admm_softmax.kernels.compiled.target import CONVERTS_HALVES, VECTOR_BYTES
from admm_softmax.kernels.compiled.tiles import Emitter, I, pointed_at

#: 2¹¹²: the exponents of float32 begin so much lower than those of float16.
_SHIFT = np.float32(2.0**112)


@intrinsic  # type: ignore[untyped-decorator]
def _from_bits(typing: Any, bits: Any) -> Any:
    """The float32 of these bits."""

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.bitcast(given[0], ir.FloatType())

    return types.float32(types.uint32), emit


@intrinsic  # type: ignore[untyped-decorator]
def _converted(typing: Any, bits: Any) -> Any:
    """The float32 of a float16's bits, by an instruction of the CPU."""

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.fpext(builder.bitcast(given[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), emit


def _moved(half: Any) -> Any:
    """Move exponent and mantissa to their place, and scale; infinities and NaN stay themselves.

    A subnormal float16 becomes a subnormal float32, which the product makes normal.
    """
    bits = np.uint32(half)
    size = np.uint32((bits & np.uint32(0x7FFF)) << np.uint32(13))
    sign = np.uint32((bits & np.uint32(0x8000)) << np.uint32(16))
    scaled = _from_bits(size) * _SHIFT
    special = _from_bits(np.uint32(size | np.uint32(0x7F800000)))
    value = special if size >= np.uint32(0x0F800000) else scaled
    return -value if sign else value


def _shifted(half: Any) -> Any:
    """A bfloat16 is the upper half of a float32."""
    return _from_bits(np.uint32(half) << np.uint32(16))


moved = compiled(_moved, set())
#: The functions that widen one entry, given its bits.
WIDENED_ENTRY = {
    "float16": _converted if CONVERTS_HALVES else moved,
    "bfloat16": compiled(_shifted, set()),
}
_BITS = np.zeros(0, np.uint16)
#: float32 in a vector register.
FLOAT_LANES = VECTOR_BYTES // 4
#: Stand for functions of one kind of half in the template below.
widened: Any = None
widen_rows: Any = None


def _widening(half: str) -> Any:
    """The intrinsic that widens vectors of some rows, of "float16" or "bfloat16".

    out[t, place + j] = X[t, j] for t < count and the columns j of `n_vectors` vectors. A loop over
    `widened` would be made into shorter vectors, and ask for nothing ahead.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def rows(typing: Any, x: Any, row_bytes: Any, ahead: Any, count: Any, n_vectors: Any,
             out: Any, place: Any) -> Any:  # fmt: skip
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, row_bytes, ahead, count, n_vectors, _, place = arguments
            e = Emitter(context, builder, signature, arguments, ir.FloatType())
            bits = ir.VectorType(ir.IntType(16), FLOAT_LANES)
            with e.loop(e.number(0), count) as t:
                row = builder.bitcast(e.at(x, t, row_bytes), bits.as_pointer())
                to = e.entry(5, t, place)
                with e.loop(e.number(0), n_vectors) as v:
                    here = builder.gep(row, [v])
                    value = builder.load(here)
                    value.align = 2
                    e.fetch(here, ahead, 2 * FLOAT_LANES, level=2)
                    e.store(_wide(builder, value, half), to, builder.mul(v, e.number(FLOAT_LANES)))
            return context.get_dummy_value()

        return types.void(I, I, I, I, I, out, I), emit

    return rows


def _wide(builder: Any, bits: Any, half: str) -> Any:
    """A vector of float32 from one of halves' bits, as the functions above do it by entry."""
    n = bits.type.count
    floats, whole = ir.VectorType(ir.FloatType(), n), ir.VectorType(ir.IntType(32), n)
    if half == "float16" and CONVERTS_HALVES:
        return builder.fpext(builder.bitcast(bits, ir.VectorType(ir.HalfType(), n)), floats)

    def number(value: int) -> Any:
        return ir.Constant(whole, [value] * n)

    bits = builder.zext(bits, whole)
    if half == "bfloat16":
        return builder.bitcast(builder.shl(bits, number(16)), floats)
    size = builder.shl(builder.and_(bits, number(0x7FFF)), number(13))
    sign = builder.shl(builder.and_(bits, number(0x8000)), number(16))
    shift = ir.Constant(floats, [float(_SHIFT)] * n)
    scaled = builder.bitcast(builder.fmul(builder.bitcast(size, floats), shift), whole)
    special = builder.or_(size, number(0x7F800000))
    is_special = builder.icmp_unsigned(">=", size, number(0x0F800000))
    return builder.bitcast(builder.or_(builder.select(is_special, special, scaled), sign), floats)


#: The intrinsics that widen vectors of entries.
WIDENED_ROWS = {half: _widening(half) for half in WIDENED_ENTRY}


@separate(types.void(types.uint16[::1], types.float32[::1]), fastmath=set())
def _widen(halves: Any, out: Any) -> None:
    """out = the float32 of all float16 bits in `halves`."""
    for i in range(len(halves)):
        out[i] = moved(halves[i])


def _pack_halves(
    x: int, row_bytes: int, column_bytes: int, count: int, first: int, stop: int, out: Any,
    place: int, ahead: int,
) -> None:  # fmt: skip
    """out[t, place + j] = X[t, first + j] for t < count, first + j < stop; as `thin` packs floats.

    Meanwhile the cache fetches what lies so many bytes `ahead`.
    """
    keep_small()
    if column_bytes == 2:
        n_vectors = (stop - first) // FLOAT_LANES
        widen_rows(x + first * 2, row_bytes, ahead, count, n_vectors, out, place)
        for t in range(count):
            row = pointed_at(_BITS, x + t * row_bytes + first * 2, stop - first)
            for j in range(n_vectors * FLOAT_LANES, stop - first):
                out[t, place + j] = widened(row[j])
    else:  # column by column, in which order such an X lies
        for j in range(first, stop):
            for t in range(count):
                entry = pointed_at(_BITS, x + t * row_bytes + j * column_bytes, 1)
                out[t, place + j - first] = widened(entry[0])


@cache
def packing(half: str) -> Any:
    """`_pack_halves` for "float16" or "bfloat16"."""
    signature = types.void(I, I, I, I, I, I, types.float32[:, ::1], I, I)
    meanings = {"widened": WIDENED_ENTRY[half], "widen_rows": WIDENED_ROWS[half]}
    copy = with_globals(_pack_halves, half, **meanings)
    return separate(signature, fastmath=set(), name=f"_pack.{half}")(copy)


def widen_halves(halves: Any, out: Any) -> None:
    """Write the float32 of float16 bits."""
    callable_from_python(_widen)(plain(halves, np.uint16), out)
