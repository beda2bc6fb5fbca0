"""Solvers by name, and the rule behind "auto"."""

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import (
    ADMM,
    LBFGS,
    SGD,
    Chain,
    Newton,
    NewtonCG,
    Problem,
    SoftmaxRegression,
    run,
)
from admm_softmax.solvers import auto, costs
from admm_softmax.solvers.auto import as_solver, choose_preconditioner
from tests.problems import make


@pytest.fixture
def problem():
    X, y = make(90, 5, 3)
    return Problem.of(X, y, 1e-2)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("auto", Newton), ("lbfgs", LBFGS), ("newton-cg", NewtonCG), ("sgd", SGD), ("admm", Chain)],
)
def test_names(problem, name, kind):
    choice = as_solver(name, problem, tol=1e-4, seed=7)
    assert isinstance(choice.solver, kind)
    assert choice.reason


def test_many_fits_and_larger_problems_share_passes_instead(problem):
    assert isinstance(as_solver("auto", problem, tol=1e-4, fits=2).solver, LBFGS)
    X, y = make(2000, 30, 4)
    assert isinstance(as_solver("auto", Problem.of(X, y, 1e-2), tol=1e-4).solver, LBFGS)


def test_an_object_runs_as_configured(problem):
    solver = ADMM(rho=0.3)
    assert as_solver(solver, problem, tol=1e-4) == (solver, "given")


def shaped(n, d, K, *, dtype=np.float64, density=None):
    """A problem of a given shape without its entries: only the rule looks at it."""
    if density is None:
        X = np.broadcast_to(np.zeros(1, dtype), (n, d))
    else:
        count = int(n * d * density)
        rows, columns = np.arange(count) % n, np.arange(count) % d
        X = sp.csr_array((np.ones(count, dtype), (rows, columns)), shape=(n, d))
    return Problem.of(X, np.arange(n) % K, 1e-3, check_finite=False)


RULE = {
    "MNIST features": (
        {"n": 40_000, "d": 7056, "K": 10, "dtype": np.float32},
        1e-4,
        "gram",
        7057,
    ),
    "linear probe": ({"n": 50_000, "d": 768, "K": 100, "dtype": np.float32}, 1e-4, "gram", 5000),
    "tall": ({"n": 200_000, "d": 50, "K": 10}, 1e-4, "gram", 5000),
    "small": ({"n": 100, "d": 10, "K": 3}, 1e-4, "gram", None),
    "wide": ({"n": 2000, "d": 20_000, "K": 5}, 1e-4, "gram", None),
    "dense and huge": ({"n": 20_000, "d": 20_000, "K": 5}, 1e-4, "gram", None),
    "loose tolerance, two classes": ({"n": 14_000, "d": 14_000, "K": 2}, 1e-2, "jacobi", None),
    "sparse and huge": ({"n": 20_000, "d": 30_000, "K": 20, "density": 1e-3}, 1e-4, "jacobi", None),
    "very sparse": ({"n": 20_000, "d": 12_000, "K": 3, "density": 1e-4}, 1e-3, "jacobi", None),
}


@pytest.mark.parametrize("case", RULE)
def test_the_rule(case):
    shape, tol, expected, rows = RULE[case]
    name, subsample, reason, later = choose_preconditioner(shaped(**shape), tol)
    assert (name, subsample) == (expected, rows)
    assert reason
    assert (later is None) == (name == "gram" or "sparse" in case)


def test_a_tighter_tolerance_pays_for_a_gram_matrix():
    problem = shaped(14_000, 14_000, 20)
    names = [choose_preconditioner(problem, tol)[0] for tol in (1e-2, 1e-3, 1e-5, 1e-8)]
    assert names[0] == "jacobi"
    assert names[-1] == "gram"
    assert names == sorted(names, reverse=True)


