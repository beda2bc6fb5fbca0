"""Row kernels in single precision: those of the specification, also where rows are nearly certain."""

from dataclasses import replace

import numpy as np
import pytest
from numba import njit

from admm_softmax.design import Request, as_design
from admm_softmax.kernels import rows, thresholds
from admm_softmax.kernels.compiled import elementary, layout, passes, single_rows
from admm_softmax.kernels.compiled.lanes import load_stored, store, sum_lanes
from tests.problems import placed

single_exp_of_nonpositive = elementary.single_exp_of_nonpositive
N = 2 * layout.LANES
EPS = np.finfo(np.float32).eps


@njit
def exp_of_all(x, out):
    for t in range(0, x.shape[1], N):
        store(single_exp_of_nonpositive(load_stored(x, 0, t)), out, 0, t)


@njit
def sum_of_first(x):
    return sum_lanes(load_stored(x, 0, 0))


@pytest.fixture
def always(monkeypatch):
    """Take the compiled path for problems of any size, and note whether it is the single one."""
    monkeypatch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", 0)
    taken, made = [], passes.dense_pass

    def dense_pass(*kind):
        taken.append(kind[-1])
        return made(*kind)

    monkeypatch.setattr(passes, "dense_pass", dense_pass)
    return taken


def results(scores, labels, weights):
    """R, loss, accuracy and curvature of a compiled pass whose scores are these.

    X = [scores, 1 in a column of each row's own] and W = [I, 0], so that both products are exact.
    """
    n, K = scores.shape
    X = np.hstack([scores, np.eye(n)]).astype(np.float32)
    design = as_design(X, intercept=False, check_finite=False)
    fold = design.fold(np.eye(n + K, K), rows.gradient, placed(design, [labels, weights]))
    return fold.product[K:], fold.sums.values


def drawn(n, K, scale, seed=0):
    rng = np.random.default_rng(seed)
    scores = (scale * rng.standard_normal((n, K))).astype(np.float32)
    weights = rng.random(n)
    weights[1::7] = 0.0
    return scores, rng.integers(0, K, n), weights / weights.sum()


def test_exponential():
    x = -np.geomspace(1e-9, 40, 4096, dtype=np.float32)[None]
    found = np.empty_like(x)
    exp_of_all(x, found)
    np.testing.assert_allclose(found, np.exp(x.astype(float)), rtol=2e-7, atol=0)
    for far in (-41, -90, -200, -1e10, -1e30, -np.inf):
        odd = np.full((1, N), far, np.float32)
        odd[0, :2] = 0.0, np.nan
        found = np.empty_like(odd)
        exp_of_all(odd, found)
        assert found[0, 0] == 1.0
        assert np.isnan(found[0, 1])
        np.testing.assert_array_equal(found[0, 2:], 0.0)


def test_sum_of_lanes():
    x = np.arange(1, N + 1, dtype=np.float32)[None]
    assert sum_of_first(x) == x.sum()


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
@pytest.mark.parametrize(("n", "K"), [(1, 2), (75, 3), (130, 10), (64, 40), (33, 700)])
@pytest.mark.usefixtures("products")
def test_the_gradient_is_that_of_the_specification(n, K, scale, always):
    scores, labels, weights = drawn(n, K, scale)
    R, sums = results(scores, labels, weights)
    assert always == [True]
    expected, _, expected_sums = rows.gradient(scores.astype(float), labels, weights)
    # p − c of the label is exact to p − 1 in double.
    np.testing.assert_allclose(R, expected, rtol=20 * EPS, atol=1e-16)
    np.testing.assert_allclose(sums, expected_sums, rtol=10 * EPS, atol=1e-15)
    assert sums[1] == pytest.approx(expected_sums[1], rel=1e-15, abs=0)


@pytest.mark.parametrize("lead", [5, 15, 30])
def test_rows_that_are_nearly_certain_keep_their_precision(lead, always):
    K, n = 6, 40
    scores, labels, weights = drawn(n, K, 1.0)
    weights = np.full(n, 1 / n)
    scores[np.arange(n), labels] = scores.max() + lead
    R, sums = results(scores, labels, weights)
    wide = scores.astype(float)
    others = np.exp(wide - wide[np.arange(n), labels][:, None])
    others[np.arange(n), labels] = 0.0
    rest = others.sum(axis=1)
    q, tol = rest / (1 + rest), (10 + lead) * EPS  # scores that differ by `lead` are rounded
    np.testing.assert_allclose(-R[np.arange(n), labels], q / n, rtol=tol, atol=0)
    np.testing.assert_allclose(sums[0], np.log1p(rest).mean(), rtol=1e-3, atol=0)
    curvature = (q * (2 - q) - ((others / (1 + rest)[:, None]) ** 2).sum(axis=1)).mean() / K
    np.testing.assert_allclose(sums[2], curvature, rtol=tol, atol=0)


