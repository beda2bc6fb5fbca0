"""Where the rows of X live. One file a kind; all are driven through `Design`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax.design.base import Design, Fold, Kernel, Task
from admm_softmax.design.dense import DenseDesign
from admm_softmax.design.sparse import SparseDesign

__all__ = ["DenseDesign", "Design", "Fold", "Kernel", "SparseDesign", "Task", "as_design"]


def as_design(
    X: Any, *, intercept: bool = True, n_threads: int | None = None, check_finite: bool = True
) -> Design:
    """Wrap a dense array or a SciPy sparse matrix; a Design passes through unchanged.

    `check_finite=False` saves a look at every entry where X is known to be finite.

    >>> import numpy as np
    >>> as_design(np.ones((3, 2))).n_features  # two columns and the intercept
    3
    """
    if isinstance(X, Design):
        return X
    kind = SparseDesign if sp.issparse(X) else DenseDesign
    design = kind(X, intercept=intercept, n_threads=n_threads)
    if check_finite:
        entries = design.X.data if sp.issparse(design.X) else design.X
        # A sum is finite only if every entry is, unless it overflows: then look again.
        with np.errstate(all="ignore"):
            suspicious = not np.isfinite(entries.sum(dtype=np.float64))
        if suspicious and not np.isfinite(entries).all():
            raise ValueError("X must be finite, got NaN or infinity")
    return design
