"""Sparse rows times a dense matrix of few columns, which stays in registers while they last."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax.kernels.compiled.jit import compiled
from admm_softmax.kernels.compiled.tiles import VECTOR_BYTES, gather_1, gather_2, gather_4

#: Columns in a vector of doubles.
LANES = VECTOR_BYTES // 8


def padded_columns(M: Any, dtype: Any = np.float64) -> Any:
    """M in this precision, C-ordered, with zeros up to whole vectors of columns."""
    n, K = M.shape
    out = np.zeros((n, -(-K // LANES) * LANES), dtype)
    out[:, :K] = M
    return out


@compiled
def multiply(
    data: Any, indices: Any, pointers: Any, first: int, count: int, M: Any, out: Any
) -> None:
    """out[t] = row first + t of a CSR matrix, times M; both padded to whole vectors."""
    width = M.shape[1]
    for t in range(count):
        start, stop = np.intp(pointers[first + t]), np.intp(pointers[first + t + 1])
        k = 0
        while width - k >= 4 * LANES:
            gather_4(data, indices, start, stop, M, k, out, t)
            k += 4 * LANES
        while width - k >= 2 * LANES:
            gather_2(data, indices, start, stop, M, k, out, t)
            k += 2 * LANES
        while k < width:
            gather_1(data, indices, start, stop, M, k, out, t)
            k += LANES
