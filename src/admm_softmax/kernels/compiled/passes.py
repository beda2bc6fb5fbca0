"""The compiled functions that Python calls, each compiled or loaded when it is first called.

Nothing here loads Numba by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax.kernels.compiled.arrays import plain
from admm_softmax.kernels.compiled.entries import Entry, entry

_FOLDER = "admm_softmax.kernels.compiled"


def dense_pass(
    dtype: Any, state_dtype: Any, half: str | None, by_panels: bool, single: bool
) -> Entry:
    """The pass over dense X: see `folds.dense_pass`."""
    kinds = np.dtype(dtype), np.dtype(state_dtype), half, by_panels, single
    return entry(f"{_FOLDER}.folds:dense_pass", *kinds)


def csr_pass(dtype: Any, index: Any, state_dtype: Any) -> Entry:
    """The pass over CSR rows: see `folds.csr_pass`."""
    return entry(f"{_FOLDER}.folds:csr_pass", *map(np.dtype, (dtype, index, state_dtype)))


def scores_pass(state_dtype: Any) -> Entry:
    """The row kernels alone, on scores."""
    return entry(f"{_FOLDER}.folds:scores_pass", np.dtype(state_dtype))


def columns_pass(dtype: Any, index: Any, of_product: Any) -> Entry:
    """The product with the transpose of X, stored by columns: see `gather.columns_pass`."""
    return entry(f"{_FOLDER}.gather:columns_pass", *map(np.dtype, (dtype, index, of_product)))


def rows_solver() -> Entry:
    """The z-step alone: see `folds.solve_rows`."""
    return entry(f"{_FOLDER}.folds:rows_solver")


def substitutions(dtype: Any) -> tuple[Entry, Entry]:
    """Both steps of a solve with a triangle of this precision: see `substitution`."""
    down, up = (
        entry(f"{_FOLDER}.substitution:{way}", np.dtype(dtype)) for way in ("downward", "upward")
    )
    return down, up


def widen_halves(halves: Any, out: Any) -> None:
    """Write the float32 of float16 bits."""
    entry(f"{_FOLDER}.halves:widening")(plain(halves, np.uint16), out)


def tanh_in_place(x: Any) -> None:
    """Overwrite a contiguous float32 array by its tanh, to 4e-7 relative."""
    entry(f"{_FOLDER}.tanh:tanh_of_array")(x.reshape(-1))
