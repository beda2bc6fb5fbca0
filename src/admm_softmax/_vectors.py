"""Memory for the vectors of a descent: written to again and again, instead of new for each step."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array

#: A large page of the operating system, and a line of the cache, in bytes.
LARGE_PAGE, CACHE_LINE = 2 << 20, 64
#: NumPy asks for large pages for arrays of so many bytes.
LARGE_ARRAY = 4 << 20
#: The most bytes of a block; what is not written to takes no memory. With 32 MB and more the C
#: library would return a block to the operating system, and the next fit would begin anew.
BLOCK_OF_VECTORS = 24 << 20


class Vectors:
    """Arrays of W's shape, d × K, in one precision.

    New memory comes in pages of 4 kB, each filled with zeros when it is first written to: on a
    virtual machine (EPYC, Zen 3) 1.5 ms for 30,001 × 20 in float32, ten times what it takes to
    write so much again. So arrays that a descent no longer needs are given back and taken
    again; and those that are too small for NumPy to ask for large pages, which take 0.35 ms for
    as much, are cut from a block of memory that is not.

    expected : how many will be in use at once, about

    >>> vectors = Vectors((3, 2), np.float32)
    >>> first = vectors.take()
    >>> vectors.give(first)
    >>> vectors.take() is first
    True
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, expected: int = 1) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._size = int(np.prod(shape)) * self.dtype.itemsize
        self._step = -(-self._size // CACHE_LINE) * CACHE_LINE
        fitting = 1 if self._size >= LARGE_ARRAY else BLOCK_OF_VECTORS // max(1, self._step)
        self._per_block = max(1, min(expected, fitting))
        self._free: list[Array] = []

    def take(self) -> Array:
        """An array with anything in it."""
        if not self._free:
            self._free = self._block()
        return self._free.pop()

    def give(self, array: Array) -> None:
        """Let an array be taken again. One of another shape, order or type is left alone."""
        fits = array.shape == self.shape and array.dtype == self.dtype
        if fits and array.flags.c_contiguous and array.flags.writeable:
            self._free.append(array)

    def _block(self) -> list[Array]:
        """New arrays, one after the other in memory; the first is the last of the list."""
        if self._per_block == 1:
            return [np.empty(self.shape, self.dtype)]
        size = self._per_block * self._step
        boundary = LARGE_PAGE if size >= LARGE_ARRAY else CACHE_LINE
        memory = np.empty(size + boundary, np.uint8)
        start = -memory.ctypes.data % boundary
        starts = [start + i * self._step for i in range(self._per_block)]
        return [
            memory[i : i + self._size].view(self.dtype).reshape(self.shape)
            for i in reversed(starts)
        ]
