"""Whole numbers in compiled code, as single instructions.

Numba's own `min`, `int` and `//` are functions, or branches for what cannot happen here; each is
compiled again in every process that compiles.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic


@intrinsic  # type: ignore[untyped-decorator]
def groups(typing: Any, count: Any, most: Any) -> Any:
    """Into how many groups of about the same size to cut, of at most so many each.

    `count` is not negative, `most` is positive.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        count, most = arguments
        one = context.get_constant(types.intp, 1)
        return builder.udiv(builder.add(count, builder.sub(most, one)), most)

    return types.intp(types.intp, types.intp), emit


@intrinsic  # type: ignore[untyped-decorator]
def smaller(typing: Any, x: Any, y: Any) -> Any:
    """The smaller of two whole numbers."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, y = arguments
        return builder.select(builder.icmp_signed("<", y, x), y, x)

    return types.intp(types.intp, types.intp), emit


@intrinsic  # type: ignore[untyped-decorator]
def as_index(typing: Any, x: Any) -> Any:
    """A double that is a whole number, as one."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fptosi(arguments[0], context.get_value_type(types.intp))

    return types.intp(types.float64), emit
