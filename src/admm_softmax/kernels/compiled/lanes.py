"""A vector register of doubles as a type of Numba's, one row of X in each lane.

Row kernels written with it keep maxima and sums of a few rows in registers while they go down
the classes. A compiler finds that only with luck: it must prove that no two arrays overlap, and
gives up when there are many of them.

    x = load(A, k, t)     A[k, t], A[k, t + 1], … , `LANES` of them
    store(x, A, k, t)
    store_as(x, A, t)     to A[t], A[t + 1], … of a one-dimensional A of either precision
    x + y, x - y, x * y, x / y   lane by lane; either may be a number
    larger(x, y)          the larger one; x where it is NaN
    where_equal(x, y, a, b), where_above(x, y, a, b)     a where x = y, or x > y; b elsewhere
    power_of_two(x), mantissa_of(x), exponent_of(x)      parts of a double; also of numbers
    sum_lanes(x)
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

from admm_softmax.kernels.compiled.layout import LANES

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
INT32 = ir.IntType(32)


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"lanes({LANES})")


LANES_TYPE = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _spread(builder: Any, value: Any) -> Any:
    """A number in every lane; a vector as it is."""
    if value.type == _VECTOR:
        return value
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(INT32, 0))
    pattern = ir.Constant(ir.VectorType(INT32, LANES), [0] * LANES)
    return builder.shuffle_vector(first, nothing, pattern)


def _define(operation: Any, instruction: str) -> None:
    """Type and lower an operator whose operands are lanes, or lanes and a number."""

    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            kinds = [LANES_TYPE if kind is LANES_TYPE else types.float64 for kind in args]
            return signature(LANES_TYPE, *kinds) if LANES_TYPE in args else None

    infer_global(operation)(Template)

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, y = (_spread(builder, value) for value in arguments)
        return getattr(builder, instruction)(x, y, flags=("contract",))

    pairs = [(_Lanes, _Lanes), (_Lanes, types.Float), (types.Float, _Lanes)]
    for pair in pairs:
        lower_builtin(operation, *pair)(lower)


for _operation, _instruction in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):  # fmt: skip
    _define(_operation, _instruction)


def _place(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """The pointer to as many entries of a C-ordered array, of its own type, as there are lanes.

    From two of the array's fields: Numba's own way unpacks all of them, every time, which is
    more to compile.
    """
    assert kind.layout == "C"
    fields = context.data_model_manager[kind]
    offset = place[0]
    for axis in range(1, kind.ndim):
        length = builder.extract_value(array, (fields.get_field_position("shape"), axis))
        offset = builder.add(builder.mul(offset, length), place[axis])
    data = builder.extract_value(array, fields.get_field_position("data"))
    pointer = builder.gep(data, [offset], inbounds=True)
    vector = ir.VectorType(context.get_value_type(kind.dtype), LANES)
    return builder.bitcast(pointer, vector.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def load(typing: Any, A: Any, k: Any, t: Any) -> Any:
    """A[k, t : t + LANES] in double; of a one-dimensional A, whatever k, A[t : t + LANES]."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = builder.load(_place(context, builder, A, arguments[0], arguments[-A.ndim :]))
        value.align = context.get_abi_sizeof(value.type.element)
        return value if value.type == _VECTOR else builder.fpext(value, _VECTOR)

    return LANES_TYPE(A, types.intp, types.intp), emit


@intrinsic  # type: ignore[untyped-decorator]
def store(typing: Any, x: Any, A: Any, k: Any, t: Any) -> Any:
    """Write lanes to where `load` reads them."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, A, arguments[1], arguments[-A.ndim :])
        builder.store(arguments[0], place).align = 8
        return context.get_dummy_value()

    return types.void(LANES_TYPE, A, types.intp, types.intp), emit


@intrinsic  # type: ignore[untyped-decorator]
def store_as(typing: Any, x: Any, A: Any, t: Any) -> Any:
    """Write lanes to A[t : t + LANES], in A's precision."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, array, t = arguments
        place = _place(context, builder, A, array, [t])
        kind = place.type.pointee
        x = x if kind == _VECTOR else builder.fptrunc(x, kind)
        builder.store(x, place).align = context.get_abi_sizeof(kind.element)
        return context.get_dummy_value()

    return types.void(LANES_TYPE, A, types.intp), emit


