"""Compiled functions as Python calls them: through one C function each, without the GIL.

It takes the address of a block of 64-bit words, one for each argument: a number itself, and for an
array where NumPy keeps the array's address and shape. So nothing here depends on how the code
behind it was compiled, or when.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from struct import Struct
from typing import Any

import numpy as np

from admm_softmax.kernels.compiled import loading

#: Kinds of argument that are numbers, with their form in a block. Arrays are of kinds such as
#: "float64 2", of two dimensions; tuples of arrays are lists of kinds.
NUMBERS = {"int": "q", "float": "d"}
#: An array's address, number of dimensions and shape lie behind what every object of Python has.
#: NumPy's C interface promises this order (`PyArrayObject`).
HEADER = object.__basicsize__

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)


@cache
def entry(place: str, *kind: Any) -> Entry:
    """What Python calls: `place` is "module:maker", where the maker for this kind returns it."""
    return Entry(place, kind)


class Entry:
    """A function that is compiled, or loaded, when it is first called."""

    def __init__(self, place: str, kind: tuple[Any, ...]) -> None:
        self.place, self.kind = place, kind
        self.name = f"{place.replace(':', '.')}{kind}"
        self._call: Any = None

    def load(self) -> None:
        """Make it ready to be called."""
        found = loading.find(self.name)
        if found is None:
            from admm_softmax.kernels.compiled import jit  # noqa: PLC0415  (loads Numba)

            module, _, maker = self.place.partition(":")
            found = jit.load_entry(self.name, getattr(import_module(module), maker)(*self.kind))
        self._kinds = [_kind(one) for one in flat(found.kinds)]
        self._block = Struct("".join(NUMBERS.get(one, "q") for one in flat(found.kinds)))
        self._call = _CALL(found.address)

    def __call__(self, *arguments: Any) -> int:
        """Run it. Arrays must be of its own types, and C-ordered."""
        if self._call is None:
            self.load()
        words = []
        for kind, value in zip(self._kinds, flat(arguments), strict=True):
            if kind is None:
                words.append(value)
                continue
            dtype, ndim = kind
            if value.dtype != dtype or value.ndim != ndim or not value.flags.c_contiguous:
                raise self._refusal(len(words), dtype, ndim, value)
            words.append(id(value) + HEADER)
        done: int = self._call(self._block.pack(*words))
        return done

    def _refusal(self, place: int, dtype: Any, ndim: int, value: Any) -> TypeError:
        order = "in C order" if value.flags.c_contiguous else "not in C order"
        return TypeError(
            f"argument {place} of {self.name} must be a C-ordered array of {ndim} dimensions and "
            f"{dtype}, got {value.ndim} dimensions and {value.dtype}, {order}"
        )


def flat(nested: Any) -> list[Any]:
    """The members, with those of tuples and lists in their place."""
    found: list[Any] = []
    for one in nested:
        if isinstance(one, (tuple, list)):
            found += one
        else:
            found.append(one)
    return found


def _kind(kind: str) -> tuple[Any, int] | None:
    """Type and dimensions of an array; None for numbers."""
    if kind in NUMBERS:
        return None
    dtype, ndim = kind.split()
    return np.dtype(dtype), int(ndim)
