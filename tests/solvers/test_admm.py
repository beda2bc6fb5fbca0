"""ADMM is Algorithm 1, iterate for iterate, and ends at the minimum."""

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

from admm_softmax import ADMM, Problem, operators, run
from admm_softmax.solvers.least_squares import PCG
from admm_softmax.solvers.rho import Residuals, first_rho, next_rho
from tests.problems import assert_close, make, minimum, rows_of


def algorithm_1(problem, X, rho, gamma=1.0, iterations=10):
    """The textbook, with explicit Z and U, dense normal equations and K × K Newton steps."""
    n, K = X.shape[0], problem.n_classes
    C, w = rows_of(problem)
    w = w[:, None]
    X = np.column_stack([X, np.ones(n)]) if problem.design.intercept else X
    penalty = problem.penalty.quadratic
    LtL, alpha, W_ref = penalty.LtL.toarray(), penalty.strength, penalty.reference
    W_ref = np.zeros(problem.shape) if W_ref is None else W_ref
    Z, U = np.zeros((n, K)), np.zeros((n, K))
    for _ in range(iterations):
        H = rho * X.T @ (w * X) + alpha * LtL
        W = np.linalg.solve(H, rho * X.T @ (w * (Z + U)) + alpha * LtL @ W_ref)
        Z_old, Z_hat = Z, gamma * X @ W + (1 - gamma) * Z
        Z = np.array([_z(Z_old[i], Z_hat[i] - U[i], C[i], rho) for i in range(n)])
        U = U + Z - Z_hat
        primal = np.linalg.norm(np.sqrt(problem.total_weight * w) * (Z - X @ W))
        dual = np.linalg.norm(rho * X.T @ (w * (Z - Z_old)))
        yield W, Z, U, primal, dual


def _z(z, v, c, rho):
    def value(z):
        return np.log(np.exp(z - z.max()).sum()) + z.max() - c @ z + rho / 2 * ((z - v) ** 2).sum()

    for _ in range(100):
        p = softmax(z)
        g = p - c + rho * (z - v)
        step = np.linalg.solve(np.diag(p + rho) - np.outer(p, p), g)
        t = 1.0
        # Close to the solution the value is rounding noise, and full steps converge.
        while np.abs(g).max() > 1e-4 and value(z - t * step) > value(z) - 1e-4 * t * (g @ step):
            t /= 2
        z = z - t * step
        if np.abs(g).max() < 1e-13:
            break
    return z


