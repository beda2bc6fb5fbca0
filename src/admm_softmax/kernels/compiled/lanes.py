"""A vector register of doubles, or of singles, as a type of Numba's, one row of X in each lane.

Row kernels written with it keep maxima and sums of a few rows in registers while they go down
the classes. A compiler finds that only with luck: it must prove that no two arrays overlap, and
gives up when there are many of them.

    x = load(A, k, t)     A[k, t], A[k, t + 1], … , `LANES` of them, as doubles
    x = load_stored(A, k, t)     as many as fill a register, in A's own precision
    store(x, A, k, t)     in the precision of both
    store_as(x, A, t)     to A[t], A[t + 1], … of a one-dimensional A of either precision
    x + y, x - y, x * y, x / y   lane by lane; either may be a number
    larger(x, y)          the larger one; x where it is NaN
    where_equal(x, y, a, b), where_above(x, y, a, b)     a where x = y, or x > y; b elsewhere
    power_of_two(x)       of what ROUNDER was added to (`elementary`); also of numbers
    mantissa_of(x), exponent_of(x)      parts of a double; also of numbers
    spread(x), spread_single(x)   the same number in every lane
    low_half(x), high_half(x)     of singles, as doubles
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
from admm_softmax.kernels.compiled.target import VECTOR_BYTES

INT32 = ir.IntType(32)


class _Lanes(types.Type):
    """As many numbers of one precision as fill a register."""

    def __init__(self, scalar: Any, vector: Any) -> None:
        super().__init__(name=f"lanes({scalar}, {vector.count})")
        self.scalar, self.vector = scalar, vector


DOUBLES = _Lanes(types.float64, ir.VectorType(ir.DoubleType(), LANES))
SINGLES = _Lanes(types.float32, ir.VectorType(ir.FloatType(), 2 * LANES))
_OF_SCALAR = {lanes.scalar: lanes for lanes in (DOUBLES, SINGLES)}


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


def _spread(builder: Any, value: Any, vector: Any) -> Any:
    """A number in every lane of such a vector; a vector as it is."""
    if value.type == vector:
        return value
    if value.type != vector.element:
        value = builder.fptrunc(value, vector.element)
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(INT32, 0))
    pattern = ir.Constant(ir.VectorType(INT32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, nothing, pattern)


def _kinds(*given: Any) -> tuple[Any, list[Any]]:
    """The lanes among these types, or double where there are none; and all types as taken."""
    lanes = next((kind for kind in given if isinstance(kind, _Lanes)), types.float64)
    return lanes, [kind if kind is lanes else types.float64 for kind in given]


def _alike(builder: Any, kind: Any, values: Any) -> Any:
    """Values as lanes of this kind; as they are, where it is that of a number."""
    if not isinstance(kind, _Lanes):
        return values
    return [_spread(builder, value, kind.vector) for value in values]


def _define(operation: Any, instruction: str) -> None:
    """Type and lower an operator whose operands are lanes, or lanes and a number."""

    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            lanes, kinds = _kinds(*args)
            return signature(lanes, *kinds) if isinstance(lanes, _Lanes) else None

    infer_global(operation)(Template)

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, y = _alike(builder, signature.return_type, arguments)
        return getattr(builder, instruction)(x, y, flags=("contract",))

    pairs = [(_Lanes, _Lanes), (_Lanes, types.Float), (types.Float, _Lanes)]
    for pair in pairs:
        lower_builtin(operation, *pair)(lower)


for _operation, _instruction in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):  # fmt: skip
    _define(_operation, _instruction)


def _place(
    context: Any, builder: Any, kind: Any, array: Any, place: Any, count: int = LANES
) -> Any:
    """The pointer to so many entries of a C-ordered array, of its own type.

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
    vector = ir.VectorType(context.get_value_type(kind.dtype), count)
    return builder.bitcast(pointer, vector.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def load(typing: Any, A: Any, k: Any, t: Any) -> Any:
    """A[k, t : t + LANES] in double; of a one-dimensional A, whatever k, A[t : t + LANES]."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = builder.load(_place(context, builder, A, arguments[0], arguments[-A.ndim :]))
        value.align = context.get_abi_sizeof(value.type.element)
        return value if value.type == DOUBLES.vector else builder.fpext(value, DOUBLES.vector)

    return DOUBLES(A, types.intp, types.intp), emit


@intrinsic  # type: ignore[untyped-decorator]
def load_stored(typing: Any, A: Any, k: Any, t: Any) -> Any:
    """A[k, t], A[k, t + 1] and so on in A's own precision; as `load` for one-dimensional A."""
    lanes = _OF_SCALAR[A.dtype]

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = arguments[-A.ndim :]
        value = builder.load(_place(context, builder, A, arguments[0], place, lanes.vector.count))
        value.align = context.get_abi_sizeof(value.type.element)
        return value

    return lanes(A, types.intp, types.intp), emit


@intrinsic  # type: ignore[untyped-decorator]
def store(typing: Any, x: Any, A: Any, k: Any, t: Any) -> Any:
    """Write lanes to where they are loaded from, in an array of their own precision."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = arguments[-A.ndim :]
        place = _place(context, builder, A, arguments[1], place, x.vector.count)
        builder.store(arguments[0], place).align = context.get_abi_sizeof(x.vector.element)
        return context.get_dummy_value()

    return types.void(_OF_SCALAR[A.dtype], A, types.intp, types.intp), emit


@intrinsic  # type: ignore[untyped-decorator]
def store_as(typing: Any, x: Any, A: Any, t: Any) -> Any:
    """Write lanes to A[t : t + LANES], in A's precision."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, array, t = arguments
        place = _place(context, builder, A, array, [t])
        kind = place.type.pointee
        x = x if kind == DOUBLES.vector else builder.fptrunc(x, kind)
        builder.store(x, place).align = context.get_abi_sizeof(kind.element)
        return context.get_dummy_value()

    return types.void(DOUBLES, A, types.intp), emit


def _spreading(lanes: Any) -> Any:
    """An intrinsic that spreads a number over such lanes."""

    @intrinsic  # type: ignore[untyped-decorator]
    def spread(typing: Any, x: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _spread(builder, arguments[0], lanes.vector)

        return lanes(types.float64), emit

    return spread


spread, spread_single = _spreading(DOUBLES), _spreading(SINGLES)


def _taken(builder: Any, vector: Any, start: int, count: int) -> Any:
    """So many lanes of a vector, from one of them on."""
    places = ir.Constant(ir.VectorType(INT32, count), [*range(start, start + count)])
    return builder.shuffle_vector(vector, vector, places)


def _half(start: int) -> Any:
    """An intrinsic that gives one half of lanes of singles, as doubles."""

    @intrinsic  # type: ignore[untyped-decorator]
    def half(typing: Any, x: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.fpext(_taken(builder, arguments[0], start, LANES), DOUBLES.vector)

        return DOUBLES(SINGLES), emit

    return half


low_half, high_half = _half(0), _half(LANES)


@intrinsic  # type: ignore[untyped-decorator]
def sum_lanes(typing: Any, x: Any) -> Any:
    """The sum of the lanes, as a double: from the first to the last, but of singles by halves."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, n = arguments[0], x.vector.count
        while x is SINGLES and n > 1:
            n //= 2
            lanes = builder.fadd(*(_taken(builder, lanes, i, n) for i in (0, n)))
        total = builder.extract_element(lanes, ir.Constant(INT32, 0))
        for i in range(1, n):
            lane = builder.extract_element(lanes, ir.Constant(INT32, i))
            total = builder.fadd(total, lane)
        return total if x is DOUBLES else builder.fpext(total, ir.DoubleType())

    return types.float64(x), emit


def _choice(comparison: str) -> Any:
    """An intrinsic that chooses between its third and fourth arguments, lane by lane."""

    @intrinsic  # type: ignore[untyped-decorator]
    def choose(typing: Any, x: Any, y: Any, a: Any, b: Any) -> Any:
        found, kinds = _kinds(x, y, a, b)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, y, a, b = _alike(builder, found, arguments)
            return builder.select(builder.fcmp_ordered(comparison, x, y), a, b)

        return found(*kinds), emit

    return choose


where_equal, where_above = _choice("=="), _choice(">")


@intrinsic  # type: ignore[untyped-decorator]
def larger(typing: Any, x: Any, y: Any) -> Any:
    """The larger one, x where it is NaN; of lanes, or of two numbers."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, y = _alike(builder, found, arguments)
        return builder.select(builder.fcmp_ordered(">", y, x), y, x)

    found, kinds = _kinds(x, y)
    return found(*kinds), emit


def _of_bits(emit: Any) -> Any:
    """An intrinsic on the bits of a number or of lanes: emit(builder, bits, number) returns bits.

    `number` makes a constant for every lane.
    """

    def function(typing: Any, x: Any) -> Any:
        found, kinds = _kinds(x)

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = arguments[0].type
            if isinstance(kind, ir.VectorType):
                whole = ir.VectorType(ir.IntType(8 * VECTOR_BYTES // kind.count), kind.count)
                bits = emit(
                    builder,
                    builder.bitcast(arguments[0], whole),
                    lambda n: ir.Constant(whole, [n] * kind.count),
                )
            else:
                whole = ir.IntType(64)
                bits = emit(
                    builder, builder.bitcast(arguments[0], whole), lambda n: ir.Constant(whole, n)
                )
            return builder.bitcast(bits, kind)

        return found(*kinds), lower

    return intrinsic(function)


def _power(builder: Any, bits: Any, number: Any) -> Any:
    """2ᵏ, for k in the last bits of a number: moved to where the exponent is."""
    scalar = bits.type.element if isinstance(bits.type, ir.VectorType) else bits.type
    bias, places = (1023, 52) if scalar.width == 64 else (127, 23)
    return builder.shl(builder.add(bits, number(bias)), number(places))


power_of_two = _of_bits(_power)

#: The bits of 1 and of 2⁵², and those of a double that hold neither sign nor exponent.
_ONE, _TWO_52, _FRACTION = 0x3FF << 52, 0x433 << 52, (1 << 52) - 1

#: m with x = 2ᵏ m and 1 ≤ m < 2, for positive x.
mantissa_of = _of_bits(lambda b, bits, n: b.or_(b.and_(bits, n(_FRACTION)), n(_ONE)))


def _exponent(builder: Any, bits: Any, number: Any) -> Any:
    """k + 1023 + 2⁵² is written into the last bits of 2⁵², and all but k subtracted."""
    raised = builder.or_(builder.lshr(bits, number(52)), number(_TWO_52))
    vector = DOUBLES.vector
    kind = vector if isinstance(bits.type, ir.VectorType) else vector.element
    shift = 4503599627370496.0 + 1023.0
    shifts = ir.Constant(kind, [shift] * LANES if kind == vector else shift)
    return builder.bitcast(builder.fsub(builder.bitcast(raised, kind), shifts), bits.type)


#: k with x = 2ᵏ m and 1 ≤ m < 2, for positive x. Conversions of integers need AVX-512.
exponent_of = _of_bits(_exponent)
