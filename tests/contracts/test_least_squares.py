"""Every way of solving the W-step solves it."""

import logging
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import ADMM, Problem, operators, run
from admm_softmax.solvers.least_squares import (
    PCG,
    QR,
    Auto,
    Breakdown,
    Cholesky,
    FirstOf,
    Spectral,
    Woodbury,
    as_strategy,
)
from tests.contracts.w_step_problems import PROBLEMS, build, normal_matrix
from tests.problems import assert_close, make, rows_of

STRATEGIES = {
    "cholesky": Cholesky(),
    "qr": QR(),
    "woodbury": Woodbury(),
    "pcg": PCG(tol=1e-10, rank=10),
    "pcg jacobi": PCG(tol=1e-10, preconditioner="jacobi"),
    "auto": Auto(),
    "spectral": Spectral(),
    "first of two": FirstOf((Spectral(), Cholesky())),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_solves_the_normal_equations(strategy, name):
    problem = build(name)
    step = STRATEGIES[strategy].prepare(problem)
    rng = np.random.default_rng(1)
    for rho in (0.5, 1e-3):
        step.factor(rho)
        H = normal_matrix(problem, rho)
        W = rng.standard_normal(problem.shape)
        solution = step.solve(H @ W, np.zeros(problem.shape))
        if solution.residual is not None:
            np.testing.assert_allclose(
                solution.residual, H @ (W - solution.W), atol=1e-9 * np.abs(H @ W).max()
            )
        scale = np.sqrt(np.diag(H))[:, None]
        np.testing.assert_allclose(
            scale * solution.W, scale * W, rtol=1e-6, atol=1e-6 * scale.max()
        )


def ill_conditioned(alpha):
    """Two columns that differ in the eighth digit: the Gram matrix cannot see it."""
    X, labels = make(100, 5, 3)
    X = np.column_stack([X, X[:, 0] + 1e-9 * X[:, 1]])
    return Problem.of(X, labels, alpha), X


def test_cholesky_breaks_down_and_says_so():
    problem, _ = ill_conditioned(1e-16)
    step = Cholesky().prepare(problem)
    with pytest.raises(Breakdown, match=r"Cholesky: .*rho=1"):
        step.factor(1.0)
    empty = build("a zero column", alpha=0.0)
    with pytest.raises(Breakdown, match="column 2 of the features is zero and is not penalised"):
        Cholesky().prepare(empty).factor(1.0)


def test_qr_with_its_correction_is_as_accurate_as_a_full_least_squares_solver():
    # A consistent system: with a large residual the solution itself is known to κ²ε only.
    problem, X = ill_conditioned(1e-16)
    W_true = np.random.default_rng(0).standard_normal(problem.shape)
    root = np.sqrt(rows_of(problem)[1])[:, None]
    L = problem.penalty.quadratic.L.toarray()
    A = np.concatenate([root * np.column_stack([X, np.ones(100)]), 1e-8 * L])
    b = A @ W_true
    step = QR().prepare(problem)
    step.factor(1.0)
    first = step.solve(A.T @ b, np.zeros(problem.shape)).W
    corrected = first + step.solve(A.T @ (b - A @ first), first).W
    direct = np.linalg.lstsq(A, b, rcond=1e-16)[0]
    errors = [np.abs(W - W_true).max() for W in (first, corrected, direct)]
    assert errors[1] < 1e-3 * errors[0]
    assert errors[1] < 10 * errors[2] + 1e-6


def test_auto_falls_back_with_a_line_in_the_log(caplog):
    problem, _ = ill_conditioned(1e-16)
    step = Auto().prepare(problem)
    with caplog.at_level(logging.WARNING, logger="admm_softmax"):
        step.factor(1.0)
    assert step.name == "qr"
    assert step.corrects
    assert "Cholesky" in caplog.text
    assert "falls back to QR" in caplog.text


EXTREMES = [1e-16, 1e-8, 1.0, 1e3]


@pytest.mark.parametrize("alpha", EXTREMES)
@pytest.mark.parametrize("rho", EXTREMES)
@pytest.mark.parametrize("shape", [(60, 8), (15, 30)])
def test_the_corners_of_the_papers_grid_are_survived(alpha, rho, shape):
    X, labels = make(*shape, 3)
    X[:, 2] = 0.0
    X[:, 3] = X[:, 4]
    problem = Problem.of(X, labels, alpha, operator=operators.laplacian(shape[1]))
    result = run(problem, ADMM(rho=rho), tol=0.0, max_iter=20)
    assert result.status == "iteration_limit"  # and not "diverged"
    assert np.isfinite(result.W).all()


@pytest.mark.parametrize("strategy", ["qr", "auto"])
def test_alpha_zero_with_a_singular_matrix(strategy):
    X, labels = make(60, 5, 3)
    X = np.column_stack([X, X[:, 0], np.zeros(60)])
    problem = Problem.of(X, labels, 0.0)
    result = run(problem, ADMM(rho=0.05, least_squares=strategy), tol=1e-4, max_iter=400)
    assert result.status == "converged"


def names(problem):
    return [type(s).__name__ for s in Auto().preferences(problem)]


def test_auto_prefers_the_cheapest_form(monkeypatch):
    assert names(build("tall")) == ["Cholesky", "QR"]
    X, labels = make(20, 3000, 3)
    assert names(Problem.of(X, labels, 0.1)) == ["Woodbury", "Cholesky", "QR"]
    assert names(Problem.of(X, labels, 0.0)) == ["Cholesky", "QR"]
    monkeypatch.setattr("admm_softmax.solvers.least_squares.auto.LARGEST_FACTOR", 10)
    assert names(Problem.of(X, labels, 0.1)) == ["PCG"]


def test_wide_problems_never_form_a_d_by_d_matrix():
    X, labels = make(30, 2000, 3)
    problem = Problem.of(X, labels, 0.1)
    run(problem, ADMM(rho=0.1), tol=0.0, max_iter=2)
    assert not problem.prepared.has_gram


def test_woodbury_refuses_what_it_cannot_do():
    wide = {"n": 10, "d": 12}
    X, labels = make(**wide)
    singular = Problem.of(X, labels, 0.1, operator=operators.gradient(12))
    with pytest.raises(Breakdown, match="penalty is singular"):
        Woodbury().prepare(singular)
    coupled = sp.eye_array(13).tolil()
    coupled[0, 12] = 1.0
    problem = Problem.of(X, labels, 0.1, operator=coupled.tocsr(), penalize_intercept=True)
    with pytest.raises(Breakdown, match="couples the intercept"):
        Woodbury().prepare(problem)
    tiny = Woodbury().prepare(Problem.of(X, labels, 1e-16))
    with pytest.raises(Breakdown, match="n × n form"):
        tiny.factor(1.0)
    assert Auto().prepare(singular).name == "cholesky"


def test_the_sketch_saves_reads_and_is_made_once():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 20)) @ rng.standard_normal(
        (20, 150)
    ) + 0.01 * rng.standard_normal((400, 150))
    problem = Problem.of(X, rng.integers(0, 3, 400), 1e-3)
    M, reads = rng.standard_normal(problem.shape), {}
    for name in ("jacobi", "nystrom"):
        step = PCG(preconditioner=name, tol=1e-6, rank=40).prepare(problem)
        before = problem.design.reads
        for rho in (0.1, 0.01):
            step.factor(rho)
        assert problem.design.reads == before
        step.solve(M, np.zeros(problem.shape))
        reads[name] = problem.design.reads - before
    assert reads["nystrom"] < 0.7 * reads["jacobi"]


