"""The objective is the formula; its derivatives pass finite differences."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from admm_softmax import Problem, operators
from tests.problems import dense_objective, make, one_hot

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
    value, gradient = dense_objective(problem, X)(W.ravel())
    assert problem.objective(W) == pytest.approx(value, rel=1e-13)
    assert problem.at(W).objective == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(problem.at(W).gradient.ravel(), gradient, rtol=1e-10, atol=1e-14)
    at = problem.linearise(W)
    assert (at.objective, at.loss) == pytest.approx((value, problem.evaluate(W).loss), rel=1e-13)
    assert at.accuracy == problem.evaluate(W).accuracy


def test_integer_weights_equal_repeated_rows():
    X, labels = make(60, 5, 3)
    s = np.random.default_rng(0).integers(0, 4, 60)
    weighted = Problem.of(X, labels, 0.1, sample_weight=s)
    repeated = Problem.of(np.repeat(X, s, axis=0), np.repeat(labels, s), 0.1)
    W = np.random.default_rng(1).standard_normal(weighted.shape)
    assert weighted.objective(W) == pytest.approx(repeated.objective(W), rel=1e-14)
    np.testing.assert_allclose(weighted.at(W).gradient, repeated.at(W).gradient, atol=1e-15)
    np.testing.assert_allclose(weighted.gram(), repeated.gram(), rtol=1e-13)


def test_hard_labels_equal_one_hot_rows():
    X, labels = make(60, 5, 3)
    hard, soft = Problem.of(X, labels, 0.1), Problem.of(X, one_hot(labels, 3), 0.1)
    W = np.random.default_rng(1).standard_normal(hard.shape)
    assert hard.objective(W) == pytest.approx(soft.objective(W), rel=1e-15)
    np.testing.assert_allclose(hard.at(W).gradient, soft.at(W).gradient, rtol=1e-13, atol=1e-16)


def test_gram_is_formed_once_for_every_alpha():
    problem, _ = build("plain")
    for alpha in (0.1, 1.0, 10.0):
        problem.with_alpha(alpha).gram()
    assert problem.design.reads == 1
    assert problem.with_alpha(2.0).penalty.alpha == 2.0


def test_block_size_and_threads_do_not_change_the_objective(monkeypatch):
    X, labels = make(5000, 20, 5)
    values = []
    for threads, block in [(1, 10_000), (1, 64), (2, 64), (4, 333)]:
        problem = Problem.of(X, labels, 0.1, n_threads=threads)
        monkeypatch.setattr(type(problem.design), "block_rows", lambda self, b=block: b)
        values.append(problem.objective(np.full(problem.shape, 0.3)))
    np.testing.assert_allclose(values, values[0], rtol=1e-13)


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
    assert part.design.n_rows == 15
    assert part.weights.sum() == pytest.approx(1.0)
    assert part.total_weight == pytest.approx(15.0)
    assert problem.design.reads == 0.25
    assert problem.subsample(1000, seed=0).design.n_rows == 40


def test_labels_of_a_wrong_type():
    with pytest.raises(TypeError, match="labels must be whole numbers"):
        Problem.of(np.ones((2, 2)), ["a", "b"])