@intrinsic  # type: ignore[untyped-decorator]
def spread(typing: Any, x: Any) -> Any:
    """The same number in every lane."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _spread(builder, arguments[0])

    return LANES_TYPE(types.float64), emit


@intrinsic  # type: ignore[untyped-decorator]
def sum_lanes(typing: Any, x: Any) -> Any:
    """The sum of the lanes, from the first to the last."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total = builder.extract_element(arguments[0], ir.Constant(INT32, 0))
        for i in range(1, LANES):
            lane = builder.extract_element(arguments[0], ir.Constant(INT32, i))
            total = builder.fadd(total, lane)
        return total

    return types.float64(LANES_TYPE), emit


def _choice(comparison: str) -> Any:
    """An intrinsic that chooses between its third and fourth arguments, lane by lane."""

    @intrinsic  # type: ignore[untyped-decorator]
    def choose(typing: Any, x: Any, y: Any, a: Any, b: Any) -> Any:
        kinds = _kinds(x, y, a, b)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if LANES_TYPE in kinds:
                arguments = [_spread(builder, value) for value in arguments]
            x, y, a, b = arguments
            return builder.select(builder.fcmp_ordered(comparison, x, y), a, b)

        return (LANES_TYPE if LANES_TYPE in kinds else types.float64)(*kinds), emit

    return choose


def _kinds(*given: Any) -> list[Any]:
    return [kind if kind is LANES_TYPE else types.float64 for kind in given]


where_equal, where_above = _choice("=="), _choice(">")


@intrinsic  # type: ignore[untyped-decorator]
def larger(typing: Any, x: Any, y: Any) -> Any:
    """The larger one, x where it is NaN; of lanes, or of two numbers."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, y = arguments
        if LANES_TYPE in signature.args:
            x, y = _spread(builder, x), _spread(builder, y)
        return builder.select(builder.fcmp_ordered(">", y, x), y, x)

    kinds = _kinds(x, y)
    return (LANES_TYPE if LANES_TYPE in kinds else types.float64)(*kinds), emit


def _of_bits(emit: Any) -> Any:
    """An intrinsic on the bits of a double or of lanes: emit(builder, bits, number) returns bits.

    `number` makes a constant for every lane.
    """

    def function(typing: Any, x: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind, whole = arguments[0].type, ir.IntType(64)
            if kind == _VECTOR:
                vector = ir.VectorType(whole, LANES)
                found = emit(
                    builder,
                    builder.bitcast(arguments[0], vector),
                    lambda n: ir.Constant(vector, [n] * LANES),
                )
            else:
                found = emit(
                    builder, builder.bitcast(arguments[0], whole), lambda n: ir.Constant(whole, n)
                )
            return builder.bitcast(found, kind)

        [kind] = _kinds(x)
        return kind(kind), lower

    return intrinsic(function)


#: 2ᵏ, for k in the last bits of a double: moved to where the exponent is.
power_of_two = _of_bits(lambda b, bits, n: b.shl(b.add(bits, n(1023)), n(52)))

#: The bits of 1 and of 2⁵², and those of a double that hold neither sign nor exponent.
_ONE, _TWO_52, _FRACTION = 0x3FF << 52, 0x433 << 52, (1 << 52) - 1

#: m with x = 2ᵏ m and 1 ≤ m < 2, for positive x.
mantissa_of = _of_bits(lambda b, bits, n: b.or_(b.and_(bits, n(_FRACTION)), n(_ONE)))


def _exponent(builder: Any, bits: Any, number: Any) -> Any:
    """k + 1023 + 2⁵² is written into the last bits of 2⁵², and all but k subtracted."""
    raised = builder.or_(builder.lshr(bits, number(52)), number(_TWO_52))
    kind = _VECTOR if isinstance(bits.type, ir.VectorType) else _VECTOR.element
    shift = 4503599627370496.0 + 1023.0
    shifts = ir.Constant(kind, [shift] * LANES if kind == _VECTOR else shift)
    return builder.bitcast(builder.fsub(builder.bitcast(raised, kind), shifts), bits.type)


#: k with x = 2ᵏ m and 1 ≤ m < 2, for positive x. Conversions of integers need AVX-512.
exponent_of = _of_bits(_exponent)
