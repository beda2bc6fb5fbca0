"""Coordinate descent, compiled; as Python where Numba may not compile."""

from __future__ import annotations

from inspect import isfunction
from typing import Any

from admm_softmax.kernels import coordinates
from admm_softmax.kernels.compiled.entries import entry
from admm_softmax.kernels.thresholds import compiling_is_off

_PLACE = "admm_softmax.kernels.compiled.coordinate_loops:loop_of"


def loop(name: str) -> Any:
    """A loop of `kernels.coordinates` by its name; arrays must be C-ordered doubles."""
    return getattr(coordinates, name) if compiling_is_off() else entry(_PLACE, name)


def load_all() -> None:
    """Compile all loops, or load them."""
    if not compiling_is_off():
        for function in filter(isfunction, vars(coordinates).values()):
            entry(_PLACE, function.__name__).load()
