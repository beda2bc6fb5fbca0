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
    separate,
    with_globals,
)
from admm_softmax.kernels.compiled.target import CONVERTS_HALVES
from admm_softmax.kernels.compiled.tiles import pointed_at

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
widened: Any = None


@separate(types.void(types.uint16[::1], types.float32[::1]), fastmath=set())
def _widen(halves: Any, out: Any) -> None:
    """out = the float32 of all float16 bits in `halves`."""
    for i in range(len(halves)):
        out[i] = moved(halves[i])


def _pack_halves(
    x: int, row_bytes: int, column_bytes: int, count: int, first: int, stop: int, out: Any
) -> None:
    """out[t, j] = X[t, first + j] for t < count, first + j < stop; as `thin` packs floats."""
    if column_bytes == 2:
        for t in range(count):
            row = pointed_at(_BITS, x + t * row_bytes + first * column_bytes, stop - first)
            for j in range(stop - first):
                out[t, j] = widened(row[j])
    else:  # column by column, in which order such an X lies
        for j in range(first, stop):
            for t in range(count):
                entry = pointed_at(_BITS, x + t * row_bytes + j * column_bytes, 1)
                out[t, j - first] = widened(entry[0])


@cache
def packing(half: str) -> Any:
    """`_pack_halves` for "float16" or "bfloat16"."""
    I = types.intp  # noqa: E741
    signature = types.void(I, I, I, I, I, I, types.float32[:, ::1])
    copy = with_globals(_pack_halves, half, widened=WIDENED_ENTRY[half])
    return separate(signature, fastmath=set(), name=f"_pack.{half}")(copy)


def widen_halves(halves: Any, out: Any) -> None:
    """Write the float32 of float16 bits."""
    callable_from_python(_widen)(plain(halves, np.uint16), out)
