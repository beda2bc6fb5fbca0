"""Factors that the W-steps of several penalties and ρ share."""

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import Problem, operators
from admm_softmax.solvers.least_squares import Cholesky, SharedFactors
from admm_softmax.solvers.scheduler import Scheduler
from tests.contracts.w_step_problems import build, normal_matrix
from tests.problems import assert_close, make


def test_factors_shared_by_ratio_solve_for_every_rho_and_alpha():
    problem = build("laplacian")
    factors = SharedFactors(problem, Scheduler(), Cholesky("double"))
    M = np.random.default_rng(0).standard_normal(problem.shape)
    for rho, alpha in [(0.1, 0.02), (1e-5, 2e-6), (50.0, 10.0), (1.0, 1e-3)]:
        user = problem.with_alpha(alpha)
        step = factors.prepare(user)
        step.factor(rho)
        expected = np.linalg.solve(normal_matrix(user, rho), M)
        assert_close(step.solve(M, M).W, expected, 1e-9)
        assert step.rho == rho
    assert [f"{ratio:.3g}" for ratio in factors.factors] == ["0.2", "0.001"]


def test_shared_factors_refuse_another_operator():
    X, labels = make(40, 5, 3)
    problem = Problem.of(X, labels, 0.1)
    factors = SharedFactors(problem, Scheduler(), Cholesky("double"))
    same = Problem.of(X, labels, 0.3, operator=sp.eye_array(5, format="csr"))
    factors.prepare(same)
    for other in (operators.laplacian(5), 2 * sp.eye_array(5), operators.gradient(5)):
        with pytest.raises(ValueError, match=r"shared factors are for one L: .* \(6, 6\)|\(5, 6\)"):
            factors.prepare(Problem.of(X, labels, 0.1, operator=other))


def test_a_spaced_factor_says_which_rho_it_fits():
    problem = build("tall", alpha=0.01)
    factors = SharedFactors(problem, Scheduler(), Cholesky("double"), spacing=4.0)
    step = factors.prepare(problem)
    step.factor(0.03)  # τ = 1/3, the nearest power of 4 is 1/4
    assert step.rho == pytest.approx(0.04)
    M = np.ones(problem.shape)
    expected = np.linalg.solve(normal_matrix(problem, 0.04), M)
    assert_close(step.precondition(M), expected, 1e-9)
    step.factor(0.05)
    assert len(factors.factors) == 1
