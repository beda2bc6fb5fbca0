"""Proximal L-BFGS: working sets, exact zeros, certificates."""

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import ADMM, LBFGS, Problem, ProximalLBFGS, operators, penalties, run
from admm_softmax.contracts import check_solver
from admm_softmax.design import PartitionedDesign, as_design
from admm_softmax.kernels import coordinates
from admm_softmax.penalty import Blocks
from admm_softmax.solvers import quadratic_model, working_set
from admm_softmax.solvers.base import Chainable, measured_at
from admm_softmax.solvers.duality import leaves_intercept, lower_bound
from admm_softmax.solvers.quadratic_model import BLOCK_POWER_STEPS, Gram, Model, Pair
from admm_softmax.solvers.working_set import WorkingSet
from tests.problems import assert_close, make, minimum


@pytest.fixture
def few_enter(monkeypatch):
    """Working sets even where many features want to enter."""
    monkeypatch.setattr(working_set, "MANY", 1.0)


def test_it_keeps_the_contract_of_solvers():
    check_solver(ProximalLBFGS(tol=1e-7))


def sparse_model(n=150, d=400, K=3, seed=0):
    """Many features, of which ten matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    W = np.zeros((d, K))
    W[rng.choice(d, 10, replace=False)] = 2 * rng.standard_normal((10, K))
    return X, (X @ W + rng.gumbel(size=(n, K))).argmax(axis=1)


PENALTIES = {
    "lasso": penalties.Lasso(),
    "elastic net": penalties.ElasticNet(0.7),
    "group lasso": penalties.GroupLasso(),
    "groups": penalties.GroupLasso(np.arange(400) // 5),
    "sparse groups": penalties.SparseGroupLasso(np.arange(400) // 5, l1_ratio=0.3),
    "free features": penalties.Lasso(factors=np.r_[0.0, 0.0, np.ones(398)]),
}
WAYS = ["dense", "sparse", "parts", "float32", "without a Gram matrix"]


@pytest.mark.parametrize("name", PENALTIES)
def test_working_sets_find_the_solution_of_all_features(name, monkeypatch, few_enter):
    X, y = sparse_model()
    alpha = 0.07 if name == "groups" else 0.04
    problem = Problem.of(X, y, alpha, penalty=PENALTIES[name])
    found = run(problem, ProximalLBFGS(tol=1e-9), tol=1e-8, max_iter=300)
    assert found.status == "converged"
    kept = WorkingSet.last(problem)
    assert kept.features is not None
    assert len(kept.features) < 250
    monkeypatch.setattr(working_set, "WHOLE_ABOVE", 0.0)
    whole = run(problem.fresh(), ProximalLBFGS(), tol=1e-8, max_iter=300)
    assert whole.status == "converged"
    if name == "free features":  # a shift of a free row over all classes changes nothing
        for result in (found, whole):
            result.W[:2] -= result.W[:2].mean(axis=1, keepdims=True)
    assert_close(found.W, whole.W, 1e-5)
    np.testing.assert_array_equal(found.W != 0, whole.W != 0)
    assert 0 < (found.W[:-1] != 0).sum() < 0.2 * found.W.size


@pytest.mark.parametrize("way", WAYS)
def test_all_designs_meet_at_the_same_solution(way, monkeypatch, few_enter):
    X, y = sparse_model()
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    expected = run(
        Problem.of(X, y, 0.03, penalty=penalties.Lasso()), ProximalLBFGS(tol=1e-9), tol=1e-8
    ).W
    if way == "without a Gram matrix":
        monkeypatch.setattr(working_set, "LARGEST_GRAM", 0)
    stored = {
        "sparse": lambda: sp.csr_array(X),
        "parts": lambda: PartitionedDesign([as_design(X[:70]), as_design(X[70:])]),
        "float32": lambda: X.astype(np.float32),
    }.get(way, lambda: X)()
    problem = Problem.of(stored, y, 0.03, penalty=penalties.Lasso())
    tol = 1e-6 if way == "float32" else 1e-8
    found = run(problem, ProximalLBFGS(tol=tol), tol=tol, max_iter=500)
    assert found.status == "converged"
    assert_close(found.W, expected, 1e-3 if way == "float32" else 1e-5)
    assert not problem.prepared.has_gram  # of all 400 features


def test_very_sparse_columns_have_no_gram_matrix(few_enter):
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 3000), density=0.003, rng=rng, format="csr")
    y = (X @ rng.standard_normal((3000, 3)) + 0.1 * rng.gumbel(size=(200, 3))).argmax(axis=1)
    problem = Problem.of(X, y, 0.0005, penalty=penalties.Lasso())
    found = run(problem, ProximalLBFGS(tol=1e-6), tol=1e-6, max_iter=300)
    assert found.status == "converged"
    kept = WorkingSet.last(problem)
    assert kept.features is not None
    assert len(kept.features) > 200
    assert kept.gram.matrix.size == 0
    dense = Problem.of(X.toarray(), y, 0.0005, penalty=penalties.Lasso())
    other = run(dense, ProximalLBFGS(tol=1e-6), tol=1e-6, max_iter=300)
    assert WorkingSet.last(dense).gram.matrix.size > 0
    assert found.iterate.objective == pytest.approx(other.iterate.objective, abs=1e-6)


def test_passes_over_a_working_set_count_as_their_share(few_enter):
    X, y = sparse_model(d=2000)
    problem = Problem.of(X, y, 0.05, penalty=penalties.Lasso())
    found = run(problem, ProximalLBFGS(), tol=1e-5)
    assert found.status == "converged"
    assert found.iterate.passes < 25


def test_a_second_fit_begins_on_the_last_working_set(few_enter):
    X, y = sparse_model(d=1000)
    problem = Problem.of(X, y, 0.05, penalty=penalties.Lasso())
    first = run(problem, ProximalLBFGS(tol=1e-5), tol=1e-5)
    again = run(problem.with_alpha(0.049), ProximalLBFGS(tol=1e-5), W0=first.W, tol=1e-5)
    assert again.status == "converged"
    assert again.n_iter <= 2


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", ["lasso", "elastic net", "group lasso", "sparse group lasso"])
def test_the_gap_bounds_the_distance_to_the_minimum(name, soft):
    X, labels = make(90, 8, 3, soft=soft)
    penalty = {
        "lasso": penalties.Lasso(),
        "elastic net": penalties.ElasticNet(0.5),
        "group lasso": penalties.GroupLasso(),
        "sparse group lasso": penalties.SparseGroupLasso(l1_ratio=0.5),
    }[name]
    weights = np.random.default_rng(0).random(90)
    problem = Problem.of(X, labels, 0.02, penalty=penalty, sample_weight=weights)
    result = run(problem, ProximalLBFGS(), tol=1e-9, max_iter=300)
    best = result.iterate.objective
    gaps, objectives = result.history["gap"], result.history["objective"]
    assert (gaps * objectives >= objectives - best - 1e-12).all()
    assert gaps[-1] <= 1e-6
    rng = np.random.default_rng(1)
    for size in (0.01, 0.3, 2.0):  # anywhere, also where the intercept is far from its optimum
        point = problem.at(size * rng.standard_normal(problem.shape))
        assert lower_bound(problem, point, leaves_intercept(problem)) <= best + 1e-12


def test_without_a_cheap_dual_there_is_no_gap():
    X, labels = make(60, 6, 3)
    penalty = penalties.Lasso(factors=[0, 1, 1, 1, 1, 1])
    result = run(Problem.of(X, labels, 0.05, penalty=penalty), ProximalLBFGS(), tol=1e-7)
    assert result.status == "converged"
    assert np.isnan(result.history["gap"]).all() or result.history["gap"][-1] < 1e-3


@pytest.mark.parametrize("settings", [{}, {"operator": operators.laplacian((2, 4))}])
def test_a_smooth_penalty_is_fine(settings):
    X, labels = make(90, 8, 3)
    problem = Problem.of(X, labels, 0.05, **settings)
    result = run(problem, ProximalLBFGS(), tol=1e-8, max_iter=500)
    assert result.status == "converged"
    assert result.iterate.objective == pytest.approx(minimum(problem, X)[1], rel=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalize_intercept", [False, True])
def test_the_intercept(intercept, penalize_intercept):
    X, labels = make(90, 8, 3)
    problem = Problem.of(
        X + 2.0,
        labels,
        0.02,
        penalty=penalties.Lasso(),
        intercept=intercept,
        penalize_intercept=penalize_intercept,
    )
    result = run(problem, ProximalLBFGS(), tol=1e-8, max_iter=500)
    assert result.status == "converged"
    other = run(problem, ADMM(relaxation=1.6), tol=1e-6, max_iter=3000)
    assert result.iterate.objective == pytest.approx(other.iterate.objective, abs=1e-8)


def test_admm_hands_over():
    X, labels = make(90, 8, 3)
    problem = Problem.of(X, labels, 0.02, penalty=penalties.Lasso())
    chain = ADMM(relaxation=1.6).then(ProximalLBFGS(), after=3)
    result = run(problem, chain, tol=1e-8)
    assert result.status == "converged"
    assert {"sigma", "nonzero", "gap"} <= set(result.history.columns)


def test_penalties_that_it_cannot_take():
    X, labels = make(60, 6, 3)
    problem = Problem.of(X, labels, 0.02, penalty=penalties.NuclearNorm())
    with pytest.raises(ValueError, match="sum over entries or groups, and NuclearNorm is neither"):
        run(problem, ProximalLBFGS())
    with pytest.raises(ValueError, match="LBFGS needs a smooth penalty, and NuclearNorm is not"):
        run(problem, LBFGS())
    with pytest.raises(ValueError, match="memory must be at least 1"):
        ProximalLBFGS(memory=0)


def random_model(rng, d=7, K=3, n_pairs=2, dense=True):
    """A model, and its metric written out as one matrix."""
    A = rng.standard_normal((40, d))
    G = A.T @ A / 40
    gram = Gram.of(G, centred=False) if dense else Gram.of_diagonal(np.diag(G).copy(), None)
    ridge = rng.random(d)
    H = np.kron(0.3 * G + 0.1 * np.eye(d), np.eye(K))  # a true Hessian, to make pairs with
    pairs = []
    for _ in range(n_pairs):
        s = rng.standard_normal((d, K))
        pairs.append(Pair.between(gram, s, (H @ s.ravel()).reshape(d, K)))
    model = Model(gram, 0.1, ridge, pairs)
    matrix = G if dense else np.diag(np.diag(G))
    B = np.kron(quadratic_model.METRIC * 0.1 * matrix + np.diag(ridge), np.eye(K))
    for pair in pairs:  # BFGS, one pair after the other
        s = pair.s.T.ravel()
        y = (pair.y + ridge * pair.s).T.ravel()
        B = B - np.outer(B @ s, B @ s) / (s @ B @ s) + np.outer(y, y) / (y @ s)
    return model, B


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("kind", ["entries", "groups", "bounds"])
def test_the_model_is_minimised(kind, dense):
    rng = np.random.default_rng(0)
    d, K = 7, 3
    model, B = random_model(rng, dense=dense)
    V, g = rng.standard_normal((2, d, K))
    blocks = {
        "entries": Blocks(l1=np.full(d, 0.4)),
        "groups": Blocks(np.full(d, 0.1), np.full(3, 0.7), np.array([0, 1, 0, 2, 1, 1, 0])),
        "bounds": Blocks(np.zeros(d), lower=np.full((d, 1), -0.2), upper=np.full((d, 1), 0.3)),
    }[kind]
    V = blocks.prox(V, 1.0)
    found = model.minimise(V, g, blocks, 1e-12)
    slope = g + (B @ (found - V).ravel()).reshape(d, K)
    assert np.abs(blocks.optimality(found, slope)).max() < 1e-8
    assert np.isfinite(blocks.value(found))


def test_compiled_loops_are_the_plain_ones(monkeypatch):
    rng = np.random.default_rng(1)
    model, _ = random_model(rng)
    V, g = rng.standard_normal((2, 7, 3))
    from admm_softmax.kernels.compiled import coordinates as fast

    for blocks in (
        Blocks(l1=np.full(7, 0.4)),
        Blocks(np.full(7, 0.1), np.full(3, 0.7), np.array([0, 1, 0, 2, 1, 1, 0])),
        Blocks(np.full(7, 0.0), np.full(7, 0.5), np.arange(7)),
    ):
        compiled = model.minimise(V, g, blocks, 1e-10)
        with monkeypatch.context() as patch:
            patch.setattr(fast, "loop", lambda name: getattr(coordinates, name))
            plain = model.minimise(V, g, blocks, 1e-10)
        assert_close(compiled, plain, 1e-9)


def test_a_fit_begins_without_a_read_where_the_last_has_ended():
    X, y = sparse_model()
    problem = Problem.of(X, y, 0.05, penalty=penalties.Lasso())
    first = run(problem, ProximalLBFGS(), tol=1e-5)
    weaker = problem.with_alpha(0.04).for_run()
    reads = weaker.design.reads
    start = next(ProximalLBFGS(gap=False).iterates(weaker, first.W))
    assert weaker.design.reads == reads
    there = problem.fresh().with_alpha(0.04).at(first.W)
    assert start.objective == pytest.approx(there.objective, rel=1e-12)
    assert start.gradient_norm == pytest.approx(np.abs(there.optimality).max(), rel=1e-9)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_start_is_looked_at_on_the_last_working_set_alone(share, few_enter):
    X, y = sparse_model()
    problem = Problem.of(X, y, 0.05, penalty=penalties.Lasso())
    first = run(problem, ProximalLBFGS(), tol=1e-5)
    ahead = 1.1 * first.W
    weaker = problem.with_alpha(share * 0.05)
    reads = weaker.design.reads
    iterates = ProximalLBFGS(tol=1e-5).iterates(weaker, ahead)
    start = next(iterates)
    assert weaker.design.reads == reads
    np.testing.assert_array_equal(start.W, first.W)
    second = next(iterates)
    assert reads + 1 < weaker.design.reads < reads + 5  # one of all features, few of the set
    assert second.objective < start.objective
    cold = run(problem.fresh().with_alpha(share * 0.05), ProximalLBFGS(), tol=1e-6)
    warm = run(weaker, ProximalLBFGS(tol=1e-6), tol=1e-6, W0=ahead)
    assert warm.iterate.objective == pytest.approx(cold.iterate.objective, abs=1e-9)
    np.testing.assert_array_equal(warm.W != 0, cold.W != 0)


def test_under_the_same_penalty_and_in_a_chain_a_fit_begins_at_its_start(few_enter):
    X, y = sparse_model()
    problem = Problem.of(X, y, 0.05, penalty=penalties.Lasso())
    first = run(problem, ProximalLBFGS(), tol=1e-5)
    start = next(ProximalLBFGS().iterates(problem, 1.1 * first.W))
    np.testing.assert_allclose(start.W, 1.1 * first.W)
    chain = Stretched().then(ProximalLBFGS(), after=1)
    weaker = run(problem.with_alpha(0.04), chain, W0=first.W, tol=1e-4)
    objective, again = weaker.history["objective"], np.diff(weaker.history["iteration"]) == 0
    assert again.sum() == 1
    assert objective[1:][again] == pytest.approx(objective[:-1][again], rel=1e-9)


class Stretched(Chainable):
    """A solver whose steps lengthen W."""

    def iterates(self, problem, W0):
        for stretch in (1.0, 1.2):
            yield measured_at(problem.at(stretch * W0))


def test_the_bound_on_a_rows_block_of_the_metric_is_near_its_largest_eigenvalue():
    rng = np.random.default_rng(0)
    base = np.append(rng.uniform(0.5, 1.0, 20), 0.0)  # a constant feature has no curvature
    up, down = rng.standard_normal((21, 7, 3)), 0.1 * rng.standard_normal((21, 7, 3))
    up[-1] = down[-1] = 0.0
    N, Q = np.concatenate([up, down], axis=2), np.concatenate([-up, down], axis=2)
    blocks = base[:, None, None] * np.eye(7) - N @ Q.transpose(0, 2, 1)
    exact = np.linalg.eigvalsh(blocks)[:, -1]
    found = np.empty(21)
    by_class = (np.ascontiguousarray(A.transpose(1, 0, 2)) for A in (N, Q))
    work = np.empty(7), np.empty(7), np.empty(6)
    coordinates.bound_rows(base, *by_class, BLOCK_POWER_STEPS, *work, found)
    assert (found >= 0.6 * exact).all()  # above half, steps descend
    assert (found <= 1.5 * np.maximum(exact, base)).all()


def test_small_passes_run_compiled_as_compiled_code_is_loaded_anyway():
    X, y = make(2000, 60, 10)
    problem = Problem.of(X, y, 0.02, penalty=penalties.Lasso())
    assert not problem.design.compiles(10)
    assert problem.design.compiles(10, is_loaded=True)
    seen = []
    fold_batch = problem.design._fold_batch
    problem.design._fold_batch = lambda requests, compiled: (
        seen.append(compiled) or fold_batch(requests, compiled)
    )
    found = run(problem, ProximalLBFGS(), tol=1e-3)
    assert found.status == "converged"
    assert seen.count(False) <= 1 < len(seen)  # X̃ᵀw has no columns of W
    seen.clear()
    plain = problem.at(found.W)
    assert seen == [False]
    assert plain.objective == pytest.approx(found.iterate.objective, rel=1e-12)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("centred", [True, False])
def test_the_descent_knows_the_gram_matrix_times_its_step(dense, centred):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.standard_normal((40, 6)) + 1, np.ones(40)])
    G = np.asfortranarray(X.T @ X / 40)
    means = np.append(G[-1, :-1], 0.0) if centred else None
    gram = Gram.of(G, centred) if dense else Gram.of_diagonal(np.diag(G).copy(), means)
    if dense and centred:
        centre = X - means
        np.testing.assert_allclose(gram.matrix, centre.T @ centre / 40, atol=1e-12)
    model = Model(gram, 0.1, 0.1 * rng.random(7), ())
    V, g, change = rng.standard_normal((3, 7, 3))
    for blocks in (Blocks(l1=np.full(7, 0.1)), Blocks(np.zeros(7), np.full(7, 0.1), np.arange(7))):
        step = model.minimise(V, g, blocks, 1e-3) - V
        change = step + 0.1 * change
        known = Pair.between(gram, step, change, model.product)
        assert_close(known.Gs, Pair.between(gram, step, change).Gs, 1e-9)
