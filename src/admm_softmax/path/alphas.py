"""Which penalties to try."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count, check_real
from admm_softmax.kernels import rows
from admm_softmax.problem import Problem

#: Rows that are enough to know the scale of the features.
ENOUGH_ROWS = 5_000
#: The weakest penalty is that of scikit-learn's C for standardised features.
LARGEST_C = 100.0
#: The range never covers less.
LEAST_RANGE = 1e-4
POWER_STEPS = 20
#: A variance that is less of the squares is none.
ROUNDING = 1e-10


def as_alphas(alphas: Any, problem: Problem) -> Array:
    """Penalties in falling order: those of a list, or so many over `alpha_range`."""
    if np.ndim(alphas) == 0:
        count = check_count("alphas", alphas, "a number ≥ 1 or a list")
        top, bottom = alpha_range(problem)
        return np.geomspace(top, bottom, count) if count > 1 else np.array([np.sqrt(top * bottom)])
    values = [check_real(f"alphas[{i}]", a, "positive", above=0.0) for i, a in enumerate(alphas)]
    if not values:
        raise ValueError("alphas must hold at least one number, got none")
    return np.unique(values)[::-1]


def alpha_range(problem: Problem) -> tuple[float, float]:
    """The strongest and the weakest penalty worth a try, from the scale of the features.

    At W = 0 the loss has the Hessian (I − 11ᵀ/K)/K ⊗ Cov(X). With α = λ_max(Cov)/K even
    the strongest direction is halved: more penalty teaches nothing. With
    α = tr(Cov) / (100 S d), C = 100 on standardised features, it is 100 times weaker than
    the usual prior of unit variance; S is the number of rows, or the sum of their weights.
    Both are divided by the mean diagonal of LᵀL.
    """
    sample = problem.subsample(ENOUGH_ROWS, seed=0)
    d = sample.design.n_features - sample.design.intercept
    mean = _mean(sample) if sample.design.intercept else np.zeros(sample.shape[0])
    squares = sample.column_squares()[:d]
    trace = float((squares - mean[:d] ** 2).sum())
    strength = float(problem.penalty.LtL.diagonal()[:d].mean())
    if not (trace > ROUNDING * squares.sum() and strength > 0):
        return 1.0, LEAST_RANGE
    top = _largest_eigenvalue(sample, mean, d) / problem.n_classes
    bottom = min(trace / (LARGEST_C * problem.total_weight * d), LEAST_RANGE * top)
    return top / strength, bottom / strength


def _mean(problem: Problem) -> Array:
    """The weighted mean of the rows, 1 for the intercept."""
    none = np.zeros((problem.shape[0], 0))
    return problem.design.fold(none, rows.hand_over, (problem.weights[:, None],)).product[:, 0]


def _largest_eigenvalue(problem: Problem, mean: Array, d: int) -> float:
    """Of the covariance, by power iteration from its own diagonal."""
    v = np.zeros((problem.shape[0], 1))
    v[:d, 0] = np.sqrt(np.maximum(problem.column_squares() - mean**2, 0.0))[:d]
    value = 0.0
    for _ in range(POWER_STEPS):
        v /= np.linalg.norm(v)
        product = problem.gram_product(v) - mean[:, None] * (mean @ v)
        v[:d] = product[:d]
        value = float(np.linalg.norm(v))
        if value == 0.0:
            break
    return value
