"""Coordinate descent, compiled from the loops that specify it."""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import types

from admm_softmax.kernels import coordinates
from admm_softmax.kernels.compiled.jit import separate
from admm_softmax.kernels.compiled.zstep import CUBE, MATRIX, VECTOR

_PLACES, _NUMBER = types.intp[::1], types.float64
SIGNATURES = {
    "spread_pairs": types.void(CUBE, CUBE, CUBE, _NUMBER, VECTOR, CUBE),
    "bound_rows": types.void(
        VECTOR, CUBE, CUBE, types.intp, VECTOR, VECTOR, VECTOR, VECTOR
    ),
    "descend_entries": types.intp(
        MATRIX, _NUMBER, MATRIX, VECTOR, VECTOR, MATRIX, MATRIX, MATRIX, CUBE, CUBE, MATRIX,
        MATRIX, VECTOR, types.intp, _NUMBER,
    ),
    "descend_groups": types.intp(
        MATRIX, _NUMBER, VECTOR, VECTOR, VECTOR, VECTOR, _PLACES, _PLACES, MATRIX, CUBE, CUBE,
        MATRIX, MATRIX, VECTOR, types.intp, _NUMBER, MATRIX, types.boolean[::1],
    ),
}  # fmt: skip


@cache
def loop_of(name: str) -> Any:
    """The loop of this name, for C-ordered arrays of doubles."""
    return separate(SIGNATURES[name])(getattr(coordinates, name))
