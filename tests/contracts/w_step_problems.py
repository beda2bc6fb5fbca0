"""Problems whose W-step every strategy solves."""

import numpy as np
import scipy.sparse as sp

from admm_softmax import Problem, operators
from tests.problems import make

PROBLEMS = {
    "tall": {},
    "wide": {"n": 12, "d": 40},
    "sparse": {"sparse": True},
    "weighted": {"sample_weight": np.random.default_rng(0).random(80)},
    "laplacian": {"operator": operators.laplacian(6)},
    "wide laplacian": {"n": 10, "d": 30, "operator": operators.laplacian((5, 6))},
    "penalised intercept": {"penalize_intercept": True},
    "no intercept": {"intercept": False},
    "scaled features": {"scale": np.logspace(-3, 3, 6)},
    "a zero column": {"scale": np.array([1, 1, 0, 1, 1, 1.0])},
}


def build(name, alpha=0.01):
    settings = dict(PROBLEMS[name])
    X, labels = make(settings.pop("n", 80), settings.pop("d", 6), 3)
    X = X * settings.pop("scale", 1.0)
    X = sp.csr_array(X) if settings.pop("sparse", False) else X
    return Problem.of(X, labels, alpha, **settings)


def normal_matrix(problem, rho):
    return rho * problem.gram() + problem.penalty.quadratic.matrix.toarray()
