"""A factor per class: what it is, when it is made, that it saves passes and outlives a stop."""

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from admm_softmax import ADMM, LBFGS, Problem, RowBlocks, as_design, run
from admm_softmax.design import PartitionedDesign, standardized
from admm_softmax.solvers import class_factors, lbfgs, preconditioner
from admm_softmax.solvers.class_factors import (
    ClassFactors,
    Origin,
    SetMaker,
    Uncertain,
    affordable_rows,
    inverse_factor,
    is_time,
    with_class_factors,
)
from admm_softmax.solvers.least_squares import Breakdown
from admm_softmax.solvers.preconditioner import make_preconditioner
from tests.problems import make


@pytest.fixture
def forced(monkeypatch):
    """Factors are made at the first occasion, whatever they cost."""
    monkeypatch.setattr(class_factors, "SHARE", 1e9)
    monkeypatch.setattr(class_factors, "BESIDE_X", 1e-9)


def factors_of(problem, subsample=None):
    shared = make_preconditioner("gram", problem, subsample=subsample)
    shared.refresh(0.1)
    found = with_class_factors(problem, shared, subsample, 0)
    assert isinstance(found, ClassFactors)
    return found


def digits(alpha=1e-4, dtype=np.float64):
    X, y = load_digits(return_X_y=True)
    return Problem.of((X / 16).astype(dtype), y, alpha)


@pytest.mark.parametrize("K", [2, 3, 4])
def test_it_is_the_matrix_of_its_definition(K):
    X, y = make(1500, 5, K)
    s = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    problem = Problem.of(X, y, 0.05, sample_weight=s)
    W = np.random.default_rng(0).standard_normal(problem.shape)
    found = factors_of(problem)
    found._make(Origin(W, 1500))
    assert len(found.set.inverses) == (1 if K == 2 else K)

    X1, d = np.column_stack([X, np.ones(1500)]), 6
    P = np.exp(X1 @ W)
    P /= P.sum(axis=1, keepdims=True)
    a = (s / s.sum())[:, None] * P * (1 - P)
    G = X1.T @ ((s / s.sum())[:, None] * X1)
    penalty = problem.penalty.quadratic.matrix.toarray()
    S = np.zeros((K, d, d))
    for k in range(K):
        rows = a[:, k].sum() ** 2 / (a[:, k] ** 2).sum()
        shrinkage = max(0.3 * d / (0.3 * d + rows), 0.01)
        own = np.where(a[:, k] > 0.4 * a[:, k].mean(), (1 - shrinkage) * a[:, k], 0.0)
        S[k] = X1.T @ (own[:, None] * X1) + (a[:, k].sum() - own.sum()) * G + penalty
    R = np.random.default_rng(2).standard_normal((d, K))
    common = R.mean(axis=1)
    solved = np.column_stack([np.linalg.solve(S[k], R[:, k] - common) for k in range(K)])
    solved -= solved.mean(axis=1, keepdims=True)
    solved += np.linalg.solve(0.1 * G + penalty, common)[:, None]
    # Predictions are in single precision.
    np.testing.assert_allclose(found.apply(R), solved, rtol=1e-5, atol=1e-5 * abs(solved).max())


