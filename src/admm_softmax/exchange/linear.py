"""A fitted linear classifier as plain arrays, one column of W per class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Linear(NamedTuple):
    """Probabilities are softmax(x W + b), W being d × K and b having K entries.

    classes : the K labels
    """

    W: Any
    b: Any
    classes: Any


def linear_of(model: Any) -> Linear:
    """The arrays of a fitted classifier with coef_, intercept_ and classes_.

    Two classes have one vector w in coef_, and here its halves ∓w/2: the softmax of the two
    scores is the logistic function of their difference.
    """
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.asarray(model.coef_)
    b = np.broadcast_to(np.asarray(model.intercept_, dtype=coef.dtype), (len(coef),))
    W = coef.T
    if len(coef) == 1:
        W, b = np.concatenate([-W / 2, W / 2], axis=1), np.concatenate([-b / 2, b / 2])
    return Linear(np.ascontiguousarray(W), np.ascontiguousarray(b), np.asarray(model.classes_))
