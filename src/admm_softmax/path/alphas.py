"""Which penalties to try."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count, check_real
from admm_softmax.problem import Problem

#: Rows, and entries of X, that are enough to know the scale of the features.
ENOUGH_ROWS, ENOUGH_ENTRIES = 5_000, 20_000_000
#: The weakest penalty is that of scikit-learn's C for standardised features.
LARGEST_C = 100.0
#: The range never covers less.
LEAST_RANGE = 1e-4
POWER_STEPS = 20
#: A variance that is less of the squares, or a deviation of the mean, is rounding.
ROUNDING = 1e-12


def as_alphas(alphas: Any, problem: Problem) -> Array:
    """Penalties in falling order: those of a list, or so many over `alpha_range`."""
    if np.ndim(alphas) == 0 and not isinstance(alphas, Iterable):
        count = check_count("alphas", alphas, "a number ≥ 1 or a list")
        top, bottom = alpha_range(problem)
        return np.geomspace(top, bottom, count) if count > 1 else np.array([middle([top, bottom])])
    values = [check_real(f"alphas[{i}]", a, "positive", above=0.0) for i, a in enumerate(alphas)]
    if not values:
        raise ValueError("alphas must hold at least one number, got none")
    return np.unique(values)[::-1]


def middle(alphas: Any) -> float:
    """The geometric mean of the first and the last."""
    return float(np.sqrt(alphas[0]) * np.sqrt(alphas[-1]))


def alpha_range(problem: Problem) -> tuple[float, float]:
    """The strongest and the weakest penalty worth a try, from the scale of the features.

    At W = 0 the loss has the Hessian (I − 11ᵀ/K)/K ⊗ Cov(X). With α = λ_max(Cov)/K even
    the strongest direction is halved: more penalty teaches nothing. With
    α = tr(Cov) / (100 S d), C = 100 on standardised features, it is 100 times weaker than
    the usual prior of unit variance; S is the number of rows, or the sum of their weights.
    Both are divided by the mean diagonal of LᵀL.
    """
    variances, largest = _scale(problem)
    strength = float(problem.penalty.LtL.diagonal()[: len(variances)].mean())
    if not (largest > 0 and strength > 0):
        return 1.0, LEAST_RANGE
    top = largest / problem.n_classes
    bottom = float(variances.mean()) / (LARGEST_C * problem.total_weight)
    return top / strength, min(bottom, LEAST_RANGE * top) / strength


def _scale(problem: Problem) -> tuple[Array, float]:
    """The variances of the features, and the largest eigenvalue of their covariance.

    From some rows, in double whatever X is stored in. Without an intercept nothing is
    centred.
    """
    d = problem.design.n_features - problem.design.intercept
    sample = problem.subsample(int(np.clip(ENOUGH_ENTRIES // d, 100, ENOUGH_ROWS)), seed=0)
    w = sample.weights
    X = sample.design.block(slice(0, sample.design.n_rows)).astype(np.float64)
    mean = np.asarray(X.T @ w) if problem.design.intercept else np.zeros(d)
    if sp.issparse(X):
        squares = np.asarray(X.power(2).T @ w)
        variances = squares - mean**2
        variances[variances <= ROUNDING * squares] = 0.0
    else:
        X = X - mean  # centred now, nothing cancels later
        variances = w @ X**2
        variances[variances <= (ROUNDING * mean) ** 2] = 0.0
        mean = np.zeros(d)
    return variances, _largest_eigenvalue(
        lambda v: X.T @ (w * (X @ v)) - mean * (mean @ v), np.sqrt(variances)
    )


def _largest_eigenvalue(product: Callable[[Array], Array], v: Array) -> float:
    """Of a symmetric matrix, by power iteration."""
    value = float(np.linalg.norm(v))
    for _ in range(POWER_STEPS):
        if value == 0.0:
            break
        v = product(v / value)
        value = float(np.linalg.norm(v))
    return value
