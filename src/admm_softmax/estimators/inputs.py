"""What users give as rows and labels, as the estimators take it."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax.design import Design, StreamedDesign, as_design, as_stored, is_on_device
from admm_softmax.sources import RowBlocks, open_rows
from admm_softmax.sources.memory import free_memory


def opened(X: Any, y: Any, intercept: bool, columns: Any = None) -> tuple[Any, Any]:
    """Rows in files as a Design, and labels in files as an array; all else as it is.

    Arrays of other libraries become NumPy's, in the same memory; float16, bfloat16, and tensors on
    another device a Design.
    A memory map is read block by block unless it is float32 or float64 and fits into half of
    the free memory: then it is an array like others. `columns` are those to read of files that
    name their columns.
    """
    if isinstance(X, Design):
        return X, y
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X must hold its rows, got a LazyFrame, which does not yet: call collect()")
    if isinstance(X, np.memmap) and not _is_small(X):
        X = RowBlocks(X)
    if is_on_device(X):
        return as_design(X, intercept=intercept), y
    X, y = open_rows(X, y, columns)
    y, _ = as_stored(y)
    if not isinstance(X, RowBlocks):
        stored, half = as_stored(X)
        return (stored if half is None else as_design(X, intercept=intercept)), y
    return StreamedDesign(X, intercept=intercept), y


def _is_small(X: Any) -> bool:
    return X.dtype in (np.float32, np.float64) and X.nbytes <= free_memory() // 2
