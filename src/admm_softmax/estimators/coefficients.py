"""Between W (d × K, intercepts last) and scikit-learn's coef_ and intercept_."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax._validation import as_numbers


def dense(coef: Any) -> Any:
    """coef_ as an array, also after `sparsify`."""
    return coef.toarray() if sp.issparse(coef) else coef


def to_coef(W: Array, intercept: bool, dtype: Any) -> tuple[Any, Any]:
    """W as coef_ (K × d) and intercept_ (K); two classes become one vector w₁ − w₀."""
    if W.shape[1] == 2:
        W = W[:, 1:] - W[:, :1]
    features, last = (W[:-1], W[-1]) if intercept else (W, np.zeros(W.shape[1]))
    return np.ascontiguousarray(features.T).astype(dtype), last.astype(dtype)


def from_coef(coef: Any, intercept: Any, n_classes: int, fit_intercept: bool) -> Array:
    """The inverse: coef_ and intercept_ as W; one vector w becomes its two halves ∓w/2."""
    coef = np.asarray(coef, dtype=np.float64)
    last = np.broadcast_to(np.asarray(intercept, dtype=np.float64), (len(coef),))
    W = np.concatenate([coef.T, last[None]]) if fit_intercept else coef.T.copy()
    if n_classes == 2 and len(coef) == 1:
        W = np.concatenate([-W / 2, W / 2], axis=1)
    return W


def as_W(
    given: Any, n_features: int, n_classes: int, fit_intercept: bool, name: str
) -> Array | None:
    """A user's coefficients, in any of the accepted shapes, as W.

    Where d = K a square matrix is taken as coef_ (K × d), not as W.
    """
    if given is None:
        return None
    d, K = n_features, n_classes
    pair = isinstance(given, list) and len(given) == 2 and np.ndim(given[0]) == 2
    if isinstance(given, tuple) or pair:
        if len(given) != 2:
            raise ValueError(f"{name} must be (coef, intercept), got {len(given)} entries")
        coef, intercept = (as_numbers(part, name) for part in given)
        vectors = len(coef) if coef.ndim == 2 else -1
        if coef.shape not in _coef_shapes(d, K) or intercept.shape not in ((), (vectors,)):
            raise ValueError(
                f"{name} (coef, intercept) must have the shapes {_coef_shapes(d, K)[0]} and "
                f"({_coef_shapes(d, K)[0][0]},), got {coef.shape} and {intercept.shape}"
            )
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ValueError(f"{name} must be finite, got NaN or infinity")
        return from_coef(coef, intercept, K, fit_intercept)
    W = as_numbers(given, name)
    if not np.isfinite(W).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if W.shape in _coef_shapes(d, K):
        return from_coef(W, 0.0, K, fit_intercept)
    if W.shape == (d, K):
        return np.concatenate([W, np.zeros((1, K))]) if fit_intercept else W
    if W.shape == (d + 1, K) and fit_intercept:
        return W
    allowed = [*_coef_shapes(d, K), (d, K), *([(d + 1, K)] if fit_intercept else [])]
    raise ValueError(f"{name} must have one of the shapes {allowed}, got {W.shape}")


def _coef_shapes(n_features: int, n_classes: int) -> list[tuple[int, int]]:
    shapes = [(n_classes, n_features)]
    return [(1, n_features), *shapes] if n_classes == 2 else shapes