@pytest.mark.parametrize("lead", [50, 80, 100, 1000])
def test_results_are_never_subnormal(lead, always):
    scores, labels, _ = drawn(64, 10, 1.0)
    scores[np.arange(64), 3] += lead
    R, sums = results(scores, labels, np.full(64, 1e-6))
    sizes = abs(R[R != 0])
    assert sizes.min() > np.finfo(np.float32).tiny
    assert np.isfinite(sums).all()
    np.testing.assert_allclose(R.sum(axis=1), 0.0, atol=1e-12)


def test_small_exponentials_add_up_beside_a_large_one(always):
    # 999 of 5e-8 beside a 1: each alone is lost in single precision.
    scores = np.full((16, 1000), np.log(5e-8), np.float32)
    scores[:, 3] = 0.0
    labels = np.full(16, 7)
    _, sums = results(scores, labels, np.full(16, 1 / 16))
    expected = rows.gradient(scores.astype(float), labels, np.full(16, 1 / 16))[2]
    assert sums[0] - -np.log(5e-8) == pytest.approx(expected[0] - -np.log(5e-8), rel=0.05)


@pytest.mark.parametrize("scores_there", [1e30, -2e30])
def test_rows_without_weight_may_hold_anything(scores_there, always):
    scores, labels, weights = drawn(40, 5, 1.0)
    scores[1::7] = scores_there
    R, sums = results(scores, labels, weights)
    assert np.isfinite(sums).all()
    np.testing.assert_array_equal(R[1::7], 0.0)


@pytest.mark.usefixtures("products", "always")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_other_rows_left_does_not_matter(dtype):
    rng = np.random.default_rng(0)
    W, X, huge = rng.standard_normal((6, 3)), rng.standard_normal((10, 5)), np.finfo(dtype).max
    buffers, products = {}, []
    for rows_of_x, shares in ((np.full((64, 5), huge), True), (X, True), (X, False)):
        design, n = as_design(rows_of_x.astype(dtype), check_finite=False), len(rows_of_x)
        if shares:
            design.use_buffers(buffers)
        arrays = placed(design, [np.arange(n) % 3, np.full(n, 1 / n)])
        products.append(design.fold(W, rows.gradient, arrays).product)
    assert not np.isfinite(products[0]).all()
    np.testing.assert_array_equal(products[1], products[2])


def test_a_nan_is_seen_in_the_loss(always):
    for place in ([3, 0], [3, 2]):
        scores, labels, weights = drawn(20, 4, 1.0)
        labels[3] = 2
        scores[tuple(place)] = np.nan  # in X of row 3: sums of other columns stay as they are
        assert np.isnan(results(scores, labels, weights)[1][0])


def test_soft_labels_and_double_precision_go_in_double(always):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((50, 4)), np.full(50, 0.02)
    W = rng.standard_normal((5, 3))
    for dtype, labels in (("float64", rng.integers(0, 3, 50)), ("float32", np.eye(3)[[0] * 50])):
        design = as_design(X.astype(dtype))
        design.fold(W, rows.gradient, placed(design, [labels, weights]))
    design = as_design(X.astype("float32"))
    design.fold(W, rows.linearise, placed(design, [rng.integers(0, 3, 50), weights]))
    assert always == [False, False, False]


def test_requests_that_share_a_pass_get_what_each_gets_alone(always):
    rng = np.random.default_rng(0)
    design = as_design(rng.standard_normal((300, 20)).astype(np.float32))
    labels = design.place(rng.integers(0, 4, 300))
    requests = [
        Request(rng.standard_normal((21, 4)), rows.gradient, (labels, design.place(weights)))
        for weights in rng.dirichlet(np.ones(300), 3)
    ]
    for got, request in zip(design.fold_many(requests), requests, strict=True):
        alone = design.fold(request.W, request.kernel, request.rows)
        np.testing.assert_allclose(got.product, alone.product, rtol=20 * EPS, atol=EPS)
        np.testing.assert_allclose(got.sums.values, alone.sums.values, rtol=10 * EPS, atol=0)
    assert set(always) == {True}


def test_a_kernel_without_a_single_twin_is_run_in_double(always):
    kernel = replace(rows.gradient, single=None)
    design = as_design(np.ones((30, 3), np.float32))
    arrays = placed(design, [np.arange(30) % 3, np.full(30, 1 / 30)])
    design.fold(np.zeros((4, 3)), kernel, arrays)
    assert always == [False]


def test_scratch_has_a_name_for_every_row():
    assert single_rows.FACTOR == layout.SINGLE_ROOM - 1 < layout.SINGLE_TRUTH
    assert single_rows.REST == layout.SINGLE_WIDE - 1
