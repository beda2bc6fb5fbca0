"""Rows and penalties that the tests of cross-validation share."""

import numpy as np
import scipy.sparse as sp

from tests.problems import make

ALPHAS = np.logspace(0, -3, 5)


def data(kind="dense"):
    X, y = make(240, 8, 3, dtype=np.float32 if kind == "float32" else np.float64)
    if kind == "sparse":
        X = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
    if kind == "two classes":
        y = np.array(["no", "yes"])[np.minimum(y, 1)]
    if kind == "soft":
        _, y = make(240, 8, 3, soft=True)
    if kind == "wide":
        X, y = make(60, 150, 3)
    return X, y
