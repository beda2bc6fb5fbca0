"""Solving in the space of the rows gives the same minimum."""

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import LBFGS, Problem, run
from admm_softmax.solvers.auto import as_solver
from admm_softmax.solvers.row_space import RowSpace
from tests.problems import assert_close, make
from tests.problems import minimum as reference_minimum

INNER = RowSpace(LBFGS(20, "gram"))


def minimum(problem):
    """The least F by an independent solver."""
    return reference_minimum(problem, problem.design.X)[1]


def wide(dtype=np.float64, **settings):
    X, labels = make(40, 150, 3)
    return Problem.of(X.astype(dtype), labels, 1e-2, **settings)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_meets_the_minimum(intercept, weighted):
    weights = np.random.default_rng(0).integers(0, 3, 40) if weighted else None
    problem = wide(intercept=intercept, sample_weight=weights)
    result = run(problem, INNER, tol=1e-9)
    assert result.status == "converged"
    assert result.iterate.objective == pytest.approx(minimum(problem), rel=1e-10)
    # Both are rounding in part: the same W, but not the same product.
    size = np.abs(problem.at(result.W).gradient).max()
    assert result.iterate.gradient_norm == pytest.approx(size, rel=1e-3, abs=1e-13)


def test_columns_may_be_penalised_differently():
    scale = np.linspace(0.5, 2.0, 150)
    problem = wide(operator=sp.diags_array(scale))
    result = run(problem, INNER, tol=1e-9)
    assert result.iterate.objective == pytest.approx(minimum(problem), rel=1e-10)


def test_repeated_rows():
    X, labels = make(40, 150, 3)
    X, labels = np.concatenate([X, X[:10]]), np.concatenate([labels, labels[:10]])
    problem = Problem.of(X, labels, 1e-2)
    result = run(problem, INNER, tol=1e-8)
    assert result.iterate.objective == pytest.approx(minimum(problem), rel=1e-10)


def test_a_start_is_kept():
    problem = wide()
    best = run(problem, INNER, tol=1e-10).W
    again = run(problem, INNER, W0=best, tol=1e-7)
    assert again.n_iter == 0
    assert_close(again.W, best, 1e-7)


def test_single_precision_hands_over_and_goes_on():
    problem = wide(np.float32)
    solver = INNER.then(LBFGS(20, "gram"))
    result = run(problem, solver, tol=3e-7, max_iter=500)
    assert result.status == "converged"
    labels = problem.design.gather(problem.labels)
    double = Problem.of(problem.design.X.astype(np.float64), labels, 1e-2)
    assert result.iterate.objective == pytest.approx(minimum(double), rel=1e-6)


def test_when_it_is_taken():
    X, labels = make(40, 150, 3)
    assert isinstance(as_solver("auto", wide(), tol=1e-4).solver.first, RowSpace)
    tall = Problem.of(X.T, np.arange(150) % 3, 1e-2)
    assert isinstance(as_solver("lbfgs", tall, tol=1e-4).solver, LBFGS)
    neighbours = sp.csr_array(np.eye(150) - np.eye(150, k=1))
    for problem in (
        Problem.of(X, labels, 0.0),
        Problem.of(sp.csr_array(X), labels, 1e-2),
        Problem.of(X, labels, 1e-2, operator=neighbours),
        Problem.of(X, labels, 1e-2, penalize_intercept=True),
        Problem.of(X, labels, 1e-2, reference=np.ones((151, 3))),
    ):
        assert not RowSpace.applies(problem)


def test_row_gram():
    X, _ = make(30, 70, 3)
    scale = np.random.default_rng(0).random(70) + 0.5
    for dtype, tol in ((np.float64, 1e-12), (np.float32, 1e-4)):
        design = Problem.of(X.astype(dtype), np.arange(30) % 3, 1.0).design
        gram = design.row_gram(scale)
        assert_close(gram, (X * scale) @ X.T, tol)
        np.testing.assert_array_equal(gram, gram.T)
        assert gram.dtype == dtype


def test_nothing_but_zeros():
    problem = Problem.of(np.zeros((40, 900)), np.arange(40) % 3, 1e-2)
    result = run(problem, as_solver("auto", problem, tol=1e-8).solver, tol=1e-8)
    assert result.status == "converged"
    np.testing.assert_array_equal(result.W[:-1], 0.0)
