"""float16 and bfloat16 to float32, exactly.

LLVM's own conversion of float16 needs instructions that not every CPU has: without them it
calls functions that no one may have linked. Then bits are moved instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from admm_softmax.kernels.compiled.jit import (
    compiled,
    separate,
    use_wide_vectors,
)
from admm_softmax.kernels.compiled.panels import copy_panel_of, turn_panel_of
from admm_softmax.kernels.compiled.target import CONVERTS_HALVES
from admm_softmax.kernels.compiled.thin import Products
from admm_softmax.kernels.compiled.tiles import Emitter, Reader, pointed_at, product_tile_of

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
#: Stands for the function of one kind of half in the template below.
widened: Any = None


def _reading(half: str) -> Reader:
    """How a tile reads vectors of an X of "float16" or "bfloat16": widened in a register."""
    short = ir.IntType(16)

    def read(e: Emitter, row: Any, j: Any, copy: Any) -> Any:
        bits = e.load(e.builder.bitcast(row, short.as_pointer()), j, short)
        vector = _wide(e.builder, bits, half)
        if copy is not None:
            e.store(vector, copy, j)
        return vector

    return read


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


@separate(types.void(types.uint16[::1], types.float32[::1]), fastmath=set())
def _widen(halves: Any, out: Any) -> None:
    """out = the float32 of all float16 bits in `halves`."""
    for i in range(len(halves)):
        out[i] = moved(halves[i])


def _pack_halves(
    x: int, row_bytes: int, column_bytes: int, count: int, first: int, stop: int, out: Any
) -> None:
    """out[t, j] = X[t, first + j] for t < count, first + j < stop; as `thin` packs floats."""
    use_wide_vectors()
    if column_bytes == _BITS.itemsize:
        for t in range(count):
            row = pointed_at(_BITS, x + t * row_bytes + first * column_bytes, stop - first)
            for j in range(stop - first):
                out[t, j] = widened(row[j])
    else:  # column by column, in which order such an X lies
        for j in range(first, stop):
            for t in range(count):
                entry = pointed_at(_BITS, x + t * row_bytes + j * column_bytes, 1)
                out[t, j - first] = widened(entry[0])


#: What reads X in the two products.
FIRST_TILES = {half: product_tile_of(_reading(half), _BITS.itemsize) for half in WIDENED_ENTRY}
PANELS = {half: copy_panel_of(_reading(half), _BITS.itemsize) for half in WIDENED_ENTRY}
TURNED_PANELS = {half: turn_panel_of(_reading(half)) for half in WIDENED_ENTRY}
#: The products over X of halves.
HALF_PRODUCTS = {
    half: Products(
        types.float32,
        half,
        pack_rest=_pack_halves,
        widens=True,
        widened=WIDENED_ENTRY[half],
        first_tile=FIRST_TILES[half],
        copy_panel=PANELS[half],
        turn_panel=TURNED_PANELS[half],
    )
    for half in WIDENED_ENTRY
}


def widening() -> Any:
    """What widens float16 bits."""
    return _widen
