"""Arrays as compiled code takes them, so that it is compiled for one kind of array only."""

from __future__ import annotations

from typing import Any

import numpy as np


class _Writable:
    """Memory of an array that is marked read-only, without the mark."""

    def __init__(self, array: Any) -> None:
        self.array = array
        facts = array.__array_interface__
        self.__array_interface__ = {**facts, "data": (facts["data"][0], False)}


def plain(array: Any, dtype: Any) -> Any:
    """An array as compiled passes take all of them: C-ordered, aligned, not marked read-only.

    Numba compiles anew for every other kind of array. Passes do not write to their inputs.
    """
    array = np.require(array, dtype, ["C", "A"])
    return array if array.flags.writeable else np.asarray(_Writable(array))
