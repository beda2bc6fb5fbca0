"""Newton-CG: what CG solves, what it costs, and where it ends."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from admm_softmax import NewtonCG, Problem, run
from admm_softmax.solvers.newton_cg import conjugate_gradients
from admm_softmax.solvers.preconditioner import Plain, make_preconditioner
from tests.peers import logistic_regression
from tests.problems import assert_close, make


def spd(seed=0, d=12):
    A = np.random.default_rng(seed).standard_normal((d, d))
    return A @ A.T + np.eye(d)


def test_conjugate_gradients_solve():
    H, B = spd(), np.random.default_rng(1).standard_normal((12, 3))
    inner = conjugate_gradients(lambda V: H @ V, B, Plain(), 200, 1e-12)
    assert_close(inner.direction, np.linalg.solve(H, B), 1e-9)
    assert inner.residuals[-1] <= 1e-12


def test_recorded_residuals_are_the_true_ones():
    H, B = spd(), np.random.default_rng(1).standard_normal((12, 1))
    for steps in (1, 3, 7):
        inner = conjugate_gradients(lambda V: H @ V, B, Plain(), steps, 1e-12)
        left = np.linalg.norm(B - H @ inner.direction) / np.linalg.norm(B)
        assert len(inner.residuals) == steps
        assert inner.residuals[-1] == pytest.approx(left, rel=1e-8)


def test_matches_scikit_learns_newton_cg():
    X, y = load_digits(return_X_y=True)
    X, y, alpha = X[:500] / 16, y[:500], 1e-3
    problem = Problem.of(X, y, alpha)
    W = logistic_regression(problem, X, y)
    ours = run(problem, NewtonCG(200, None), tol=1e-8, max_iter=50)
    assert ours.status == "converged"
    assert_close(ours.iterate.objective, problem.objective(W), 1e-10)
    assert_close(ours.W[:-1], W[:-1], 1e-4)
    # Newton's method: eight iterations and 169 passes where this was measured.
    assert ours.n_iter <= 12
    assert ours.iterate.passes <= 300


def test_the_papers_settings_and_the_inner_history():
    X, y = make(200, 30, 4)
    result = run(Problem.of(X, y, 1e-4), NewtonCG(cg_max_iter=20, cg_tol=1e-2), tol=1e-5)
    inner = result.history.inner_residuals
    assert inner[0] == ()
    assert all(1 <= len(r) <= 20 for r in inner[1:])
    assert all(r[-1] <= 1e-2 or len(r) == 20 for r in inner[1:])
    assert [len(r) for r in inner] == result.history["cg_steps"].tolist()


def test_preconditioning_saves_cg_steps():
    X, y = make(300, 30, 4)
    X = X * np.logspace(-2, 2, 30)
    steps = {}
    for name in ("none", "jacobi", "gram"):
        solver = NewtonCG(500, 1e-4, preconditioner=name)
        result = run(Problem.of(X, y, 1e-4), solver, tol=1e-6, max_iter=60)
        steps[name] = result.history["cg_steps"].sum()
        assert result.status == "converged"
    assert steps["gram"] < steps["jacobi"] < steps["none"]


@pytest.mark.parametrize("kind", ["gram", "jacobi"])
def test_preconditioners_follow_the_curvature(kind):
    X, y = make(100, 6, 3)
    problem = Problem.of(X, y, 1e-2)
    base = make_preconditioner(kind, problem)
    assert base.refresh(0.2)
    assert not base.refresh(0.15)
    assert base.refresh(0.09)
    assert base.curvature == 0.09
    R = np.random.default_rng(0).standard_normal(problem.shape)
    H = 0.09 * problem.gram() + problem.penalty.quadratic.matrix.toarray()
    H = H if kind == "gram" else np.diag(np.diag(H))
    assert_close(base.apply(R), np.linalg.solve(H, R), 1e-9)
    assert base.refresh(0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cg_max_iter": 0}, "cg_max_iter must be at least 1, got 0"),
        ({"cg_tol": 1.0}, "cg_tol must lie between 0 and 1 or be None, got 1.0"),
        ({"preconditioner": "ilu"}, "preconditioner must be one of .*, got 'ilu'"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        NewtonCG(**settings)
