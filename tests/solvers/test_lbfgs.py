import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_digits, load_iris, load_wine

from admm_softmax import LBFGS, NewtonCG, Problem, run
from tests.problems import dense_objective, make


def problems():
    X, y = load_digits(return_X_y=True)
    yield "digits", X[:500] / 16, y[:500], 1e-3
    X, y = load_iris(return_X_y=True)
    yield "iris", X, y, 1e-3
    X, y = load_wine(return_X_y=True)
    yield "wine", (X - X.mean(0)) / X.std(0), y, 1e-4
    X, y = make(200, 20, 5)
    yield "gaussian", X, y, 1e-3
    X, y = make(40, 100, 3)
    yield "wide", X, y, 1e-2


@pytest.mark.parametrize("case", list(problems()), ids=lambda case: case[0])
@pytest.mark.parametrize("line_search", ["wolfe", "armijo"])
def test_needs_no_more_evaluations_than_scipy(case, line_search):
    _, X, y, alpha = case
    problem = Problem.of(X, y, alpha)
    theirs = minimize(
        dense_objective(problem, X),
        np.zeros(np.prod(problem.shape)),
        jac=True,
        method="L-BFGS-B",
        options={"maxcor": 10, "gtol": 1e-6, "ftol": 0.0, "maxiter": 5000, "maxfun": 10_000},
    )
    ours = run(problem, LBFGS(memory=10, line_search=line_search), tol=1e-6, max_iter=5000)
    assert ours.status == "converged"
    assert ours.iterate.objective == pytest.approx(theirs.fun, rel=1e-7)
    assert ours.iterate.passes <= 1.2 * theirs.nfev


def test_preconditioning_saves_passes():
    X, y = load_digits(return_X_y=True)
    problem = Problem.of(X / 16, y, 1e-4)
    passes = {
        name: run(problem, LBFGS(20, name), tol=1e-5, max_iter=1000).iterate.passes
        for name in ("none", "gram")
    }
    part = run(problem, LBFGS(20, "gram", subsample=600), tol=1e-5, max_iter=1000).iterate.passes
    assert passes["gram"] < 0.4 * passes["none"]
    assert part < 0.6 * passes["none"]


def test_every_step_lowers_the_objective():
    X, y = make(200, 10, 4, noise=0.3)
    history = run(Problem.of(X, y, 1e-4), LBFGS(), tol=1e-6).history
    assert np.all(np.diff(history["objective"]) < 1e-12)
    assert history["step"][0] == 0.0


@pytest.mark.parametrize("solver", [LBFGS(), LBFGS(20, "gram"), NewtonCG(50, None)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_stalls_where_rounding_ends_progress(solver, dtype):
    X, y = make(60, 5, 3, dtype=dtype)
    result = run(Problem.of(X, y, 1e-2), solver, tol=0.0, max_iter=500)
    assert result.status == "stalled"
    assert "float64" in result.status.remedy
    assert result.iterate.gradient_norm < (1e-9 if dtype == np.float64 else 1e-5)


def test_a_chain_goes_on_where_its_first_solver_stalls():
    X, y = make(60, 5, 3)
    chain = LBFGS().then(NewtonCG(), after=1000)
    result = run(Problem.of(X, y, 1e-2), chain, tol=0.0, max_iter=1500)
    assert result.status == "stalled"
    assert "cg_steps" in result.history.columns


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory": 0}, "memory must be at least 1, got 0"),
        ({"line_search": "exact"}, "line_search must be 'wolfe' or 'armijo', got 'exact'"),
        ({"preconditioner": "ilu"}, "preconditioner must be one of .*, got 'ilu'"),
        ({"subsample": 0}, "subsample must be at least 1 or None, got 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        LBFGS(**settings)