class TestAGramMatrixIsMadeLater:
    """Where it does not look worth its price, once steps have cost as much."""

    @pytest.fixture
    def hard(self, monkeypatch):
        """Correlated columns and nearly separable classes, where a diagonal takes many steps."""
        monkeypatch.setattr(auto, "PASSES_PER_DIGIT", 0.0)
        rng = np.random.default_rng(0)
        Q = np.linalg.qr(rng.standard_normal((60, 60)))[0]
        X = rng.standard_normal((600, 60)) * np.logspace(0, -2, 60) @ Q
        y = X @ rng.standard_normal(60) > 0
        return Problem.of(X, y.astype(int), 1e-6)

    def test_as_many_steps_as_it_costs(self, hard):
        later = choose_preconditioner(hard, 1e-6).later
        step = 600 * 60 * (4 * 2 * costs.TYPICALLY_THIN + costs.READING)
        assert later == np.ceil((600 * 60 * 61 + 61**3 / 3) / step)
        solver, reason = as_solver("lbfgs", hard, tol=1e-6)
        assert f"made after {later} steps" in reason
        found = run(hard, solver, tol=1e-6, max_iter=1000)
        first, second = solver.first, solver.second
        assert (first.preconditioner, second.preconditioner) == ("jacobi", "gram")
        alone = run(hard, first, tol=1e-6, max_iter=1000)
        assert found.status == "converged"
        assert found.n_iter < 0.6 * alone.n_iter
        before = [run(hard, s, tol=0.0, max_iter=later).W for s in (solver, first)]
        np.testing.assert_array_equal(*before)

    def test_rows_are_drawn_as_for_one_at_once(self, monkeypatch):
        monkeypatch.setattr(auto, "SAMPLED_ROWS", 100)
        problem = shaped(1000, 50, 2)
        at_once = as_solver("lbfgs", problem, tol=1e-3).solver
        monkeypatch.setattr(auto, "PASSES_PER_DIGIT", 0.0)
        solver = as_solver("lbfgs", problem, tol=1e-3).solver
        assert solver.second == at_once
        assert at_once.subsample == 100

    def test_fits_that_share_and_sparse_rows_keep_the_diagonal(self, hard):
        assert choose_preconditioner(hard, 1e-6, fits=1).later
        assert choose_preconditioner(hard, 1e-6, fits=2).later is None
        assert as_solver("lbfgs", hard, tol=1e-6, fits=2).solver.preconditioner == "jacobi"
        sparse = shaped(600, 60, 2, density=0.1)
        assert as_solver("lbfgs", sparse, tol=1e-6).solver.preconditioner == "jacobi"

    def test_other_solvers_keep_the_diagonal(self, hard):
        for name in ("newton-cg", "sgd"):
            assert as_solver(name, hard, tol=1e-6).solver.preconditioner == "jacobi"


def test_rows_count_where_columns_are_few():
    # Its matrix is 3 × 3, but each step has some ten operations for every row.
    assert isinstance(as_solver("auto", shaped(20_000, 2, 2), tol=1e-4).solver, Newton)
    assert isinstance(as_solver("auto", shaped(300_000, 2, 2), tol=1e-4).solver, LBFGS)


def test_the_estimator_says_what_it_chose():
    X, y = make(90, 5, 3)
    clf = SoftmaxRegression(0.1).fit(X, y)
    assert clf.history_.solver.startswith("Newton()")
    assert "whole Hessian" in clf.history_.reason
    named = SoftmaxRegression(0.1, solver="lbfgs").fit(X, y)
    assert "passes and saves" in named.history_.reason
    given = SoftmaxRegression(0.1, solver=ADMM(rho=0.1)).fit(X, y)
    assert given.history_.reason == "given"


@pytest.mark.parametrize("name", ["auto", "admm", "lbfgs", "newton-cg"])
def test_names_reach_a_tight_tolerance(name):
    X, y = make(90, 8, 4, noise=0.0)
    clf = SoftmaxRegression(1e-5, solver=name, tol=1e-9, max_iter=300).fit(X, y)
    assert clf.status_ == "converged"


def test_names_are_listed_in_the_error(problem):
    with pytest.raises(ValueError, match=r"solver must be one of .*'newton-cg'.*, got 'adam'"):
        as_solver("adam", problem, tol=1e-4)
    assert all(f'`"{name}"`' in auto.__doc__ for name in auto.SOLVERS)
    for bad in (3, LBFGS):
        with pytest.raises(TypeError, match="solver must be a name or an object with an iterates"):
            as_solver(bad, problem, tol=1e-4)


def test_an_empty_sparse_matrix():
    problem = Problem.of(sp.csr_array((33, 50)), np.arange(33) % 3, 1e-2)
    assert choose_preconditioner(problem, 1e-4)[0] in ("gram", "jacobi")
