"""Whether validation rows could be of the same kind as the training rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem

#: So many rows tell how far apart two sets are.
COMPARED_ROWS = 500
#: Half of the columns have means that differ by so many standard deviations. Parts of one data
#: set differ by fractions of one, also by time or by class; by more where a scaler was forgotten.
FAR_MEANS = 3.0
#: Or half of them vary so many times more, or less.
FAR_SPREADS = 10.0


def distance(problem: Problem, validation: Problem) -> list[str]:
    """A sentence if the validation rows lie far from the training rows, from a few of each.

    Rows that are not in memory are not looked at: to draw some of them would take a read of all.
    """
    if not (problem.design.is_in_memory and validation.design.is_in_memory):
        return []
    (mean, spread), (other_mean, other_spread) = _moments(problem), _moments(validation)
    varies = spread > 0
    if not varies.any():
        return []
    shift = float(np.median(np.abs(other_mean - mean)[varies] / spread[varies]))
    stretch = float(np.median(other_spread[varies] / spread[varies]))
    many = min(problem.design.n_rows, validation.design.n_rows) >= 20
    if shift <= FAR_MEANS and not (many and not 1 / FAR_SPREADS <= stretch <= FAR_SPREADS):
        return []
    return [
        f"X_val lies far from X: its columns differ by {shift:.1f} standard deviations in the mean "
        f"and by a factor of {stretch:.2g} in spread (medians). In a Pipeline, X_val is not "
        "transformed unless transform_input names it"
    ]


def _moments(problem: Problem) -> tuple[Array, Array]:
    """Means and standard deviations of the columns."""
    design, (weights,) = problem.design.sample(COMPARED_ROWS, 0, problem.weights, problem.weights)
    w = design.gather(weights) / design.total(weights)
    X = design.block(slice(0, design.n_rows)).astype(np.float64)
    mean = np.asarray(X.T @ w)
    squares = np.asarray(X.power(2).T @ w) if sp.issparse(X) else w @ X**2
    return mean, np.sqrt(np.maximum(squares - mean**2, 0.0))
