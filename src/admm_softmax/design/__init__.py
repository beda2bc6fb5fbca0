"""Where the rows of X live. One file a kind; all are driven through `Design`."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from admm_softmax.design.base import Design, Fold, Kernel
from admm_softmax.design.dense import DenseDesign
from admm_softmax.design.sparse import SparseDesign

__all__ = ["DenseDesign", "Design", "Fold", "Kernel", "SparseDesign", "as_design"]


def as_design(X: Any, *, intercept: bool = True, n_threads: int | None = None) -> Design:
    """Wrap a dense array or a SciPy sparse matrix; a Design passes through unchanged.

    >>> import numpy as np
    >>> as_design(np.ones((3, 2))).n_features  # two columns and the intercept
    3
    """
    if isinstance(X, Design):
        return X
    if sp.issparse(X):
        return SparseDesign(X, intercept=intercept, n_threads=n_threads)
    return DenseDesign(X, intercept=intercept, n_threads=n_threads)
