"""Which penalties to try."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count, check_real
from admm_softmax.design import Design, Rows
from admm_softmax.kernels import rows
from admm_softmax.path.largest_alpha import largest_alpha
from admm_softmax.problem import Problem

#: Rows, and entries of X, that are enough to estimate the scale of the features.
SCALE_ROWS, SCALE_ENTRIES = 5_000, 20_000_000
#: The weakest penalty is that of this C in scikit-learn, for standardised features.
LARGEST_C = 100.0
#: The weakest penalty is at most this fraction of the strongest.
LEAST_RANGE = 1e-4
#: The same where a penalty has kinks, and where it has and rows are few.
KINKED_RANGE, WIDE_RANGE = 1e-3, 1e-2
#: A number of penalties above this is a mistake.
MOST_PENALTIES = 10_000
#: Power iterations for the largest eigenvalue of the features' covariance.
NORM_POWER_STEPS = 20
#: A variance below this part of the mean square, or a deviation below this part of the mean,
#: is rounding.
CONSTANT_COLUMN = 1e-12


@dataclass(frozen=True)
class Penalties:
    """Penalties as they were given, and as they are fitted: each once, from strong to weak.

    given : in the order of the list, with its duplicates
    places : for each of them, its position among those fitted
    """

    given: Array
    fitted: Array
    places: Any

    @classmethod
    def of(cls, given: Any) -> Penalties:
        """Sort the penalties."""
        given = np.asarray(given, dtype=np.float64)
        rising, inverse = np.unique(given, return_inverse=True)
        return cls(given, rising[::-1], len(rising) - 1 - inverse)

    def tried(self, n_fitted: int) -> Any:
        """The positions, in the order given, of penalties among the first so many fitted."""
        return np.flatnonzero(self.places < n_fitted)


def as_alphas(alphas: Any, problem: Problem) -> Array:
    """Penalties: those of a list in its order, or a number of them over `alpha_range`, falling."""
    if not problem.penalty.includes_zero:
        raise ValueError("a path needs bounds that include zero, where strong penalties lead")
    alphas = _plain(alphas)
    if np.ndim(alphas) == 0 and not isinstance(alphas, Iterable):
        count = _count("alphas", alphas)
        top, bottom = alpha_range(problem)
        return np.geomspace(top, bottom, count) if count > 1 else np.array([middle([top, bottom])])
    values = [check_real(f"alphas[{i}]", a, "positive", above=0.0) for i, a in enumerate(alphas)]
    if not values:
        raise ValueError("alphas must hold at least one number, got none")
    return np.array(values)


def _plain(given: Any) -> Any:
    """An array without axes as the number that it holds."""
    return given.item() if isinstance(given, np.ndarray) and given.ndim == 0 else given


def _count(name: str, given: Any) -> int:
    """A number of penalties, within reason."""
    count = check_count(name, given, "a number ≥ 1 or a list")
    if count > MOST_PENALTIES:
        raise ValueError(f"{name} must be a number of at most {MOST_PENALTIES:,}, got {count}")
    return count


def as_Cs(Cs: Any) -> Array:
    """scikit-learn's C: those of a list in its order, or so many from 1e-4 to 1e4."""
    Cs = _plain(Cs)
    if np.ndim(Cs) == 0 and not isinstance(Cs, Iterable):
        return np.logspace(-4, 4, _count("Cs", Cs))
    values = [
        float(C)
        if isinstance(C, Real) and np.inf == C
        else check_real(f"Cs[{i}]", C, "positive", above=0.0)
        for i, C in enumerate(Cs)
    ]
    if not values:
        raise ValueError("Cs must hold at least one number, got none")
    return np.array(values)


def middle(alphas: Any) -> float:
    """The geometric mean of the first and the last that is not zero."""
    positive = [alpha for alpha in alphas if alpha > 0] or [1.0]
    return float(np.sqrt(positive[0]) * np.sqrt(positive[-1]))


def alpha_range(problem: Problem) -> tuple[float, float]:
    """The strongest and the weakest penalty worth a try.

    Where a strength makes all coefficients zero, from there to a thousandth of it (a hundredth, if
    there are fewer rows than features). Otherwise from the scale of the features:

    At W = 0 the loss has the Hessian (I − 11ᵀ/K)/K ⊗ Cov(X). With α = λ_max(Cov)/K even
    the strongest direction is halved: a stronger penalty is of no use. With
    α = tr(Cov) / (100 S d), C = 100 on standardised features, it is 100 times weaker than
    the usual prior of unit variance; S is the number of rows, or the sum of their weights.
    Both are divided by the mean diagonal of LᵀL.
    """
    top = largest_alpha(problem)
    if CONSTANT_COLUMN * np.sqrt(problem.column_squares().max()) < top < np.inf:
        n, d = problem.design.count(problem.weights), problem.shape[0]
        return top, top * (KINKED_RANGE if n >= d else WIDE_RANGE)
    variances, largest = _scale(problem)
    strength = float(problem.penalty.quadratic.LtL.diagonal()[: len(variances)].mean())
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
    n_rows = int(np.clip(SCALE_ENTRIES // d, 100, SCALE_ROWS))
    design, (weights,) = problem.design.sample(n_rows, 0, problem.weights, problem.weights)
    if design.rows_stay:
        return _scale_by_passes(design, weights)
    w = design.gather(weights) / design.total(weights)
    X = design.block(slice(0, design.n_rows)).astype(np.float64)
    mean = np.asarray(X.T @ w) if problem.design.intercept else np.zeros(d)
    if sp.issparse(X):
        squares = np.asarray(X.power(2).T @ w)
        variances = squares - mean**2
        variances[variances <= CONSTANT_COLUMN * squares] = 0.0
    else:
        X = X - mean  # centred now, nothing cancels later
        variances = w @ X**2
        variances[variances <= (CONSTANT_COLUMN * mean) ** 2] = 0.0
        mean = np.zeros(d)
    return variances, _largest_eigenvalue(
        lambda v: X.T @ (w * (X @ v)) - mean * (mean @ v), np.sqrt(variances)
    )


def _scale_by_passes(design: Design, weights: Rows) -> tuple[Array, float]:
    """The same of rows that stay where they are."""
    d, total = design.shape[1], design.total(weights)
    squares = design.column_squares(weights)[:d] / total
    mean = np.zeros(d)
    if design.intercept:
        columns = design.map_rows(lambda w: w[:, None], weights)
        mean = design.transpose_product(columns)[:d, 0] / total
    variances = squares - mean**2
    variances[variances <= 1e3 * design.rounding * squares] = 0.0

    def product(v: Array) -> Array:
        V = np.append(v, 0.0) if design.intercept else v
        scattered = design.fold(V[:, None], rows.weigh, (weights,)).product[:d, 0]
        return np.asarray(scattered / total - mean * (mean @ v))

    return variances, _largest_eigenvalue(product, np.sqrt(variances))


def _largest_eigenvalue(product: Callable[[Array], Array], v: Array) -> float:
    """The largest eigenvalue of a symmetric matrix, by power iteration from v."""
    value = float(np.linalg.norm(v))
    for _ in range(NORM_POWER_STEPS):
        if value == 0.0:
            break
        v = product(v / value)
        value = float(np.linalg.norm(v))
    return value
