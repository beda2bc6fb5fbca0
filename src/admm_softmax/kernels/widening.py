"""Entries of a file to what passes compute in: float16 and bfloat16 to float32, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np


def widen(stored: Any, out: Any, compiled: bool = False) -> None:
    """Copy entries of any type, bfloat16 as two bytes of no type, to a contiguous float array.

    >>> out = np.empty(2, np.float32)
    >>> widen(np.array([0x3F80, 0xC000], np.uint16).view("V2"), out)
    >>> out
    array([ 1., -2.], dtype=float32)
    """
    if stored.dtype.kind == "V" or stored.dtype.name == "bfloat16":
        # A bfloat16 is the upper half of a float32.
        halves = np.ascontiguousarray(stored).view(np.uint16)
        if out.dtype != np.float32:
            out[...] = (halves.astype(np.uint32) << 16).view(np.float32)
        else:
            np.left_shift(halves, 16, out=out.view(np.uint32), dtype=np.uint32)
    elif compiled and stored.dtype == np.float16 and out.dtype == np.float32:
        from admm_softmax.kernels.compiled.passes import widen_halves  # noqa: PLC0415

        widen_halves(np.ascontiguousarray(stored).reshape(-1).view(np.uint16), out.reshape(-1))
    else:
        np.copyto(out, stored, casting="unsafe")