@pytest.mark.parametrize("preconditioner", ["nystrom", "jacobi"])
def test_pcg_survives_a_singular_matrix(preconditioner):
    problem = Problem.of(np.ones((22, 2)), np.arange(22) % 3, 1e-16, intercept=False)
    solver = ADMM(rho=1.0, least_squares=PCG(preconditioner=preconditioner))
    assert run(problem, solver, tol=0.0, max_iter=50).status == "iteration_limit"


def test_pcg_knows_the_whole_penalty():
    # A stiff Laplacian: with its diagonal alone CG needs about d steps per solve.
    X, labels = make(200, 100, 3)
    problem = Problem.of(X, labels, 10.0, operator=operators.laplacian(100))
    step = PCG(rank=20).prepare(problem)
    step.factor(1e-6)
    before = problem.design.reads
    step.solve(np.random.default_rng(0).standard_normal(problem.shape), np.zeros(problem.shape))
    assert problem.design.reads - before < 15


@pytest.mark.parametrize("strategy", ["qr", "pcg", "woodbury"])
@pytest.mark.parametrize("alpha", [1e-2, 1e-5])
def test_strategies_agree_iterate_for_iterate(strategy, alpha):
    X, labels = make(60, 8, 3)
    reference = np.random.default_rng(0).standard_normal((9, 3))
    problem = Problem.of(X, labels, alpha, operator=operators.laplacian(8), reference=reference)
    pair = (ADMM(rho=0.1, least_squares=name) for name in ("cholesky", strategy))
    runs = (solver.iterates(problem.for_run(), None) for solver in pair)
    for ours, theirs in islice(zip(*runs, strict=True), 8):
        assert_close(ours.W, theirs.W, 1e-6)


