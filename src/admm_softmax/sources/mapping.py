"""Rows of a file where they lie in the page cache, without a copy."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np

#: Bytes between two pages that are looked at: the kernel reads and drops files in larger pieces.
PROBED = 1 << 20


def mapped(file: Any, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Rows from an offset on, mapped; None where they are not in the page cache.

    The map lives as long as the array. Rows that are not in memory are better read ahead by
    a thread than waited for in the middle of a product, and an error of the disk is an
    exception there.
    """
    start = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    size = offset - start + prod(shape) * dtype.itemsize
    if size == offset - start or os.fstat(file.fileno()).st_size < start + size:
        return None  # nothing to map, or the file has become shorter: reading says so
    ask = _mincore()
    if ask is None:
        return None
    memory = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ, offset=start)
    array = np.ndarray(shape, dtype, buffer=memory, offset=offset - start)
    address = array.ctypes.data - (offset - start)
    answer = (ctypes.c_ubyte * 1)()
    for place in [*range(0, size, PROBED), (size - 1) // mmap.PAGESIZE * mmap.PAGESIZE]:
        if ask(address + place, 1, answer) or not answer[0] & 1:
            return None
    return array


def is_mapped(rows: Any) -> bool:
    """Whether an array is such a map, or a view of one."""
    while isinstance(rows, np.ndarray):
        rows = rows.base
    return isinstance(rows, mmap.mmap)


@cache
def _mincore() -> Callable[..., int] | None:
    """The kernel's answer to which pages are in memory; None where no one can tell."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = ctypes.CDLL(None).mincore
    except (OSError, AttributeError):
        return None
    found.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    found.restype = ctypes.c_int
    ask: Callable[..., int] = found
    return ask
