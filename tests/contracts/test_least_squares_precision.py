"""W-steps in single precision: when they are taken, and how far they are refined."""

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import Problem
from admm_softmax.solvers.least_squares import Auto, Cholesky
from tests.problems import assert_close, make


@pytest.mark.parametrize("compiled", [False, True], ids=["lapack", "compiled"])
def test_single_precision_is_refined_and_fades(compiled, monkeypatch):
    if compiled:
        monkeypatch.setattr("admm_softmax.kernels.thresholds.COMPILED_FROM_PRODUCTS", 0)
    X, labels = make(300, 40, 5)
    problem = Problem.of(X.astype(np.float32), labels, 1e-2)
    step = Cholesky().prepare(problem)
    step.factor(0.05)
    assert step.R.dtype == np.float32
    exact = Cholesky("double").prepare(problem)
    exact.factor(0.05)
    rng = np.random.default_rng(0)
    M = rng.standard_normal(problem.shape)
    change = rng.standard_normal(problem.shape)
    for k in range(6):
        target = M + 10.0**-k * change
        # Sums of steps, each to single precision.
        assert_close(step.solve(target, M).W, exact.solve(target, M).W, 1e-5)
    step.factor(0.05)
    first = step.solve(M, M).W  # refined: the factor's error is gone, the Gram matrix's is not
    assert_close(first, exact.solve(M, M).W, 1e-5)


def test_when_single_precision_is_taken():
    X, labels = make(80, 6, 3)
    single = X.astype(np.float32)

    def precision(X, alpha, rho=0.05, **settings):
        step = Cholesky(**settings).prepare(Problem.of(X, labels, alpha))
        step.factor(rho)
        return step.R.dtype

    assert precision(single, 1e-1) == np.float32
    assert precision(X, 1e-1) == np.float64  # double data
    assert precision(single, 1e-5) == np.float64  # a weak penalty
    assert precision(single, 1e-1, rho=1e3) == np.float64
    assert precision(X, 1e-1, precision="single") == np.float32
    assert precision(single, 1e-1, precision="double") == np.float64
    with pytest.raises(ValueError, match="precision must be one of"):
        Cholesky("half")
    neighbours = sp.csr_array(np.eye(6) - np.eye(6, k=1))
    coupled = Problem.of(single, labels, 1e-1, operator=neighbours)
    step = Cholesky().prepare(coupled)
    step.factor(0.05)
    assert step.R.dtype == np.float64  # L is not diagonal: no bound at hand


def test_a_preconditioner_in_single_precision_gives_way_to_double():
    X, labels = make(80, 6, 3)
    twice = np.concatenate([X, X[:, :1] * (1 + 1e-7)], axis=1).astype(np.float32)
    step = Auto(precision="single").prepare(Problem.of(twice, labels, 1e-12))
    step.factor(0.1)
    assert step.step.R.dtype == np.float64