def test_it_is_symmetric_and_definite_and_takes_matrices_side_by_side():
    X, y = make(1200, 4, 3)
    found = factors_of(Problem.of(X, y, 0.01))
    found._make(Origin(np.random.default_rng(0).standard_normal((5, 3)), 1200))
    basis = np.eye(15).reshape(15, 5, 3)
    M = np.array([found.apply(R).ravel() for R in basis])
    np.testing.assert_allclose(M, M.T, rtol=1e-10, atol=1e-10 * abs(M).max())
    assert np.linalg.eigvalsh((M + M.T) / 2).min() > 0
    both = found.apply(np.concatenate([basis[3], basis[7]], axis=1))
    np.testing.assert_allclose(both[:, :3], found.apply(basis[3]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(both[:, 3:], found.apply(basis[7]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_saves_passes(forced, monkeypatch, dtype):
    passes = {}
    for name in ("class", "one"):
        if name == "one":
            monkeypatch.setattr(lbfgs, "with_class_factors", lambda problem, base, *_: base)
        result = run(digits(dtype=dtype), LBFGS(20, "gram"), tol=1e-5, max_iter=500)
        assert result.status == "converged"
        passes[name] = result.n_iter
    assert passes["class"] < 0.7 * passes["one"]


def test_it_is_in_use_where_rows_are_many(monkeypatch):
    made = []
    first = ClassFactors._make
    monkeypatch.setattr(ClassFactors, "_make", lambda self, o: (made.append(o), first(self, o)))
    X, y = make(120_000, 30, 4, noise=0.5, dtype=np.float32)
    run(Problem.of(X, y, 1e-6), LBFGS(20, "gram", subsample=5000), tol=1e-6)
    assert made
    made.clear()
    run(Problem.of(X[:2000], y[:2000], 1e-6), LBFGS(20, "gram"), tol=1e-6)
    assert not made


def test_the_rule_counts_passes_and_memory():
    X, y = make(100_000, 30, 4, dtype=np.float32)
    problem = Problem.of(X, y, 1e-3)
    rows = [affordable_rows(problem, passes) for passes in (0.0, 1.0, 3.0, 1e3)]
    assert rows == sorted(rows)
    assert rows[0] == 0
    assert rows[-1] == class_factors.MOST_ROWS
    assert affordable_rows(digits(), 1e3) == 0  # ten matrices would be a third of X
    assert affordable_rows(Problem.of(X[:1500], y[:1500], 1e-3), 1e6) == 1500
    weights = (np.arange(100_000) < 300).astype(float)
    assert affordable_rows(Problem.of(X, y, 1e-3, sample_weight=weights), 1e6) == 300
    assert [step for step in range(120) if is_time(step)] == [4, 12, 36, 108]


def test_classes_with_few_rows_of_their_own_keep_one_factor():
    rng = np.random.default_rng(0)
    K = 40
    y = rng.integers(K, size=2000)
    X = 0.4 * rng.standard_normal((K, 400))[y] + 0.3 * rng.standard_normal((2000, 400))
    problem = Problem.of(X, y, 1e-4)
    W = run(problem, LBFGS(20, "gram"), tol=1e-4).W
    found = factors_of(problem)
    found._make(Origin(W, 2000))
    assert found.set is None
    R = rng.standard_normal(problem.shape)
    np.testing.assert_array_equal(found.apply(R), found.shared.apply(R))


def test_classes_without_rows_cost_few_passes(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 15))
    y = (X @ rng.standard_normal((15, 8)) + rng.gumbel(size=(40_000, 8))).argmax(axis=1)

    def steps():
        problem = Problem.of(X, y, 1e-6, n_classes=10)
        return run(problem, LBFGS(20, "gram"), tol=1e-6, max_iter=300).n_iter

    with_factors = steps()  # 62 if their curvature were not bounded
    monkeypatch.setattr(class_factors, "SHARE", 0.0)
    assert with_factors < 1.1 * steps()  # 50


def test_all_sets_together_keep_to_their_share(monkeypatch):
    made = []
    first = SetMaker.make
    monkeypatch.setattr(SetMaker, "make", lambda self, p, o: (made.append(o), first(self, p, o))[1])
    X, y = make(100_000, 30, 4, dtype=np.float32)
    found = factors_of(Problem.of(X, y, 1e-3), subsample=5000)
    for step in range(1, 200):
        found.follow(np.zeros((31, 4)), step)
        assert found.maker.spent <= class_factors.SHARE * step
    assert 2 <= len(made) <= 4
    assert found.state["spent"] == found.maker.spent > 0


def test_its_precision_is_that_of_the_data_whoever_formed_the_gram_matrix():
    X, y = make(1500, 5, 3, dtype=np.float32)
    W = np.random.default_rng(0).standard_normal((6, 3))
    sets = []
    for dtype in (np.float32, np.float64):
        problem = Problem.of(X, y, 0.05)
        problem.gram(dtype)
        found = factors_of(problem)
        found._make(Origin(W, 1500))
        sets.append(found.set.inverses)
    assert sets[0].dtype == sets[1].dtype == np.float32
    np.testing.assert_allclose(*sets, rtol=1e-3, atol=1e-4 * np.abs(sets[0]).max())


def test_a_set_for_the_start_needs_no_shorter_first_step():
    problem = digits()
    found, start = factors_of(problem), problem.slope_at(np.zeros(problem.shape))
    assert LBFGS(20, "gram")._first_step(problem, start, found) == 1 / preconditioner.ANTICIPATED
    found._make(Origin(start.W, 1500))
    assert LBFGS(20, "gram")._first_step(problem, start, found) == 1.0


def test_no_gram_matrix_is_formed_for_it(forced):
    problem = digits(1e-3)
    chain = ADMM(0.02, least_squares="pcg").then(LBFGS(20, "gram"), after=5)
    assert run(problem, chain, tol=1e-4, max_iter=300).status == "converged"
    assert not problem.prepared.has_gram


def test_saturated_rows_leave_finite_numbers():
    rows = Uncertain.of(np.zeros((50, 3), np.float32), 4)
    assert np.isfinite(rows.shared).all()
    assert (rows.shared > 0).all()
    assert np.isfinite(rows.shrinkage).all()
    assert not rows.own.any()


def test_a_column_of_zeros_without_penalty_leaves_one_factor(forced):
    X, y = make(1200, 4, 3)
    X[:, 2] = 0.0
    problem = Problem.of(X, y, 0.0)
    found = with_class_factors(problem, make_preconditioner("gram", problem), None, 0)
    found.refresh(0.1)
    found.follow(np.zeros(problem.shape), 4)
    assert found.set is None
    assert run(problem, LBFGS(20, "gram"), tol=1e-6).status == "converged"


def test_a_matrix_that_is_not_definite_is_refused():
    with pytest.raises(Breakdown, match="not definite"):
        inverse_factor(np.array([[1.0, 2.0], [2.0, 1.0]], order="F"))
    with pytest.raises(Breakdown, match="column 1"):
        inverse_factor(np.array([[1.0, 0.0], [0.0, 0.0]], order="F"))


@pytest.mark.parametrize("stop", [3, 5, 14])
def test_a_state_brings_it_back(forced, stop):
    solver = LBFGS(20, "gram")
    whole = list(islice(solver.iterates(digits(), None), 20))
    rest = list(islice(solver.iterates(digits(), None, whole[stop].state), 19 - stop))
    for a, b in zip(whole[stop + 1 :], rest, strict=True):
        np.testing.assert_array_equal(a.W, b.W)


@pytest.mark.parametrize("kind", ["blocks", "parts", "scaled", "half", "sparse", "no intercept"])
def test_every_design_on_this_machine_reaches_the_minimum(forced, monkeypatch, kind):
    X, y = load_digits(return_X_y=True)
    X = X / 16  # exact in half precision
    made = []
    first = ClassFactors._make
    monkeypatch.setattr(ClassFactors, "_make", lambda self, o: (made.append(o), first(self, o)))
    if kind == "sparse":
        design = as_design(sp.csr_array(X))
    elif kind == "blocks":
        cuts = [X[:700], X[700:]]
        design = as_design(RowBlocks(lambda: iter(cuts), n_rows=len(X), n_features=64))
    elif kind == "parts":
        design = PartitionedDesign([as_design(X[:700]), as_design(X[700:])])
    elif kind == "scaled":
        plain = as_design(X + 0.01 * np.random.default_rng(0).standard_normal(X.shape))
        design = standardized(plain, plain.place(np.full(len(X), 1 / len(X))))
    elif kind == "half":
        design = as_design(X.astype(np.float16))
    else:
        design = as_design(X, intercept=False)
    problem = Problem.of(design, y, 1e-3)
    result = run(problem, LBFGS(20, "gram"), tol=1e-5, max_iter=200)
    plain = run(problem, LBFGS(20), tol=1e-5, max_iter=2000)
    assert result.status == plain.status == "converged"
    # F is about α-strongly convex: each is within ‖∇F‖² / (2α) of the minimum.
    gap = abs(result.iterate.objective - plain.iterate.objective)
    assert gap <= result.W.size * 1e-5**2 / (2 * 1e-3)
    assert bool(made) == (kind != "sparse")