def test_a_poor_condition_is_corrected_by_residual_rows():
    X, labels = make(100, 5, 3)
    X = np.column_stack([X, X[:, 0] + 1e-6 * X[:, 1]])
    problem = Problem.of(X, labels, 1e-13)
    step = Cholesky().prepare(problem)
    step.factor(1.0)
    assert step.corrects
    assert not Cholesky().prepare(build("tall")).corrects
    ours, theirs = (
        list(islice(ADMM(rho=1.0, least_squares=s).iterates(problem, None), 5))[-1].W
        for s in ("cholesky", "qr")
    )
    np.testing.assert_allclose(X @ ours[:-1], X @ theirs[:-1], atol=1e-9)


def test_sparse_rows_are_densified_by_panels_only(monkeypatch):
    X, labels = make(12, 40, 3)
    problem = Problem.of(sp.csr_array(X), labels, 0.1, operator=operators.laplacian(40))
    whole = Woodbury().prepare(problem).row_gram
    monkeypatch.setattr("admm_softmax.design.blocks.PANEL_BYTES", 8 * 40 * 5)
    assert_close(Woodbury().prepare(problem).row_gram, whole, 1e-12)


def test_duplicate_entries_of_a_sparse_matrix_are_summed():
    X = sp.csr_array((np.ones(4), [0, 0, 1, 1], [0, 2, 4]), shape=(2, 2))
    design = Problem.of(X, [0, 1]).design
    squares = design.column_squares(design.place(np.ones(2)))
    np.testing.assert_array_equal(squares, [4.0, 4.0, 2.0])
    assert X.nnz == 4


def test_the_seed_decides_the_sketch():
    problem = build("tall")
    first, again, other = (PCG(rank=3, seed=s).prepare(problem).vectors for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"preconditioner": "ilu"}, "preconditioner must be 'nystrom' or 'jacobi', got 'ilu'"),
        ({"tol": 0.0}, "tol of PCG must lie between 0 and 1, got 0.0"),
        ({"rank": 0}, "rank of PCG must be at least 1, got 0"),
        ({"max_iter": 0}, "max_iter of PCG must be at least 1, got 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        PCG(**settings)


def test_strategies_by_name():
    assert as_strategy("qr") == QR()
    assert as_strategy(PCG(rank=3)).rank == 3
    with pytest.raises(TypeError, match="least_squares must be a name or a strategy, got 3"):
        ADMM(least_squares=3)
    with pytest.raises(ValueError, match=r"least_squares must be one of .*'qr'.*, got 'lu'"):
        ADMM(least_squares="lu")


def test_a_singular_pencil_is_a_breakdown():
    X, labels = make(40, 3, 3)
    problem = Problem.of(np.column_stack([X, X[:, 0]]), labels, 0.0)  # a column twice
    step = Spectral().prepare(problem)
    with pytest.raises(Breakdown, match="reciprocal condition"):
        step.factor(1.0)
    fallback = FirstOf((Spectral(), QR())).prepare(problem.with_alpha(1e-14))
    fallback.factor(1.0)
    assert fallback.name == "qr"
