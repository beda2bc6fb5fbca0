"""X as float16 or bfloat16 in memory, used as it is stored."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import ordered_map
from admm_softmax.design.blocks import RowBlockDesign
from admm_softmax.design.dense import FusedWorker, program_of
from admm_softmax.design.fold import Request
from admm_softmax.design.interop import HALVES
from admm_softmax.design.workers import Worker
from admm_softmax.kernels.thresholds import repays_widening
from admm_softmax.kernels.widening import widen

#: Bytes of X that are looked at together for NaN.
CHECKED_BYTES = 4 << 20


class HalfDesign(RowBlockDesign):
    """X̃ = [X, 1] for a two-dimensional float16 or bfloat16 array X of either order.

    Every entry is widened to float32, exactly, where a pass multiplies it: in registers. So X
    takes two bytes per entry and nothing else is stored, and sums are those of the float32 copy,
    in the same order.

    X : float16, ml_dtypes.bfloat16, or bfloat16 as `np.uint16` bits with `half="bfloat16"`

    >>> HalfDesign(np.ones((3, 2), np.float16)).dtype
    dtype('float32')
    """

    is_in_memory = True

    def __init__(
        self,
        X: Any,
        *,
        intercept: bool = True,
        state_dtype: Any = np.float64,
        half: str | None = None,
    ) -> None:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional, got {X.ndim} dimensions")
        self.half = half or X.dtype.name
        if self.half not in HALVES or X.itemsize != 2:
            raise TypeError(f"X must be float16 or bfloat16, got type {X.dtype}")
        super().__init__(X.shape, np.float32, intercept, state_dtype)
        #: The bits.
        self.X, self.offset = X.view(np.uint16), 0
        self.buffers: dict[tuple[Hashable, ...], Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Buffers fit the memory that X lies in here, and a copy's lies elsewhere.
        return {**self.__dict__, "buffers": {}}

    def block(self, rows: slice) -> Any:
        """Rows of X, widened."""
        return self._widened(self.X[rows])

    def rows_at(self, indices: Any) -> Any:
        """Rows of X at some positions, widened."""
        return self._widened(self.X[indices])

    def _widened(self, bits: Any) -> Any:
        out = np.empty(bits.shape, np.float32)
        stored = bits.view(np.float16 if self.half == "float16" else "V2")
        widen(stored, out, repays_widening(self.entries))
        return out

    def _worker(self, requests: list[Request], W: Array, n_groups: int, compiled: bool) -> Worker:
        """One compiled pass, where it pays, for X in any order."""
        if compiled and self.X.flags.aligned and requests[0].kernel.twin is not None:
            return FusedWorker(self, W, program_of(requests, self.dtype), n_groups)
        return super()._worker(requests, W, n_groups, compiled)

    def is_finite(self) -> bool:
        """Whether no entry is infinite or NaN: those have an exponent of ones alone."""
        exponent = np.uint16(0x7C00 if self.half == "float16" else 0x7F80)
        size = max(1, CHECKED_BYTES // (2 * self.shape[1]))
        parts = [slice(i, i + size) for i in range(0, self.n_rows, size)]
        return all(
            ordered_map(lambda rows: bool(((self.X[rows] & exponent) != exponent).all()), parts)
        )
