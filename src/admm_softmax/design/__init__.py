"""The rows of X and how they are stored: one file per kind, all used through `Design`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax._validation import refuse_masked
from admm_softmax.design.base import Design, Sample
from admm_softmax.design.blocks import RowBlockDesign
from admm_softmax.design.dense import DenseDesign
from admm_softmax.design.fold import Fold, Request
from admm_softmax.design.half import HalfDesign
from admm_softmax.design.interop import as_stored, is_dask, is_on_device, is_tensor, joined
from admm_softmax.design.partitioned import PartitionedDesign
from admm_softmax.design.rows import Rows, row_counts
from admm_softmax.design.scaled import ScaledDesign, standardized
from admm_softmax.design.sparse import SparseDesign
from admm_softmax.design.streamed import StreamedDesign
from admm_softmax.sources import is_file_like, open_rows

__all__ = [
    "DenseDesign",
    "Design",
    "Fold",
    "HalfDesign",
    "PartitionedDesign",
    "Request",
    "RowBlockDesign",
    "Rows",
    "Sample",
    "ScaledDesign",
    "SparseDesign",
    "StreamedDesign",
    "as_design",
    "as_stored",
    "is_dask",
    "is_on_device",
    "is_tensor",
    "joined",
    "row_counts",
    "standardized",
]


def as_design(X: Any, *, intercept: bool = True, check_finite: bool = True) -> Design:
    """Wrap an array, a SciPy sparse matrix, files or Dask data; a Design passes through unchanged.

    Arrays are NumPy's, torch tensors, or anything else that has `__dlpack__`; float16 and bfloat16
    are used as they are stored. A tensor on another device than this machine's memory becomes a
    `TorchDesign`, and its rows stay there. Files are paths, lists of
    them, or whatever else `RowBlocks` takes. `check_finite=False` skips the check of every entry
    where X is known to be finite.

    >>> import numpy as np
    >>> as_design(np.ones((3, 2))).n_features  # two columns and the intercept
    3
    """
    if isinstance(X, Design):
        return X
    if is_dask(X):
        from admm_softmax.design.dask import DaskDesign  # noqa: PLC0415  (loads Dask)

        return DaskDesign(X, intercept=intercept)
    if is_file_like(X):
        rows, _ = open_rows(X)
        return StreamedDesign(rows, intercept=intercept, check_finite=check_finite)
    refuse_masked(X, "X")
    if is_on_device(X):
        from admm_softmax.design.torch import TorchDesign  # noqa: PLC0415  (loads torch)

        on_device = TorchDesign(X, intercept=intercept)
        if check_finite and not on_device.is_finite():
            raise ValueError("X must be finite, got NaN or infinity")
        return on_device
    X, half = as_stored(X)
    if half is not None:
        of_halves = HalfDesign(X, intercept=intercept, half=half)
        if check_finite and not of_halves.is_finite():
            raise ValueError("X must be finite, got NaN or infinity")
        return of_halves
    design = (SparseDesign if sp.issparse(X) else DenseDesign)(X, intercept=intercept)
    if check_finite:
        entries = design.X.data if design.is_sparse else design.X
        # A sum is finite only if every entry is, unless it overflows: then look again.
        with np.errstate(all="ignore"):
            suspicious = not np.isfinite(entries.sum(dtype=np.float64))
        if suspicious and not np.isfinite(entries).all():
            raise ValueError("X must be finite, got NaN or infinity")
    return design
