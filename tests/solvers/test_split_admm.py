"""ADMM's second split: one factorisation for all penalties and alphas of a path."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from admm_softmax import ADMM, Problem, operators, penalties, run, softmax_path
from admm_softmax.path.largest_alpha import largest_alpha
from admm_softmax.solvers.least_squares import PCG, QR, Cholesky, Woodbury
from admm_softmax.solvers.split_factor import Parts, SplitFactor
from tests.problems import assert_close, make


@dataclass(frozen=True)
class Counting:
    """A strategy that counts the factorisations of another."""

    strategy: object
    made: list = field(default_factory=list)

    def prepare(self, problem):
        step = self.strategy.prepare(problem)
        factor = step.factor

        def counted(rho):
            self.made.append(rho)
            factor(rho)

        step.factor = counted
        return step


def settings(strategy="cholesky"):
    return ADMM(rho="auto", relaxation=1.7, start="smart", least_squares=strategy)


def scores(X, W):
    """XW + b without what all classes share, which changes nothing."""
    Z = X @ W[:-1] + W[-1]
    return Z - Z.mean(axis=1, keepdims=True)


PENALTIES = {
    "lasso": penalties.Lasso(),
    "elastic net": penalties.ElasticNet(0.5),
    "groups and ridge": penalties.GroupLasso([[0, 3], [1, 2, 5], [4]], ridge=0.3),
    "nuclear norm and ridge": penalties.NuclearNorm(ridge=0.2),
    "total variation": penalties.TotalVariation(operators.gradient(6)),
}


@pytest.mark.parametrize("name", PENALTIES)
def test_a_path_factorises_once_and_gives_cold_fits(name):
    X, y = make(90, 6, 3)
    counting = Counting(Cholesky())
    alphas = [0.2, 0.1, 0.05, 0.03, 0.02]
    path = softmax_path(X, y, alphas, penalty=PENALTIES[name], solver=settings(counting), tol=1e-6)
    # Total variation takes more than 80 iterations to this accuracy, and changes σ/ρ then.
    assert len(counting.made) <= (2 if name == "total variation" else 1)
    assert all(result.status == "converged" for result in path.results)
    for i in (2, 4):
        problem = Problem.of(X, y, path.alphas[i], penalty=PENALTIES[name])
        alone = run(problem, settings(), tol=1e-6, max_iter=500)
        assert path.results[i].iterate.objective == pytest.approx(alone.iterate.objective, abs=1e-7)
        assert_close(scores(X, path.results[i].W), scores(X, alone.W), 2e-3)


def test_the_next_fit_begins_where_the_last_has_ended():
    X, y = make(120, 8, 3)
    problem = Problem.of(X, y, 0.02, penalty=penalties.TotalVariation(operators.gradient(8)))
    first = run(problem, settings(), tol=1e-6, max_iter=500)
    weaker = problem.with_alpha(0.019)
    warm = run(weaker, settings(), W0=first.W, tol=1e-6, max_iter=500)
    cold = run(problem.fresh().with_alpha(0.019), settings(), tol=1e-6, max_iter=500)
    assert warm.iterate.objective == pytest.approx(cold.iterate.objective, abs=1e-8)
    assert warm.n_iter < cold.n_iter
    assert warm.history["rho"][1] == first.history["rho"][-1]


def test_a_fit_without_a_start_gives_the_same_bits_whatever_was_fitted_before():
    X, y = make(90, 6, 3)
    problem = Problem.of(X, y, 0.02, penalty=penalties.Lasso())
    alone = run(problem, settings(), tol=1e-6)
    run(problem.with_alpha(0.1), settings(), W0=alone.W, tol=1e-6)
    again = run(problem, settings(), tol=1e-6)
    np.testing.assert_array_equal(again.W, alone.W)


@pytest.mark.parametrize("strategy", [Cholesky(), Cholesky("single"), QR(), PCG(), Woodbury()])
def test_views_of_a_factorisation_solve_alike(strategy):
    """Another run, with another ρ, on the stored factorisation: as on one of its own."""
    X, y = make(40, 12, 3)
    problem = Problem.of(X, y, 0.05, penalty=penalties.Lasso())
    parts = Parts.of(problem)
    M = np.random.default_rng(0).standard_normal(problem.shape)
    first = SplitFactor.of(problem, strategy, parts, 0.5, 0.2)
    first.solve(M, np.zeros_like(M))
    kept = problem.prepared.split_factor.last()
    shared = SplitFactor.of(problem.for_run(), strategy, parts, 0.5, 0.03)
    assert problem.prepared.split_factor.last() is kept
    W = shared.solve(M, np.zeros_like(M)).W
    Xb = np.column_stack([X, np.ones(40)])
    H = 0.03 * (Xb.T @ Xb / 40 + 0.5 * np.diag([*[1.0] * 12, 0.0]))
    np.testing.assert_allclose(H @ W, M, atol=1e-5)
    np.testing.assert_allclose(shared.precondition(H @ W), W, atol=1e-3 * np.abs(W).max())


def test_another_matrix_is_factorised_anew():
    X, y = make(60, 6, 3)
    coupled = penalties.Lasso(ridge=1.0, operator=operators.gradient(6))
    problem = Problem.of(X, y, 0.05, penalty=coupled)
    counting = Counting(Cholesky())

    def factor(L=None, ratio=0.5, rho=0.2, alpha=0.05):
        parts = Parts.of(problem.with_alpha(alpha))._replace(L=L)
        SplitFactor.of(problem, counting, parts, ratio, rho)
        return len(counting.made)

    D = sp.csr_array(sp.hstack([operators.gradient(6), sp.csr_array((5, 1))]))
    assert factor() == 1
    assert factor(rho=0.4, alpha=0.1) == 1  # the same q/ρ
    assert factor(rho=0.4) == 2
    assert factor(ratio=0.6) == 3
    assert factor(L=D) == 4
    assert factor(L=D.copy()) == 4
    assert factor() == 5


def test_every_iterate_has_a_gap():
    X, y = make(90, 6, 3)
    problem = Problem.of(X, y, 1.0, penalty=penalties.NuclearNorm())
    problem = problem.with_alpha(0.1 * largest_alpha(problem))
    history = run(problem, settings(), tol=1e-6).history
    assert len(history["gap"]) > 3
    assert np.isfinite(history["gap"]).all()
    assert history["gap"][-1] < 1e-4 < history["gap"][0]


@pytest.mark.parametrize("where", ["V-step", "W-step"])
def test_the_quadratic_part_may_be_in_either_step(where, monkeypatch):
    X, y = make(90, 6, 3)
    reference = 0.1 * np.random.default_rng(0).standard_normal((7, 3))
    penalty = penalties.ElasticNet(0.4, factors=[0, 1, 2, 1, 3, 1])
    problem = Problem.of(X, y, 0.05, penalty=penalty, reference=reference)
    expected = run(problem, settings(), tol=1e-7, max_iter=800)
    assert expected.status == "converged"
    if where == "W-step":
        split = problem.penalty.split._replace(with_quadratic=None)
        monkeypatch.setattr(type(problem.penalty), "split", split)
    found = run(problem.fresh(), settings(), tol=1e-7, max_iter=800)
    assert found.iterate.objective == pytest.approx(expected.iterate.objective, abs=1e-9)


@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_correlated_features_far_from_zero(alpha):
    X, y = load_iris(return_X_y=True)
    problem = Problem.of(X + 3.0, y, alpha, penalty=penalties.NuclearNorm())
    result = run(problem, settings(), tol=1e-4, max_iter=60)
    assert result.status == "converged"


FLAT = {
    "constant": np.full((40, 3), 0.1) * [1.0, 7.0, 1e5],
    "zero": np.zeros((40, 2)),
    "zero and wide": np.zeros((40, 60)),
    "far from zero": 1e8 + np.random.default_rng(0).standard_normal((40, 3)),
    "tiny": 1e-160 * np.random.default_rng(0).standard_normal((40, 2)),
    "huge": 1e140 * np.random.default_rng(0).standard_normal((40, 2)),
}


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize(
    "penalty", [penalties.NuclearNorm(), penalties.Bounds(-1.0, 1.0)], ids=["nuclear", "bounds"]
)
def test_features_without_spread_have_a_scale(name, penalty):
    """σ comes from the features' covariance, which is rounding, or nothing, for these."""
    problem = Problem.of(FLAT[name], np.arange(40) % 3, 1e-2, penalty=penalty)
    result = run(problem, ADMM(), max_iter=30)
    assert np.isfinite(result.W).all()
    assert result.iterate.objective <= problem.objective(np.zeros(problem.shape)) * (1 + 1e-9)
