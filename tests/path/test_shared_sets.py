"""A factor per class on paths and folds: shared by all fits, paid by them, made when asked for."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from admm_softmax import Problem, SoftmaxRegressionCV, operators, softmax_path
from admm_softmax.path.fitter import Fitter
from admm_softmax.path.shared_sets import SETS_SPACING, SharedSets
from admm_softmax.solvers import class_factors
from admm_softmax.solvers.class_factors import FactorSet, SetMaker
from admm_softmax.solvers.preconditioner import gram_strategy
from tests.problems import make

X, Y = load_digits(return_X_y=True)
X = X / 16
ALPHAS = np.logspace(-1, -5, 12)
TOL = 1e-6


@pytest.fixture
def forced(monkeypatch):
    """Sets are made at the first occasion, whatever they cost."""
    monkeypatch.setattr(class_factors, "SHARE", 1e9)
    monkeypatch.setattr(class_factors, "BESIDE_X", 1e-9)


@pytest.fixture
def made(monkeypatch):
    """The penalties that sets were made for."""
    found, make_set = [], SetMaker.make

    def noted(self, problem, origin):
        found.append(problem.penalty.alpha)
        return make_set(self, problem, origin)

    monkeypatch.setattr(SetMaker, "make", noted)
    return found


def path(X=X, y=Y, alphas=ALPHAS, **settings):
    return softmax_path(X, y, alphas, **{"solver": "lbfgs", "tol": TOL, **settings})


def steps(fits):
    return sum(fit.n_iter for fit in fits.results)


def sets_of(problem):
    return SharedSets(problem, gram_strategy(problem, None, 0), 0)


def test_a_path_takes_fewer_steps_to_the_same_solutions(forced, made, monkeypatch):
    fits = path()
    # One for each stretch of penalties that it serves, from the second on.
    assert made[0] == ALPHAS[1]
    assert all(a > SETS_SPACING * b for a, b in pairwise(made))
    assert ALPHAS[-1] * SETS_SPACING >= made[-1]
    monkeypatch.setattr(class_factors, "SHARE", 0.0)
    made.clear()
    plain = path()
    assert not made
    assert steps(fits) < 0.7 * steps(plain)
    for a, b in zip(fits.results, plain.results, strict=True):
        assert a.status == b.status == "converged"
        # F is α-strongly convex but for the intercept: each is within ‖∇F‖² / (2α) of its minimum.
        gap = abs(a.iterate.objective - b.iterate.objective)
        assert gap <= a.W.size * TOL**2 / ALPHAS[-1]


PROBLEMS = {
    "float32": ((X.astype(np.float32), Y), {"tol": 1e-4}),
    "two-classes": ((X, Y > 4), {}),
    "two-parities": ((X, Y % 2), {"tol": 1e-5}),
    "operator": ((X, Y), {"operator": operators.laplacian((8, 8))}),
    "reference": ((X, Y), {"reference": (np.full((10, 64), 0.1), np.zeros(10))}),
    "soft": ((X, np.random.default_rng(0).dirichlet(np.ones(10), len(Y))), {}),
    "without-intercept": ((X, Y), {"fit_intercept": False}),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_other_problems_have_the_same_solutions_with_sets(forced, made, monkeypatch, name):
    (rows, labels), settings = PROBLEMS[name]
    fits = path(rows, labels, ALPHAS[:9], **settings)
    assert len(made) >= 3
    monkeypatch.setattr(class_factors, "SHARE", 0.0)
    plain = path(rows, labels, ALPHAS[:9], **settings)
    assert steps(fits) <= 1.1 * steps(plain)
    tol, weakest = settings.get("tol", TOL), ALPHAS[8]
    for a, b in zip(fits.results, plain.results, strict=True):
        assert a.status == b.status == "converged"
        if "operator" not in settings:  # whose F is less convex than α says
            gap = abs(a.iterate.objective - b.iterate.objective)
            assert gap <= a.W.size * tol**2 / weakest + 1e-6 * (rows.dtype == np.float32)


def test_the_weakest_penalty_may_be_zero(forced, made):
    # Uncertain labels have a minimum without a penalty.
    soft = np.random.default_rng(0).dirichlet(np.ones(10), len(Y))
    C = np.append(np.logspace(-2, 2, 8), np.inf) / len(Y)
    model = SoftmaxRegressionCV(Cs=C, cv=3, solver="lbfgs", tol=1e-4).fit(X, soft)
    assert made
    assert np.all(np.isfinite(model.scores_))


@pytest.mark.parametrize("rows", ["all", "sampled"])
def test_folds_share_a_set_and_are_solved_together(forced, made, monkeypatch, rows):
    widths, solve = [], FactorSet.solve

    def noted(self, sides):
        widths.append(len(sides))
        return solve(self, sides)

    monkeypatch.setattr(FactorSet, "solve", noted)
    model = SoftmaxRegressionCV(ALPHAS[:8], cv=3, solver="lbfgs", tol=TOL)
    if rows == "sampled":
        monkeypatch.setattr("admm_softmax.solvers.auto.SAMPLED_ROWS", 600)
    model.fit(X, Y)
    assert max(widths) == 3
    assert len(made) <= 4  # for three folds under eight penalties, and the refit
    monkeypatch.setattr(class_factors, "SHARE", 0.0)
    plain = SoftmaxRegressionCV(ALPHAS[:8], cv=3, solver="lbfgs", tol=TOL).fit(X, Y)
    assert np.sum(model.n_iter_) < 0.8 * np.sum(plain.n_iter_)
    np.testing.assert_allclose(model.scores_, plain.scores_, rtol=1e-3)


def test_a_set_serves_its_neighbours_only(forced):
    problem = Problem.of(X, Y, 1e-3)
    problem.gram(np.float64)
    sets, W = sets_of(problem), np.zeros(problem.shape)
    sets.look_at([2e-3], [None])  # nothing is known there
    assert sets.alpha is None
    assert sets.newest() is None
    sets.steps = 1
    found = []
    for alpha in (1e-3, 1e-3 / SETS_SPACING, 1e-3 * SETS_SPACING, 1e-4, 1e-2, 0.0, 1e-9):
        sets.look_at([alpha, alpha], [None, W])
        found.append(sets.alpha)
    assert found == [1e-3, 1e-3, 1e-3, 1e-4, 1e-2, 0.0, 1e-9]


def test_a_coarse_path_takes_fewer_steps_too(forced, made, monkeypatch):
    coarse = np.logspace(0, -6, 4)
    fits = path(alphas=coarse)
    assert len(made) == 3
    monkeypatch.setattr(class_factors, "SHARE", 0.0)
    assert steps(fits) < 0.7 * steps(path(alphas=coarse))


def test_folds_under_several_penalties_are_looked_at_by_the_one_in_the_middle(forced):
    problem = Problem.of(X, Y, 1e-3)
    problem.gram(np.float64)
    sets, W = sets_of(problem), np.zeros(problem.shape)
    sets.look_at([2e-3], [None])
    sets.steps = 1
    sets.look_at([1e-5, 1e-3, 1.1e-3], [W, W, W])
    assert sets.alpha == 1e-3


def test_all_sets_together_keep_to_their_share_of_all_steps(made):
    rows, labels = make(100_000, 30, 4, dtype=np.float32)
    problem = Problem.of(rows, labels, 1e-3)
    problem.gram(np.float32)
    sets, W = sets_of(problem), np.zeros(problem.shape)
    for alpha in np.logspace(-1, -8, 60):
        sets.look_at([alpha], [W])
        sets.newest()
        assert sets.maker.spent <= class_factors.SHARE * sets.steps
        sets.steps += 3
    assert 2 <= len(made) <= 12


def test_small_data_and_sparse_rows_keep_one_factor(made):
    path()  # sets would take more than a part of X, and cost more than the steps
    softmax_path(sp.csr_array(X), Y, [0.1, 0.01], solver="lbfgs")
    assert not made
    assert Fitter(Problem.of(sp.csr_array(X), Y, 0.1), fits=5, solver="lbfgs").sets is None


class TestCheckpoints:
    """An interrupted path goes on as if it had not been."""

    def test_a_path_that_has_ended_makes_no_set_again(self, forced, made, tmp_path):
        whole = path(checkpoint=tmp_path)
        assert made
        made.clear()
        np.testing.assert_array_equal(path(checkpoint=tmp_path).coefs, whole.coefs)
        assert not made

    @pytest.mark.parametrize("count", [3, 20, 40])
    @pytest.mark.filterwarnings("ignore:.*interrupted")
    def test_ctrl_c_in_a_fit(self, forced, made, tmp_path, monkeypatch, count):
        whole, all_made = path(), made.copy()
        made.clear()
        left, solve = iter(range(count)), FactorSet.solve

        def pressed(self, sides):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return solve(self, sides)

        with monkeypatch.context() as patch:
            patch.setattr(FactorSet, "solve", pressed)
            begun = path(checkpoint=tmp_path, checkpoint_every=0.0)
        assert len(begun.alphas) < len(ALPHAS)
        made.clear()
        rest = path(checkpoint=tmp_path)
        np.testing.assert_array_equal(rest.coefs, whole.coefs)
        assert 0 < len(made) <= len(all_made)
