"""Compiled functions as Python calls them: through one C function each, without the GIL.

It takes the address of a block of 64-bit words: the numbers among the arguments, then the objects
that are arrays, in which it finds address and shape. So nothing here depends on how the code behind
it was compiled, or when.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from struct import Struct
from typing import Any

import numpy as np

from admm_softmax.kernels.compile_clock import compile_time
from admm_softmax.kernels.compiled import loading

#: Kinds of argument that are numbers, with their form in a block. Arrays are of kinds such as
#: "float64 2", of two dimensions; tuples of arrays are lists of kinds.
NUMBERS = {"int": "q", "float": "d"}
#: What an entry returns where an array is not C-ordered and aligned, or of other dimensions.
REFUSED = -(1 << 63)

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)


@cache
def entry(place: str, *kind: Any) -> Entry:
    """What Python calls: `place` is "module:maker", where the maker for this kind returns it."""
    return Entry(place, kind)


class Entry:
    """A function that is compiled, or loaded, when it is first called.

    kind : what tells it from others of the same maker; types of NumPy by their names
    """

    def __init__(self, place: str, kind: tuple[Any, ...]) -> None:
        self.place = place
        self.kind = tuple(str(one) if isinstance(one, np.dtype) else one for one in kind)
        self.name = f"{place.replace(':', '.')}{self.kind}"
        self._call: Any = None

    def load(self) -> None:
        """Make it ready to be called."""
        found = loading.find(self.name)
        if found is None:
            with compile_time.counting(compiles=False):
                from admm_softmax.kernels.compiled import jit  # noqa: PLC0415  (loads Numba)

                module, _, maker = self.place.partition(":")
                made = getattr(import_module(module), maker)(*self.kind)
            found = jit.load_entry(self.name, made)
        self._tuples = [i for i, one in enumerate(found.kinds) if isinstance(one, list)]
        self._kinds = self._flat(found.kinds)
        self._numbers = [i for i, one in enumerate(self._kinds) if one in NUMBERS]
        self._arrays = [i for i, one in enumerate(self._kinds) if one not in NUMBERS]
        self._dtypes = [np.dtype(self._kinds[i].split()[0]) for i in self._arrays]
        forms = [NUMBERS[self._kinds[i]] for i in self._numbers]
        self._block = Struct("".join(forms) + "q" * len(self._arrays))
        self._call = _CALL(found.address)

    def __call__(self, *arguments: Any) -> int:
        """Run it. Arrays must be of its own types, C-ordered and aligned."""
        if self._call is None:
            self.load()
        values = self._flat(arguments) if self._tuples else arguments
        if len(values) != len(self._kinds):
            raise TypeError(f"{self.name} takes {len(self._kinds)} values, got {len(values)}")
        arrays = [values[i] for i in self._arrays]
        if [array.dtype for array in arrays] != self._dtypes:
            raise self._refusal(arrays)
        words = [values[i] for i in self._numbers] + [id(array) for array in arrays]
        done: int = self._call(self._block.pack(*words))
        if done == REFUSED:
            raise self._refusal(arrays)
        return done

    def _flat(self, nested: Any) -> list[Any]:
        """The members, with those of tuples in their place."""
        found = list(nested)
        for i in reversed(self._tuples):
            found[i : i + 1] = nested[i]
        return found

    def _refusal(self, arrays: list[Any]) -> TypeError:
        """What is wrong with the first array that is not as it must be."""
        for place, array in zip(self._arrays, arrays, strict=True):
            dtype, ndim = self._kinds[place].split()
            is_plain = array.flags.c_contiguous and array.flags.aligned
            if array.dtype != dtype or array.ndim != int(ndim) or not is_plain:
                break
        return TypeError(
            f"value {place} of {self.name} must be a C-ordered array of {ndim} dimensions and "
            f"{dtype}, got {array.ndim} dimensions and {array.dtype}, "
            + ("in C order" if is_plain else "not in C order or not aligned")
        )
