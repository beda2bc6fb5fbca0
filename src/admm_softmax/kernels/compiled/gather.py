"""Sparse rows times a dense matrix of few columns, which stays in registers while they last."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types

from admm_softmax.kernels.compiled.jit import separate, with_globals
from admm_softmax.kernels.compiled.layout import LANES
from admm_softmax.kernels.compiled.tiles import GATHERED, gather_tile

#: Stand for functions of one precision in the templates below; `with_globals` puts them in.
multiply: Any = None


@cache
def multiply_rows(dtype: str, index: str, of_matrix: str) -> Any:
    """`_multiply` for entries, indices and a dense matrix of these types."""
    data, indices, M = (from_dtype(np.dtype(kind)) for kind in (dtype, index, of_matrix))
    signature = types.void(
        data[::1], indices[::1], types.intp[::1], types.intp, types.intp, M[:, ::1],
        types.float64[:, ::1],
    )  # fmt: skip
    return separate(signature, name=f"multiply.{data}.{indices}.{M}")(_multiply)


@cache
def columns_pass(dtype: str, index: str, of_product: str) -> Any:
    """The product with the transpose, for X stored by columns: see `_add_columns`."""
    data, indices, out = (from_dtype(np.dtype(kind)) for kind in (dtype, index, of_product))
    signature = types.void(
        data[::1], indices[::1], types.intp[::1], types.intp, types.intp, types.float64[:, ::1],
        types.float64[:, ::1], out[:, ::1],
    )  # fmt: skip
    multiply = multiply_rows(dtype, index, "float64")
    name = f"{dtype}.{index}.{of_product}"
    return separate(signature)(with_globals(_add_columns, name, multiply=multiply))


def _multiply(
    data: Any, indices: Any, pointers: Any, first: int, count: int, M: Any, out: Any
) -> None:
    """out[t] = row first + t of a CSR matrix, times M; both padded to whole vectors."""
    n_vectors = M.shape[1] // LANES
    for t in range(count):
        start, stop = pointers[first + t], pointers[first + t + 1]
        v = 0
        while v < n_vectors:
            size = GATHERED[0]
            for larger in GATHERED[1:]:
                if larger <= n_vectors - v:
                    size = larger
            gather_tile(size, data, indices, start, stop, M, v * LANES, out, t)
            v += size


def _add_columns(
    data: Any, indices: Any, pointers: Any, start: int, stop: int, R: Any, room: Any, product: Any
) -> None:
    """product[j] = Σᵢ xᵢⱼ Rᵢ for the columns start ≤ j < stop of X, stored column by column.

    R and `room` are padded to whole vectors, `product` is not: some columns at a time are summed
    in `room`, which the first-level cache holds, and go to `product` in its own precision.
    """
    K = product.shape[1]
    for first in range(start, stop, len(room)):
        count = min(len(room), stop - first)
        multiply(data, indices, pointers, first, count, R, room)
        for t in range(count):
            for k in range(K):
                product[first + t, k] = room[t, k]