CASES = {
    "plain": {},
    "weighted": {"sample_weight": np.random.default_rng(0).uniform(0.1, 3, 30)},
    "operator and reference": {
        "operator": operators.laplacian(5),
        "reference": np.random.default_rng(1).standard_normal((6, 3)),
        "penalize_intercept": True,
    },
    "no intercept": {"intercept": False},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("gamma", [1.0, 1.7, 0.6])
@pytest.mark.parametrize("rho", [0.3, 1e-3])
def test_iterate_for_iterate(case, gamma, rho):
    X, labels = make(30, 5, 3)
    problem = Problem.of(X, labels, 0.02, **CASES[case])
    ours = islice(ADMM(rho=rho, relaxation=gamma).iterates(problem, None), 1, None)
    for (W, _, _, primal, dual), iterate in zip(
        algorithm_1(problem, X, rho, gamma), ours, strict=False
    ):
        assert_close(iterate.W, W, 1e-8)
        assert iterate.details["primal_residual"] == pytest.approx(primal, rel=1e-8, abs=1e-10)
        assert iterate.details["dual_residual"] == pytest.approx(dual, rel=1e-7, abs=1e-10)


def test_a_given_start_is_z_equal_to_xw_and_zero_dual():
    X, labels = make(50, 5, 3)
    problem = Problem.of(X, labels, 0.02)
    W0 = np.random.default_rng(2).standard_normal(problem.shape)
    start, first = islice(ADMM(rho=0.1).iterates(problem, W0), 2)
    np.testing.assert_array_equal(start.W, W0)
    H = 0.1 * problem.gram() + 0.02 * problem.penalty.quadratic.LtL.toarray()
    assert_close(first.W, np.linalg.solve(H, 0.1 * problem.gram() @ W0), 1e-9)


def test_figures_of_an_iterate_belong_to_its_w():
    X, labels = make(60, 5, 3)
    problem = Problem.of(X, labels, 0.02)
    solver = ADMM(rho=0.05, relaxation=1.5, gradient_every=2)
    for k, iterate in enumerate(islice(solver.iterates(problem, None), 1, 7), 1):
        point = problem.at(iterate.W)
        evaluation = problem.evaluate(iterate.W)
        assert_close(iterate.objective, point.objective, 1e-12)
        assert_close(iterate.loss, evaluation.loss, 1e-12)
        assert_close(iterate.accuracy, evaluation.accuracy, 1e-12)
        if k % 2 == 1:
            assert_close(iterate.gradient_norm, np.abs(point.gradient).max(), 1e-9)
        else:
            assert np.isnan(iterate.gradient_norm)


@pytest.mark.parametrize("strategy", ["cholesky", "auto"])
def test_one_read_an_iteration_after_the_gram_matrix(strategy):
    X, labels = make(200, 6, 3)
    problem = Problem.of(X, labels, 0.02)
    solver = ADMM(rho=0.05, relaxation=1.6, least_squares=strategy)
    result = run(problem, solver, tol=0.0, max_iter=6)
    assert result.history["passes"].tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert problem.design.reads == 8  # and one to measure the start, which is not ADMM's
    again = run(problem.with_alpha(0.1), solver, tol=0.0, max_iter=6)
    assert again.history["passes"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert problem.design.reads == 15


@pytest.mark.parametrize("view", [Problem.for_run, lambda problem: problem], ids=["run", "bare"])
def test_two_runs_on_one_problem_do_not_disturb_each_other(view):
    X, labels = make(80, 6, 3)
    alone = [
        [it.W for it in islice(ADMM(rho=rho).iterates(Problem.of(X, labels, 0.02), None), 5)]
        for rho in (0.1, 0.01)
    ]
    problem = Problem.of(X, labels, 0.02)
    pair = (ADMM(rho=rho).iterates(view(problem), None) for rho in (0.1, 0.01))
    for i, both in enumerate(islice(zip(*pair, strict=True), 5)):
        for k in range(2):
            assert_close(both[k].W, alone[k][i], 1e-10)


def test_changing_rho_costs_no_read_of_x():
    X, labels = make(200, 6, 3)
    problem = Problem.of(X, labels, 0.02)
    result = run(problem, ADMM(rho=50.0, adaptive_rho=True), tol=0.0, max_iter=30)
    assert len(set(result.history["rho"])) > 1
    assert result.iterate.passes == 31


MEETINGS = {
    "dense": {},
    "sparse": {"sparse": True},
    "weighted": {"sample_weight": np.random.default_rng(3).integers(0, 4, 90)},
    "soft labels": {"soft": True},
    "two classes": {"K": 2},
    "more features than rows": {"n": 25, "d": 60},
    "operator": {"operator": operators.laplacian((2, 4))},
    "gradient operator": {"operator": operators.gradient((2, 4))},
    "reference": {"reference": np.random.default_rng(4).standard_normal((9, 4))},
    "both, intercept penalised": {
        "operator": operators.laplacian(8, boundary="neumann"),
        "reference": np.random.default_rng(4).standard_normal((9, 4)),
        "penalize_intercept": True,
    },
}


@pytest.mark.parametrize("case", MEETINGS)
@pytest.mark.parametrize(
    "solver",
    [
        ADMM(rho=0.05),
        ADMM(relaxation=1.7, start="smart"),
        ADMM(rho=5.0, adaptive_rho=True, relaxation=1.7, start="smart"),
        ADMM(relaxation=1.7, start="smart", least_squares="qr"),
        ADMM(relaxation=1.7, start="smart", least_squares=PCG(rank=5)),
    ],
    ids=["paper", "auto rho", "adaptive", "qr", "pcg"],
)
def test_meets_an_independent_minimiser(case, solver):
    settings = dict(MEETINGS[case])
    X, labels = make(
        settings.pop("n", 90),
        settings.pop("d", 8),
        settings.pop("K", 4),
        soft=settings.pop("soft", False),
    )
    stored = sp.csr_array(X) if settings.pop("sparse", False) else X
    problem = Problem.of(stored, labels, 0.02, **settings)
    W, best = minimum(problem, X)
    result = run(problem, solver, tol=1e-7, max_iter=3000)
    assert result.status == "converged"
    assert result.iterate.objective == pytest.approx(best, rel=1e-8)
    scores = np.column_stack([X, np.ones(len(X))]) @ np.stack([W, result.W])
    P, P_ours = softmax(scores, axis=-1)
    np.testing.assert_allclose(P_ours, P, atol=1e-5)


def test_float32_data_reach_a_small_gradient():
    X, labels = make(3000, 30, 5, dtype=np.float32)
    problem = Problem.of(X, labels, 1e-2)
    result = run(problem, ADMM(relaxation=1.7), tol=1e-6, max_iter=2000)
    assert result.status == "converged"
    exact = Problem.of(X.astype(np.float64), labels, 1e-2)
    assert np.abs(exact.at(result.W).gradient).max() < 2e-6


def test_integer_weights_equal_repeated_rows():
    X, labels = make(60, 5, 3)
    s = np.random.default_rng(0).integers(0, 4, 60)
    weighted = Problem.of(X, labels, 0.1, sample_weight=s)
    repeated = Problem.of(np.repeat(X, s, axis=0), np.repeat(labels, s), 0.1)
    solver = ADMM(relaxation=1.7, eps_rel=1e-3)
    pairs = zip(solver.iterates(weighted, None), solver.iterates(repeated, None), strict=False)
    for ours, theirs in islice(pairs, 20):
        assert_close(ours.W, theirs.W, 1e-9)
        for name in ours.details.keys() - {"newton_steps"}:  # rounding may cost one more step
            value = ours.details[name]
            assert value == pytest.approx(theirs.details[name], rel=1e-7, abs=1e-12), name


@pytest.mark.usefixtures("threads_at_any_size")
def test_same_bits_twice_and_the_same_numbers_for_any_number_of_threads(monkeypatch):
    X, labels = make(700, 6, 3)
    monkeypatch.setattr("admm_softmax.design.dense.DenseDesign.block_rows", lambda self: 50)
    settings = {"tol": 0.0, "max_iter": 15}
    runs = [
        run(Problem.of(X, labels, 0.02), ADMM(), n_threads=threads, **settings).W
        for threads in (1, 1, 2, 4)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    for other in runs[2:]:
        assert_close(other, runs[0], 1e-10)


def test_boyds_test_stops_when_both_residuals_are_small():
    X, labels = make(80, 5, 3)
    problem = Problem.of(X, labels, 0.05)
    result = run(problem, ADMM(rho=0.1, eps_abs=1e-4, eps_rel=1e-3), tol=0.0)
    assert result.status == "converged"
    last = list(result.history)[-1]
    assert last["primal_residual"] <= last["primal_tolerance"]
    assert last["dual_residual"] <= last["dual_tolerance"]
    before = list(result.history)[-2]
    assert (
        before["primal_residual"] > before["primal_tolerance"]
        or before["dual_residual"] > before["dual_tolerance"]
    )
    assert run(problem, ADMM(rho=0.1), tol=0.0, max_iter=200).status == "iteration_limit"


def test_boyds_tolerances_are_the_formulas():
    X, labels = make(80, 5, 3)
    problem = Problem.of(X, labels, 0.05)
    solver = ADMM(rho=0.1, eps_abs=1e-3, eps_rel=1e-2)
    *_, iterate = islice(solver.iterates(problem, None), 1 + 4)
    *_, (W, Z, U, _, _) = algorithm_1(problem, X, 0.1, iterations=4)
    T = np.column_stack([X, np.ones(80)])
    size = max(np.linalg.norm(T @ W), np.linalg.norm(Z))
    primal = np.sqrt(80 * 3) * 1e-3 + 1e-2 * size
    dual = np.sqrt(18) * 1e-3 + 1e-2 * np.linalg.norm(0.1 / 80 * T.T @ U)
    assert iterate.details["primal_tolerance"] == pytest.approx(primal, rel=1e-8)
    assert iterate.details["dual_tolerance"] == pytest.approx(dual, rel=1e-8)


@pytest.mark.parametrize("rho", [1e-5, 100.0])
def test_adaptive_rho_repairs_a_bad_choice(rho):
    X, labels = make(150, 6, 4)
    problem = Problem.of(X, labels, 0.01)
    fixed = run(problem, ADMM(rho=rho), tol=1e-5, max_iter=200)
    adaptive = run(problem, ADMM(rho=rho, adaptive_rho=True), tol=1e-5, max_iter=200)
    assert adaptive.status == "converged"
    assert np.nanmin(fixed.history["gradient_norm"]) > 1e-2


@pytest.mark.parametrize("alpha", [1e-1, 1e-2, 1e-3])
@pytest.mark.parametrize("K", [2, 10])
def test_automatic_rho_is_near_the_best_of_a_grid(alpha, K):
    X, labels = make(150, 8, K)
    problem = Problem.of(X, labels, alpha)

    def iterations(rho, most=1000):
        return run(problem, ADMM(rho=rho, relaxation=1.7), tol=1e-5, max_iter=most).n_iter

    best = 200
    for rho in (0.03, 0.1, 0.3, 0.01, 1.0, 0.003):
        best = min(best, iterations(rho, best))
    assert iterations("auto") <= 3 * best


def test_next_rho():
    def residuals(primal, dual, curvature=0.1):
        return Residuals(primal, dual, 1.0, 1.0, 0.0, 0.0, curvature)

    assert next_rho(1.0, False, 1.0, 5, residuals(1, 1e-9)) == 1.0
    assert next_rho(1.0, True, 1.0, 5, residuals(1.0, 0.5)) == 1.0
    assert next_rho(1.0, True, 1.0, 5, residuals(1.0, 0.01)) == pytest.approx(10.0)
    assert next_rho(1.0, True, 1.0, 5, residuals(0.01, 0.25)) == pytest.approx(0.2)
    assert next_rho(1.0, True, 1.0, 4, residuals(1.0, 0.01)) == 1.0
    assert next_rho(1.0, True, 1.0, 500, residuals(1.0, 0.01)) == 1.0
    assert next_rho("auto", False, 0.1, 4, residuals(1, 1, 0.09)) == 0.1
    assert next_rho("auto", False, 0.1, 4, residuals(1, 1, 0.05)) == 0.05
    assert next_rho("auto", False, 0.1, 4, residuals(1, 1, 0.0)) == pytest.approx(0.01)
    assert next_rho("auto", False, 0.1, 5, residuals(1, 1, 0.01)) == 0.1


def test_first_rho_follows_the_number_of_classes():
    problem = Problem.of(np.eye(4), [0, 1, 2, 3], 1.0)
    assert first_rho("auto", problem) == pytest.approx(0.25 * 0.75 / 4)
    assert first_rho(3, problem) == 3.0


def test_a_warm_start_with_its_dual_stays_warm():
    X, labels = make(150, 6, 4)
    problem = Problem.of(X, labels, 0.01)
    W = run(problem, ADMM(relaxation=1.7), tol=1e-8, max_iter=5000).W
    start = problem.objective(W)
    _, smart = islice(ADMM(rho=0.05, start="smart").iterates(problem, W), 2)
    *_, paper = islice(ADMM(rho=0.05, start="paper").iterates(problem, W), 3)
    assert smart.objective - start < 1e-12
    assert paper.objective - start > 1e-6


def test_a_smart_start_finds_the_class_mean_of_the_reference_at_once():
    X, labels = make(100, 6, 4)
    reference = 3.0 + np.random.default_rng(0).standard_normal((7, 4))
    problem = Problem.of(X, labels, 1e-3, reference=reference)
    last = {
        start: list(islice(ADMM(rho=0.05, start=start).iterates(problem, None), 20))[-1].W
        for start in ("paper", "smart")
    }
    mean = reference.mean(axis=1)
    mean[-1] = 0.0  # the intercept is not penalised
    assert np.abs(last["smart"].mean(axis=1) - reference.mean(axis=1)).max() < 1e-10
    assert np.abs(last["paper"].mean(axis=1) - mean).max() > 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rho": 0.0}, "rho must be a positive number or 'auto', got 0.0"),
        ({"rho": -1}, "rho must be a positive number or 'auto', got -1"),
        ({"rho": np.nan}, "rho must be a positive number"),
        ({"rho": "fast"}, "rho must be a positive number or 'auto', got 'fast'"),
        ({"relaxation": 2.0}, "relaxation must lie between 0 and 2, got 2.0"),
        ({"start": "warm"}, "start must be 'paper' or 'smart', got 'warm'"),
        ({"eps_abs": -1e-3}, "eps_abs must be ≥ 0, got -0.001"),
        ({"eps_rel": -1e-3}, "eps_rel must be ≥ 0"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        ADMM(**settings)


def test_the_gradient_is_measured_as_often_as_asked_and_changes_nothing():
    X, labels = make(60, 5, 3)
    problem = Problem.of(X, labels, 0.02)
    often, seldom = (
        list(islice(ADMM(rho=0.05, gradient_every=k).iterates(problem, None), 1, 7)) for k in (1, 4)
    )
    assert [np.isnan(i.gradient_norm) for i in often] == [False] * 6
    assert [np.isnan(i.gradient_norm) for i in seldom] == [False, True, True, True, False, True]
    for one, other in zip(often, seldom, strict=True):
        assert_close(other.W, one.W, 1e-10)  # not the same product with Xᵀ, so not the same bits
    with pytest.raises(ValueError, match="gradient_every must be at least 1, got 0"):
        ADMM(gradient_every=0)
