"""The objective is the formula; its derivatives pass finite differences."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from admm_softmax import Problem, Tikhonov, operators
from admm_softmax._parallel import use_threads
from admm_softmax.prepared import Prepared
from admm_softmax.solvers.preconditioner import SampledCholesky, SampledGram
from tests.problems import DenseObjective, assert_close, make, one_hot, rows_of

VARIANTS = {
    "plain": {},
    "weighted": {"sample_weight": np.random.default_rng(0).random(60)},
    "laplacian": {"operator": operators.laplacian(5), "penalize_intercept": True},
    "reference": {"reference": np.random.default_rng(1).standard_normal((6, 3))},
    "no intercept": {"intercept": False, "operator": operators.gradient(5)},
}


def build(variant, *, soft=False, seed=0, sparse=False):
    X, labels = make(60, 5, 3, seed=seed, soft=soft)
    return Problem.of(sp.csr_array(X) if sparse else X, labels, 0.05, **VARIANTS[variant]), X


@settings(max_examples=25, deadline=None)
@given(
    variant=st.sampled_from(sorted(VARIANTS)),
    soft=st.booleans(),
    sparse=st.booleans(),
    seed=st.integers(0, 100),
)
def test_gradient_and_hessian_by_finite_differences(variant, soft, sparse, seed):
    problem, _ = build(variant, soft=soft, sparse=sparse, seed=seed)
    rng = np.random.default_rng(seed)
    W, V = rng.standard_normal((2, *problem.shape))
    h = 1e-5
    at = problem.linearise(W)
    slope = (problem.objective(W + h * V) - problem.objective(W - h * V)) / (2 * h)
    assert slope == pytest.approx(np.vdot(at.gradient, V), rel=1e-6, abs=1e-8)
    change = (problem.at(W + h * V).gradient - problem.at(W - h * V).gradient) / (2 * h)
    np.testing.assert_allclose(at.hessian_product(V), change, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("soft", [False, True])
def test_every_form_of_the_objective_agrees(variant, soft):
    problem, X = build(variant, soft=soft)
    W = np.random.default_rng(3).standard_normal(problem.shape)
    value, gradient = DenseObjective(problem, X)(W.ravel())
    evaluation = problem.evaluate(W)
    for point in (problem.at(W), problem.linearise(W)):
        assert_close(point.objective, value, 1e-12)
        assert_close(point.loss, evaluation.loss, 1e-12)
        assert_close(point.gradient.ravel(), gradient, 1e-12)
        assert_close(point.accuracy, evaluation.accuracy, 1e-12)
    assert_close(problem.objective(W), value, 1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_hessian_is_the_formula(variant):
    problem, X = build(variant)
    W, V = np.random.default_rng(3).standard_normal((2, *problem.shape))
    expected = DenseObjective(problem, X).hessian_product(W.ravel(), V.ravel())
    assert_close(problem.linearise(W).hessian_product(V).ravel(), expected, 1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_point_has_the_gradient_of_the_loss_too(variant):
    problem, _ = build(variant)
    W = np.random.default_rng(3).standard_normal(problem.shape)
    for point in (problem.at(W), problem.linearise(W)):
        loss_gradient = point.gradient - problem.penalty.gradient(W)
        assert_close(point.loss_gradient, loss_gradient, 1e-12)
        assert point.optimality is point.gradient  # Tikhonov's term is smooth


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_point_may_have_the_gradient_of_the_loss_written_over(variant):
    problem, _ = build(variant)
    W = np.random.default_rng(3).standard_normal(problem.shape)
    found, expected = problem.slope_at(W), problem.at(W)
    assert_close(found.gradient, expected.gradient, 1e-12)
    assert found.loss_gradient is found.gradient is found.optimality
    for name in ("objective", "loss", "accuracy", "curvature", "residual"):
        assert_close(getattr(found, name), getattr(expected, name), 1e-12)


def test_integer_weights_equal_repeated_rows():
    X, labels = make(60, 5, 3)
    s = np.random.default_rng(0).integers(0, 4, 60)
    weighted = Problem.of(X, labels, 0.1, sample_weight=s)
    repeated = Problem.of(np.repeat(X, s, axis=0), np.repeat(labels, s), 0.1)
    W = np.random.default_rng(1).standard_normal(weighted.shape)
    assert_close(weighted.objective(W), repeated.objective(W), 1e-12)
    assert_close(weighted.at(W).gradient, repeated.at(W).gradient, 1e-12)
    assert_close(weighted.gram(), repeated.gram(), 1e-12)


def test_hard_labels_equal_one_hot_rows():
    X, labels = make(60, 5, 3)
    hard, soft = Problem.of(X, labels, 0.1), Problem.of(X, one_hot(labels, 3), 0.1)
    W = np.random.default_rng(1).standard_normal(hard.shape)
    assert_close(hard.objective(W), soft.objective(W), 1e-12)
    assert_close(hard.at(W).gradient, soft.at(W).gradient, 1e-12)


def test_gram_is_formed_once_for_every_alpha():
    problem, _ = build("plain")
    for alpha in (0.1, 1.0, 10.0):
        problem.with_alpha(alpha).gram()
    assert problem.design.reads == 1
    assert problem.with_alpha(2.0).penalty.alpha == 2.0


def test_what_is_prepared_is_shared_by_copies_and_dropped_by_fresh():
    problem, X = build("weighted")
    T, (_, w) = np.column_stack([X, np.ones(60)]), rows_of(problem)
    gram = problem.gram()
    assert_close(gram, T.T @ (w[:, None] * T), 1e-12)
    for same in (problem.with_alpha(1.0), problem.for_run()):
        assert same.gram() is gram
    fresh = problem.fresh()
    assert not fresh.prepared.has_gram
    assert fresh.gram() is not gram
    assert fresh.design is problem.design
    assert problem.on(np.arange(60) < 30).prepared is not problem.prepared


def test_single_precision_is_enough_until_double_is_asked_for():
    problem, _ = build("plain")
    single = problem.gram(np.float32)
    assert single.dtype == np.float32
    assert problem.gram(np.float32) is single
    double = problem.gram()
    assert double.dtype == np.float64
    assert problem.gram(np.float32) is double
    assert problem.design.reads == 2
    assert_close(single, double, 1e-5)


def test_squares_of_columns_come_from_the_gram_matrix_where_there_is_one():
    problem, _ = build("plain")
    other = problem.fresh()
    assert_close(problem.column_squares(), other.gram().diagonal(), 1e-12)
    assert problem.design.reads == 2
    assert_close(other.column_squares(), other.gram().diagonal(), 1e-12)
    assert problem.column_squares() is problem.column_squares()
    assert problem.design.reads == 2


def test_a_gram_matrix_can_be_made_in_another_way_or_offered():
    problem, _ = build("plain")
    ours = np.eye(6)
    made = problem.with_gram(ours.astype)
    np.testing.assert_array_equal(made.gram(), ours)
    np.testing.assert_array_equal(made.fresh().gram(), ours)
    problem.prepared.offer_gram(ours)
    assert problem.gram() is ours
    problem.prepared.offer_gram(2 * ours)
    assert problem.gram() is ours
    assert problem.design.reads == 0


def test_a_gram_matrix_that_overflows_is_named():
    problem = Problem.of(np.full((3, 2), 1e200), [0, 1, 1])
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match="X is too large: the squares of its entries overflow"),
    ):
        problem.gram()
    large = Problem.of(np.full((3, 2), 1e20, np.float32), [0, 1, 1])
    with np.errstate(over="ignore", invalid="ignore"):
        assert large.gram(np.float32).dtype == np.float64


def test_a_copy_in_another_process_prepares_anew():
    problem, _ = build("plain")
    problem.gram()
    problem.prepared.anchor.get(lambda kept: True, dict)
    copy = pickle.loads(pickle.dumps(problem))
    assert isinstance(copy.prepared, Prepared)
    assert not copy.prepared.has_gram
    assert copy.prepared.anchor.last() is None
    W = np.random.default_rng(1).standard_normal(problem.shape)
    np.testing.assert_array_equal(copy.at(W).gradient, problem.at(W).gradient)


def test_a_run_counts_its_own_reads():
    problem, _ = build("plain")
    W = np.zeros(problem.shape)
    first, second = problem.for_run(), problem.for_run()
    first.at(W)
    first.gram()
    second.at(W)
    second.gram()  # the first has made it
    assert (first.design.reads, second.design.reads, problem.design.reads) == (2, 1, 3)
    assert first.workspace is not second.workspace


@pytest.mark.usefixtures("threads_at_any_size")
def test_block_size_and_threads_do_not_change_the_objective(monkeypatch):
    X, labels = make(5000, 20, 5)
    values = []
    for threads, block in [(1, 10_000), (1, 64), (2, 64), (4, 333)]:
        problem = Problem.of(X, labels, 0.1)
        monkeypatch.setattr(type(problem.design), "block_rows", lambda self, b=block: b)
        with use_threads(threads):
            values.append(problem.objective(np.full(problem.shape, 0.3)))
    np.testing.assert_allclose(values, values[0], rtol=1e-12)


def test_runs_share_the_copy_of_sparse_rows_by_columns():
    problem, _ = build("plain", sparse=True)
    first, second = problem.for_run(), problem.for_run()
    assert first.design.by_columns is second.design.by_columns is problem.design.by_columns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [0, 1]}, "labels have 2 entries for 3 rows"),
        ({"labels": [0, 1, -1]}, "labels must lie in 0 … 1, got values from -1 to 1"),
        ({"labels": [0, 1, 5], "n_classes": 3}, "labels must lie in 0 … 2"),
        ({"labels": [[0.5, 0.6]] * 3}, r"each row of soft labels must sum to 1, got 1.1 in row 0"),
        ({"labels": [[1.5, -0.5]] * 3}, r"soft labels must be ≥ 0, got -0.5 in row 0, column 1"),
        ({"labels": [[np.nan, 0.5]] * 3}, "soft labels must be finite"),
        ({"labels": [[0.5, 0.5]] * 3, "n_classes": 3}, "labels have 2 columns for 3 classes"),
        ({"sample_weight": [1, 1]}, "sample_weight has 2 entries for 3 rows"),
        ({"sample_weight": [1, -2, 1]}, r"sample_weight must be ≥ 0, got -2.0 at position 1"),
        ({"sample_weight": [0, 0, 0]}, "sample_weight must have a positive sum, got 0"),
        ({"sample_weight": [1, np.nan, 1]}, "sample_weight must be finite"),
        ({"sample_weight": np.ones((3, 1))}, "sample_weight must be one-dimensional"),
        ({"reference": np.zeros((2, 2))}, r"reference must have the shape \(3, 2\) of W"),
        ({"reference": np.full((3, 2), np.inf)}, "reference must be finite"),
    ],
)
def test_bad_input_is_named(arguments, message):
    settings = {"labels": [0, 1, 1], **arguments}
    with pytest.raises(ValueError, match=message):
        Problem.of(np.ones((3, 2)), alpha=0.1, **settings)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_x_must_be_finite(sparse, bad):
    X = np.ones((3, 2))
    X[1, 1] = bad
    with pytest.raises(ValueError, match="X must be finite, got NaN or infinity"):
        Problem.of(sp.csr_array(X) if sparse else X, [0, 1, 1])
    large = np.full((3, 2), 1e308)
    assert Problem.of(large, [0, 1, 1]).shape == (3, 2)


def test_x_must_be_real_and_not_empty():
    with pytest.raises(TypeError, match="X must hold real numbers, got type complex128"):
        Problem.of(np.ones((3, 2)) * 1j, [0, 1, 1])
    with pytest.raises(ValueError, match=r"X must have rows and columns, got shape \(0, 2\)"):
        Problem.of(np.ones((0, 2)), [])
    with pytest.raises(ValueError, match="labels must be of at least two classes, got 1"):
        Problem.of(np.ones((3, 2)), [0, 0, 0])


def test_subsample_is_a_problem_on_some_rows():
    X, labels = make(60, 5, 3)
    s = np.r_[np.zeros(20), np.ones(40)]
    problem = Problem.of(X, labels, 0.1, sample_weight=s)
    part = problem.subsample(15, seed=0)
    assert part.design is problem.design  # no row is copied
    _, w = rows_of(part)
    chosen = np.flatnonzero(w)
    assert len(chosen) == 15
    assert chosen.min() >= 20
    np.testing.assert_allclose(w[chosen], 1 / 15, rtol=1e-12)
    assert part.total_weight == pytest.approx(15.0)
    expected = Problem.of(X[chosen], labels[chosen], n_classes=3).gram()
    np.testing.assert_allclose(part.gram(), expected, rtol=1e-10, atol=1e-14)
    assert problem.design.reads == 0.25
    assert len(np.flatnonzero(rows_of(problem.subsample(1000, seed=0))[1])) == 40


def test_rows_without_weight_are_counted_in_the_error():
    X, labels = make(60, 5, 3)
    problem = Problem.of(X, labels, sample_weight=np.r_[np.zeros(20), np.ones(40)])
    with pytest.raises(ValueError, match="the 20 rows chosen must have weight, got a sum of 0"):
        problem.on(np.arange(60) < 20)
    with pytest.raises(ValueError, match="the 0 rows chosen must have weight, got a sum of 0"):
        problem.on([])


def test_a_problem_on_some_rows_shares_the_design():
    X, labels = make(60, 5, 3)
    s = np.random.default_rng(0).random(60)
    problem = Problem.of(X, labels, 0.1, sample_weight=s)
    chosen = np.r_[np.arange(0, 40, 2), 4]  # row 4 twice
    part = problem.on(chosen)
    copied = Problem.of(X[chosen], labels[chosen], 0.1, sample_weight=s[chosen])
    assert part.design is problem.design
    W = np.random.default_rng(1).standard_normal(problem.shape)
    assert_close(part.objective(W), copied.objective(W), 1e-12)
    assert_close(part.at(W).gradient, copied.at(W).gradient, 1e-12)
    assert part.total_weight == pytest.approx(copied.total_weight)
    mask = np.arange(60) < 30
    assert_close(problem.on(mask).objective(W), problem.on(np.arange(30)).objective(W), 1e-12)
    weightless = Problem.of(X, labels, 0.1, sample_weight=np.r_[0.0, 0.0, s[2:]])
    with pytest.raises(ValueError, match="the 2 rows chosen must have weight, got a sum of 0"):
        weightless.on([0, 1])


def test_labels_and_weights_are_handles_of_the_design():
    X, labels = make(60, 5, 3)
    s = np.random.default_rng(0).random(60)
    problem = Problem.of(X, labels, 0.1, sample_weight=s)
    np.testing.assert_array_equal(problem.design.gather(problem.labels), labels)
    np.testing.assert_allclose(problem.design.gather(problem.weights), s / s.sum(), rtol=1e-12)
    assert problem.total_weight == pytest.approx(s.sum())


def test_labels_of_a_wrong_type():
    with pytest.raises(TypeError, match="labels must be whole numbers"):
        Problem.of(np.ones((2, 2)), ["a", "b"])


class Half:
    """An object that says what the penalty is for so many features."""

    def over(self, n_features, alpha, *, intercept, penalize_intercept, reference):
        return Tikhonov.over(
            n_features,
            alpha / 2,
            intercept=intercept,
            penalize_intercept=penalize_intercept,
            reference=reference,
        )


def test_a_penalty_of_the_callers():
    X, labels = make(60, 5, 3)
    settings = {"reference": np.ones((6, 3)), "penalize_intercept": True}
    problem = Problem.of(X, labels, 0.2, penalty=Half(), **settings)
    same = Problem.of(X, labels, 0.1, **settings)
    W = np.random.default_rng(1).standard_normal(problem.shape)
    assert_close(problem.objective(W), same.objective(W), 1e-12)
    with pytest.raises(ValueError, match="give penalty or operator"):
        Problem.of(X, labels, 0.1, penalty=Half(), operator=operators.identity(5))
    with pytest.raises(
        TypeError, match=r"penalty must be None or an object with over\(\), got 'l1'"
    ):
        Problem.of(X, labels, 0.1, penalty="l1")


def test_w_of_a_wrong_shape():
    problem, _ = build("plain")
    for ask in (problem.evaluate, problem.at, problem.linearise):
        with pytest.raises(ValueError, match=r"W must have the shape \(6, 3\), got \(3, 6\)"):
            ask(np.zeros((3, 6)))


def test_what_preconditions_is_not_taken_for_the_gram_matrix():
    problem, X = build("weighted")
    T, (_, w) = np.column_stack([X, np.ones(60)]), rows_of(problem)
    sampled = SampledGram.of(problem, 20, 0)
    gram = T.T @ (w[:, None] * T)
    assert (np.diag(sampled.matrix) > np.diag(gram)).all()
    assert_close(problem.gram(), gram, 1e-12)
    step = SampledCholesky(20, 0, "double").prepare(problem)
    step.factor(0.5)
    H = 0.5 * sampled.matrix + problem.penalty.quadratic.matrix.toarray()
    R = np.random.default_rng(0).standard_normal(problem.shape)
    assert_close(H @ step.precondition(R), R, 1e-10)


def test_a_sample_that_preconditions_is_drawn_once():
    problem, _ = build("plain")
    first = SampledGram.of(problem, 20, 0)
    reads = problem.design.reads
    assert SampledGram.of(problem.with_alpha(3.0), 20, 0) is first
    assert problem.design.reads == reads
    assert SampledGram.of(problem, 20, 1) is not first
    assert SampledGram.of(problem.fresh(), 20, 1) is not problem.prepared.sampled_gram.last()
