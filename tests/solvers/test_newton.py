"""Newton's method with the whole Hessian."""

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import Newton, Problem, operators, run
from admm_softmax.contracts import check_solver
from admm_softmax.solvers.newton import _Dense
from tests.problems import make, minimum


def test_the_contract():
    check_solver(Newton(), max_iter=30)


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("form", ["dense", "sparse", "float32"])
def test_its_hessian_is_the_derivative_of_the_gradient(K, form):
    X, y = make(60, 4, K)
    X = {"dense": X, "sparse": sp.csr_array(X), "float32": X.astype(np.float32)}[form]
    problem = Problem.of(X, y, 0.1, operator=operators.gradient(4), penalize_intercept=True)
    small, rng = _Dense(problem), np.random.default_rng(0)
    point = small.at(rng.standard_normal(problem.shape))
    step = small.solve(point)
    h = 1e-5
    ahead, behind = (small.at(point.W + s * h * step).gradient for s in (1, -1))
    expected = point.gradient
    np.testing.assert_allclose((ahead - behind) / (2 * h), expected, atol=1e-5)
    reference = problem.at(point.W)
    tol = 1e-5 if form == "float32" else 1e-12
    np.testing.assert_allclose(point.gradient, reference.gradient, atol=tol)
    assert point.objective == pytest.approx(reference.objective, rel=tol)
    assert point.curvature == pytest.approx(reference.curvature, rel=tol)
    assert point.accuracy == reference.accuracy


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("soft", [False, True])
def test_it_meets_an_independent_minimiser_in_few_steps(K, soft):
    X, y = make(90, 6, K, soft=soft)
    weights = np.random.default_rng(0).random(90)
    problem = Problem.of(X, y, 0.02, sample_weight=weights)
    result = run(problem, Newton(), tol=1e-9, max_iter=15)
    assert result.status == "converged"
    np.testing.assert_allclose(result.W, minimum(problem, X)[0], atol=1e-6)


@pytest.mark.parametrize("K", [2, 3])
def test_directions_without_curvature_stay_where_they_are(K):
    X, y = make(80, 3, K)
    twice = np.column_stack([X, X, np.zeros(80)])  # singular, and nothing is penalised
    result = run(Problem.of(twice, y, 0.0), Newton(), tol=1e-7, max_iter=40)
    assert result.status == "converged"
    once = run(Problem.of(X, y, 0.0), Newton(), tol=1e-7, max_iter=40)
    assert result.iterate.objective == pytest.approx(once.iterate.objective, rel=1e-9)
    assert not result.W[6].any()


def test_a_start_with_a_shared_part_is_taken_to_the_optimum():
    X, y = make(80, 3, 2)
    problem = Problem.of(X, y, 0.1, penalize_intercept=True)
    result = run(problem, Newton(), W0=np.ones(problem.shape), tol=1e-9, max_iter=20)
    np.testing.assert_allclose(result.W[:, 0], -result.W[:, 1], atol=1e-7)


def test_every_look_at_the_rows_is_counted():
    problem = Problem.of(*make(80, 3, 3), 0.1)
    result = run(problem, Newton(), tol=1e-8)
    passes = result.history["passes"]
    assert passes[0] == 2  # the copy, and the start
    assert (np.diff(passes) >= 1).all()
    assert problem.design.reads == passes[-1]


@pytest.mark.parametrize("soft", [False, True], ids=["codes", "soft labels"])
@pytest.mark.parametrize("scale", [0.1, 10.0, 1e3])
def test_two_classes_by_their_difference_are_those_of_many(scale, soft):
    X, y = make(80, 5, 2, soft=soft)
    problem = Problem.of(X, y, alpha=1e-2)
    system = _Dense(problem)
    W = scale * np.random.default_rng(0).standard_normal(problem.shape)
    two, many = system._of_two(W), system._of_many(W)
    assert two.loss == pytest.approx(many.loss, rel=1e-12)
    np.testing.assert_allclose(two.gradient, many.gradient, rtol=0, atol=1e-13)
    assert two.curvature == pytest.approx(many.curvature, rel=1e-9, abs=1e-15)
    np.testing.assert_array_equal(two.best, many.best)
    np.testing.assert_allclose(two.P, many.P, rtol=1e-9, atol=1e-300)
    point = problem.at(W)
    assert system.at(W).accuracy == pytest.approx(point.accuracy)
    assert system.at(W).objective == pytest.approx(point.objective, rel=1e-12)
