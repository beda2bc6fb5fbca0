"""Penalties are a protocol: q in closed form, h by its value, prox and optimality."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import ADMM, LBFGS, SGD, HessianLBFGS, NewtonCG, Problem, operators, run
from admm_softmax.penalty import Penalty, Quadratic, Tikhonov
from admm_softmax.solvers.auto import SOLVERS, as_solver
from admm_softmax.solvers.base import measured_at, start_at
from admm_softmax.solvers.row_space import RowSpace
from tests.problems import assert_close, make, minimum

OPERATORS = {
    "identity": operators.identity(6),
    "diagonal": sp.csr_array(np.diag([1.0, 2.0, 0.0, 0.5, 3.0, 1.0])),
    "neighbours": operators.gradient(6),
    "wide": sp.csr_array(np.random.default_rng(0).standard_normal((3, 6))),
    "zero": sp.csr_array((6, 6)),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("with_reference", [False, True])
def test_a_quadratic_is_the_formula(name, with_reference):
    rng = np.random.default_rng(1)
    W, V, W_ref = rng.standard_normal((3, 6, 2))
    q = Quadratic(0.3, OPERATORS[name], W_ref if with_reference else None)
    L, offset = OPERATORS[name].toarray(), W - W_ref if with_reference else W
    LtL = L.T @ L
    assert_close(q.value(W), 0.15 * ((L @ offset) ** 2).sum(), 1e-12)
    assert_close(q.gradient(W), 0.3 * LtL @ offset, 1e-12)
    assert_close(q.product(V), 0.3 * LtL @ V, 1e-12)
    assert_close(q.matrix.toarray(), 0.3 * LtL, 1e-12)
    assert_close(q.pull(2), 0.3 * LtL @ W_ref if with_reference else np.zeros((6, 2)), 1e-12)
    if name in ("neighbours", "wide"):
        assert q.diagonal is None
    else:
        assert_close(q.diagonal, np.diag(LtL), 1e-12)


def test_another_strength_keeps_what_was_made_of_the_operator():
    q = Quadratic(0.3, OPERATORS["neighbours"])
    early = q.with_strength(0.5)
    made = q.LtL, q.diagonal
    late = q.with_strength(0.7)
    assert (late.LtL, late.diagonal) == made
    assert (early.strength, late.strength, q.strength) == (0.5, 0.7, 0.3)
    assert_close(early.LtL.toarray(), made[0].toarray(), 1e-12)


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """α Σ |W| + (α/2) ‖W‖², without the intercept, which is the last row."""

    alpha: float
    d: int
    is_smooth = False

    @property
    def quadratic(self):
        return Quadratic(self.alpha, sp.diags_array(np.r_[np.ones(self.d - 1), 0.0], format="csr"))

    def with_alpha(self, alpha):
        return replace(self, alpha=alpha)

    def rough_value(self, W):
        return self.alpha * float(np.abs(W[:-1]).sum())

    def prox(self, V, step):
        shrunk = np.sign(V) * np.maximum(np.abs(V) - step * self.alpha, 0.0)
        return np.vstack([shrunk[:-1], V[-1:]])

    def optimality(self, W, loss_gradient):
        G = loss_gradient + self.gradient(W)
        at_zero = np.sign(G) * np.maximum(np.abs(G) - self.alpha, 0.0)
        kinked = np.where(W == 0, at_zero, G + self.alpha * np.sign(W))
        return np.vstack([kinked[:-1], G[-1:]])

    def alpha_max(self, loss_gradient):
        return float(np.abs(loss_gradient[:-1]).max())


@dataclass(frozen=True)
class ProximalGradient:
    """W⁺ = prox(W − t ∇(loss + q)), the simplest solver that takes any penalty."""

    step: float

    def iterates(self, problem, W0):
        point = problem.at(start_at(problem, W0))
        while True:
            yield measured_at(point)
            forward = point.W - self.step * point.gradient
            point = problem.at(problem.penalty.prox(forward, self.step))


def with_kinks(alpha=0.05):
    X, labels = make(90, 8, 3)
    problem = Problem.of(X, labels)
    return problem.with_penalty(ElasticNet(alpha, problem.shape[0])), X


def test_a_point_under_a_penalty_with_kinks():
    problem, _ = with_kinks()
    penalty, W = problem.penalty, np.random.default_rng(0).standard_normal(problem.shape)
    W[:3] = 0.0
    for point in (problem.at(W), problem.linearise(W)):
        assert_close(point.objective, point.loss + penalty.value(W), 1e-12)
        assert_close(point.gradient, point.loss_gradient + penalty.gradient(W), 1e-12)
        expected = penalty.optimality(W, point.loss_gradient)
        np.testing.assert_array_equal(point.optimality, expected)
        assert np.abs(point.optimality - point.gradient).max() > 0.01
    assert_close(problem.objective(W), problem.at(W).objective, 1e-12)


def test_tol_bounds_the_optimality_of_a_penalty_with_kinks():
    problem, _ = with_kinks()
    largest = np.linalg.eigvalsh(problem.gram())[-1]
    solver = ProximalGradient(1.0 / (0.5 * largest + problem.penalty.alpha))
    result = run(problem, solver, tol=1e-6, max_iter=20_000)
    assert result.status == "converged"
    point = problem.at(result.W)
    assert_close(result.iterate.gradient_norm, np.abs(point.optimality).max(), 1e-12)
    assert np.abs(point.gradient).max() > 0.01  # ∇q + ∇loss is not zero where h has kinks
    assert 0 < (result.W == 0).sum() < result.W.size
    for shift in np.random.default_rng(0).standard_normal((20, *problem.shape)):
        assert problem.objective(result.W + 1e-3 * shift) > point.objective


def test_from_alpha_max_on_the_reference_is_the_solution():
    problem, _ = with_kinks()
    # Without features only the intercept is left to fit.
    free = run(problem.with_alpha(1e6), ProximalGradient(0.5), tol=1e-10, max_iter=5000)
    at = problem.at(np.vstack([np.zeros((problem.shape[0] - 1, 3)), free.W[-1:]]))
    largest = problem.penalty.alpha_max(at.loss_gradient)
    for alpha, expected in ((1.01 * largest, 0), (0.9 * largest, 1)):
        optimality = problem.with_alpha(alpha).at(at.W).optimality
        assert int(np.abs(optimality).max() > 1e-6) == expected


@pytest.mark.parametrize(
    "solver",
    [LBFGS(), NewtonCG(), HessianLBFGS(), SGD(), SGD().then(LBFGS())],
    ids=lambda solver: type(solver).__name__,
)
def test_solvers_that_follow_gradients_refuse_kinks(solver):
    problem, _ = with_kinks()
    with pytest.raises(ValueError, match="needs a smooth penalty, and ElasticNet is not smooth"):
        run(problem, solver)


def test_names_refuse_kinks_or_split_and_objects_decide_themselves():
    problem, _ = with_kinks()
    for name in SOLVERS:
        if name in ("auto", "admm"):
            assert isinstance(as_solver(name, problem, tol=1e-4).solver, ADMM)
            continue
        with pytest.raises(ValueError, match=f"solver='{name}' needs a smooth penalty"):
            as_solver(name, problem, tol=1e-4)
    solver = ProximalGradient(0.1)
    assert as_solver(solver, problem, tol=1e-4).solver is solver
    assert not RowSpace.applies(problem)


def test_admm_takes_any_penalty_with_a_prox():
    problem, _ = with_kinks()
    result = run(problem, ADMM(relaxation=1.6), tol=1e-7, max_iter=1000)
    assert result.status == "converged"
    largest = np.linalg.eigvalsh(problem.gram())[-1]
    step = 1.0 / (0.5 * largest + problem.penalty.alpha)
    slow = run(problem, ProximalGradient(step), tol=1e-7, max_iter=20_000)
    np.testing.assert_array_equal(result.W != 0, slow.W != 0)
    for W in (result.W, slow.W):
        W[-1] -= W[-1].mean()  # a shift of all intercepts changes nothing
    assert_close(result.W, slow.W, 1e-4)


@dataclass(frozen=True)
class Ridge(Penalty):
    """(α/2) ‖W‖², all of it: a penalty that writes as little as it can."""

    alpha: float
    d: int

    @property
    def quadratic(self):
        return Quadratic(self.alpha, sp.eye_array(self.d, format="csr"))

    def with_alpha(self, alpha):
        return Ridge(alpha, self.d)


@pytest.mark.parametrize("solver", [ADMM(), LBFGS(20, "gram"), NewtonCG()], ids=repr)
def test_a_smooth_penalty_of_ones_own_is_solved(solver):
    X, labels = make(90, 8, 3)
    plain = Problem.of(X, labels, 0.05, penalize_intercept=True)
    problem = plain.with_penalty(Ridge(0.05, 9))
    result = run(problem, solver, tol=1e-8, max_iter=3000)
    assert result.status == "converged"
    assert result.iterate.objective == pytest.approx(minimum(plain, X)[1], rel=1e-10)


def test_what_a_penalty_need_not_write():
    ridge, W = Ridge(0.5, 4), np.ones((4, 2))
    assert ridge.is_smooth
    assert ridge.rough_value(W) == 0.0
    assert ridge.prox(W, 0.1) is W
    assert ridge.reference is None
    assert ridge.alpha_max(W) == np.inf
    np.testing.assert_array_equal(ridge.optimality(W, W), W + ridge.gradient(W))
    with pytest.raises(TypeError, match="Ridge does not say what it is for 4 features"):
        ridge.over(4, 0.1, intercept=True, penalize_intercept=False, reference=None)
    with pytest.raises(TypeError, match="abstract"):
        Penalty()


def test_over_is_what_a_problem_asks():
    X, labels = make(90, 8, 3)
    asked = {}

    class Asked(Ridge):
        def over(self, n_features, alpha, **settings):
            asked.update(settings, n_features=n_features, alpha=alpha)
            return Tikhonov.over(n_features, alpha, **settings)

    make_problem = partial(Problem.of, X, labels, 0.1, penalty=Asked(1.0, 1))
    make_problem(intercept=False)
    assert asked == {
        "n_features": 8,
        "alpha": 0.1,
        "intercept": False,
        "penalize_intercept": False,
        "reference": None,
    }
    make_problem(reference=np.ones((9, 3)), penalize_intercept=True)
    assert asked["intercept"]
    assert asked["penalize_intercept"]
    np.testing.assert_array_equal(asked["reference"], np.ones((9, 3)))
