"""Standardising examples rather than features."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

#: Numbers in a block: 1 MB in float64, so that a block stays in the cache.
_BLOCK_NUMBERS = 2**17


def standardize_examples(X: Any, copy: bool = True) -> Any:
    """Standardise each row: minus its mean, over its standard deviation.

    ::

        xᵢ ← (xᵢ − mean(xᵢ)) / max(std(xᵢ), 1/√d)

    with the population standard deviation, and a lower bound on it so that constant rows
    become zero. Sums are in float64; float32 stays float32. In a pipeline, wrap it in
    scikit-learn's FunctionTransformer.

    Parameters
    ----------
    X : array of shape (n, d)
        Dense rows; integers become float64.
    copy : bool
        False writes the result into X where its type allows.

    Examples
    --------
    >>> from admm_softmax.features import standardize_examples
    >>> standardize_examples([[1.0, 3.0], [5.0, 5.0]])
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    X = check_array(
        X, dtype=[np.float64, np.float32], copy=copy, force_writeable=True, input_name="X"
    )
    n, d = X.shape
    step = max(1, _BLOCK_NUMBERS // d)
    for start in range(0, n, step):
        rows = X[start : start + step].astype(np.float64)
        rows -= rows.mean(axis=1, keepdims=True)
        deviation = np.sqrt(np.einsum("ij,ij->i", rows, rows) / d)
        rows /= np.maximum(deviation, 1 / np.sqrt(d))[:, None]
        X[start : start + step] = rows
    return X
