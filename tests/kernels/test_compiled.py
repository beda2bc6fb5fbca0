"""The compiled twins compute what the NumPy specification says."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import wrightomega

from admm_softmax import Problem, as_design
from admm_softmax.design import Task
from admm_softmax.kernels import choice, rows
from admm_softmax.kernels.compiled import exponential, gather, programs, thin, tiles, zstep

ADMM = {"rho": 0.03, "relaxation": 1.6}
KERNELS = {
    "predict": (rows.predict, ()),
    "hand_over": (rows.hand_over, ("state",)),
    "evaluate": (rows.evaluate, ("labels", "weights")),
    "gradient": (rows.gradient, ("labels", "weights")),
    "linearise": (rows.linearise, ("labels", "weights")),
    "hessian_product": (rows.hessian_product, ("state", "weights")),
    "weigh": (rows.weigh, ("weights",)),
    "start": (rows.start, ("labels", "weights")),
    "admm": (partial(rows.admm, **ADMM, dual_is_zero=False), ("labels", "weights", "state")),
    "admm, first": (partial(rows.admm, **ADMM, dual_is_zero=True), ("labels", "weights", "state")),
    "admm, no gradient": (
        partial(rows.admm, **ADMM, dual_is_zero=False, with_gradient=False),
        ("labels", "weights", "state"),
    ),
    "misfit": (partial(rows.misfit, rho=0.03, dual_is_zero=False), ("labels", "weights", "state")),
    "misfit, first": (
        partial(rows.misfit, rho=0.03, dual_is_zero=True),
        ("labels", "weights", "state"),
    ),
}


@pytest.fixture
def always(monkeypatch):
    """Take the compiled path for problems of any size."""
    monkeypatch.setattr(choice, "COMPILED_FROM_PRODUCTS", 0)


def inputs(names, n, K, labels="hard", seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.random(n)
    weights[1::7] = 0.0
    given = {
        "weights": weights / weights.sum(),
        "state": rng.standard_normal((n, K)),
        "labels": rng.integers(0, K, n) if labels == "hard" else rng.dirichlet(np.ones(K), n),
    }
    return [given[name] for name in names]


def assert_same(got, expected, **tolerance):
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 40),
    d=st.one_of(st.integers(1, 70), st.sampled_from([512, 1100])),
    K=st.integers(1, 17),
    dtype=st.sampled_from([np.float32, np.float64]),
    shift=st.integers(0, 20),
)
def test_thin_products(n, d, K, dtype, shift):
    rng = np.random.default_rng(n * d + K)
    memory = rng.standard_normal(n * d + shift).astype(dtype)
    X = memory[shift:].reshape(n, d)  # begins anywhere
    W, R = rng.standard_normal((d, K)).astype(dtype), np.zeros((K, 40), dtype)
    R[:, :n] = rng.standard_normal((K, n))
    lead = thin.lead_of(X)
    S, G = np.empty((K, 40)), thin.aligned(K, lead + d, dtype)
    thin.product(X, 0, n, lead, lead + d, thin.transposed(W, dtype, lead), S)
    thin.add_transpose_product(X, 0, n, lead, 0, lead + d, R, G)
    wide = X.astype(np.float64)
    eps = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(S[:, :n], (wide @ W).T, atol=eps * (abs(wide) @ abs(W)).max())
    bound = eps * (abs(R[:, :n]) @ abs(wide)).max()
    np.testing.assert_allclose(G[:, lead : lead + d], R[:, :n] @ wide, atol=bound)
    padding = np.delete(G, np.s_[lead : lead + d], axis=1)
    np.testing.assert_array_equal(padding, 0.0)
    assert G.ctypes.data % tiles.VECTOR_BYTES == 0


def test_rows_are_shifted_only_where_all_begin_alike():
    X = np.zeros((4, 24), np.float32)  # rows of 96 bytes: every other one is aligned
    assert thin.lead_of(X) == 0 or tiles.VECTOR_BYTES < 64
    Y = np.zeros((4, 32), np.float32)
    assert (Y.ctypes.data - 4 * thin.lead_of(Y)) % tiles.VECTOR_BYTES == 0


@settings(max_examples=300, deadline=None)
@given(st.floats(-700, 0))
def test_exponential(x):
    assert exponential.exp_of_nonpositive(x) == pytest.approx(np.exp(x), rel=5e-16)


def test_exponential_far_below_zero():
    assert 0 <= exponential.exp_of_nonpositive(-1e9) < 1e-300
    assert exponential.exp_of_nonpositive(0.0) == 1.0


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.floats(-700, 5), st.floats(-3, 3), st.floats(0, 1e9)))
def test_wright_omega(x):
    assert zstep.wright_omega(x) == pytest.approx(wrightomega(x), rel=4e-15)


@pytest.mark.parametrize("labels", ["hard", "soft"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("n", "K"), [(1, 2), (75, 7), (64, 40)])
def test_row_kernels(name, labels, n, K):
    kernel, names = KERNELS[name]
    rows_in = inputs(names, n, K, labels)
    scores = 3 * np.random.default_rng(1).standard_normal((n, 0 if name == "hand_over" else K))
    R, new_rows, sums = kernel(scores, *rows_in)
    R_got, new_rows_got, sums_got = programs.run(kernel, scores, *rows_in)
    assert (R is None) == (R_got is None)
    if R is not None:
        np.testing.assert_allclose(R_got, R, rtol=1e-9, atol=1e-13)
    assert_same(new_rows_got, new_rows, rtol=1e-7, atol=1e-9)
    if name.startswith("admm"):  # rounding may decide on one Newton step more
        np.testing.assert_allclose(np.delete(sums_got, 5), np.delete(sums, 5), rtol=1e-9)
        assert sums_got[5] == pytest.approx(sums[5], abs=1.0)
    else:
        np.testing.assert_allclose(sums_got, sums, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", ["float64", "float32", "fortran", "csr", "csr float32"])
def test_folds(form, name, intercept, always, monkeypatch):
    n, d, K = 333, 37, 6
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    X = X.astype(np.float32).astype(np.float64)
    make = {
        "float64": np.ascontiguousarray,
        "float32": lambda X: X.astype(np.float32),
        "fortran": np.asfortranarray,
        "csr": sp.csr_array,
        "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
    }[form]
    kernel, names = KERNELS[name]
    rows_in = inputs(names, n, K)
    W = rng.standard_normal((d + intercept, 0 if name == "hand_over" else K))
    W = W.astype(np.float32).astype(np.float64)
    design = as_design(make(X), intercept=intercept)
    got = design.fold(W, kernel, rows_in)
    assert design.reads == 1

    monkeypatch.setattr(choice, "COMPILED_FROM_PRODUCTS", np.inf)
    expected = as_design(X, intercept=intercept).fold(W, kernel, rows_in)
    tol = 1e-5 if "float32" in form else 1e-9
    np.testing.assert_allclose(got.product, expected.product, rtol=tol, atol=tol)
    assert_same(got.rows, expected.rows, rtol=tol, atol=100 * tol)
    keep = [i for i in range(len(expected.sums)) if not (name.startswith("admm") and i == 5)]
    np.testing.assert_allclose(got.sums[keep], expected.sums[keep], rtol=10 * tol, atol=tol)


@pytest.mark.parametrize("compiles", [True, False], ids=["compiled", "numpy"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", ["float64", "float32", "fortran", "csr"])
def test_tasks_that_share_a_read_get_what_each_gets_alone(form, name, compiles, monkeypatch):
    monkeypatch.setattr(choice, "COMPILED_FROM_PRODUCTS", 0 if compiles else np.inf)
    n, d, K = 211, 23, 4
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    kind = {"float32": lambda X: X.astype(np.float32), "fortran": np.asfortranarray}
    design = as_design({**kind, "csr": sp.csr_array}.get(form, np.asarray)(X))
    kernel, names = KERNELS[name]
    shared, others = inputs(names, n, K), inputs(names, n, K, seed=1)
    columns = 0 if name == "hand_over" else K
    tasks = []
    for i in range(5):
        settings = {**kernel.keywords, "rho": 0.01 * (i + 1)} if isinstance(kernel, partial) else {}
        own = partial(kernel.func, **settings) if settings else kernel
        # One's own weights and state for every other task, always the same labels.
        given = [b if i % 2 and name_ != "labels" else a
                 for name_, a, b in zip(names, shared, others, strict=True)]  # fmt: skip
        tasks.append(Task(rng.standard_normal((d + 1, columns)), own, tuple(given)))
    alone = [design.fold(*task) for task in tasks]
    design.reads = 0.0
    together = design.fold_together(tasks)
    assert design.reads == 1
    tol = 1e-6 if form == "float32" else 1e-12
    for got, expected in zip(together, alone, strict=True):
        np.testing.assert_allclose(got.product, expected.product, rtol=tol, atol=10 * tol)
        np.testing.assert_allclose(got.sums, expected.sums, rtol=tol, atol=tol)
        assert_same(got.rows, expected.rows, rtol=100 * tol, atol=100 * tol)


def test_the_same_bits_for_any_number_of_threads_and_on_the_second_pass(always):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 50)).astype(np.float32)
    W, labels = rng.standard_normal((51, 4)), rng.integers(0, 4, 3000)
    results = []
    for threads in (1, 2, 3, 3):
        design = as_design(X, n_threads=threads)
        for _ in range(2):
            fold = design.fold(W, rows.linearise, (labels, np.full(3000, 1 / 3000)))
            results.append((fold.product, *fold.rows, fold.sums))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_result_is_not_overwritten_by_the_next_pass(always):
    rng = np.random.default_rng(0)
    design = as_design(rng.standard_normal((200, 30)))
    labels, weights = rng.integers(0, 3, 200), np.full(200, 1 / 200)
    first = design.fold(np.zeros((31, 3)), rows.gradient, (labels, weights)).product
    kept = first.copy()
    design.fold(np.ones((31, 3)) * np.arange(3), rows.gradient, (labels, weights))
    np.testing.assert_array_equal(first, kept)


def test_float32_data_reach_a_gradient_of_1e_6(always):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 40)).astype(np.float32) + 3
    labels, weights = rng.integers(0, 5, 60_000), np.full(60_000, 1 / 60_000)
    W = 0.1 * rng.standard_normal((41, 5)).astype(np.float32).astype(np.float64)
    got = as_design(X).fold(W, rows.gradient, (labels, weights)).product
    exact = as_design(X.astype(np.float64)).fold(W, rows.gradient, (labels, weights)).product
    assert np.abs(got - exact).max() < 3e-7


def test_a_kernel_without_a_twin_runs_as_it_is(always):
    def kernel(scores):
        return np.tanh(scores), (), np.array([scores.sum()])

    X = np.random.default_rng(0).standard_normal((50, 4))
    W = np.ones((5, 3))
    for form in (X, sp.csr_array(X)):
        fold = as_design(form).fold(W, kernel)
        T = np.column_stack([X, np.ones(50)])
        np.testing.assert_allclose(fold.product, T.T @ np.tanh(T @ W))


def test_read_only_data(always):
    X = np.random.default_rng(0).standard_normal((50, 4))
    expected = as_design(X).fold(np.ones((5, 3)), rows.predict).rows[0]
    X.flags.writeable = False
    np.testing.assert_array_equal(
        as_design(X).fold(np.ones((5, 3)), rows.predict).rows[0], expected
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("K", [1, 8, 13, 20, 50])
def test_sparse_rows_times_a_thin_matrix(K, index, dtype):
    rng = np.random.default_rng(K)
    X = sp.random_array((30, 90), density=0.1, rng=rng, dtype=dtype, format="csr")
    M = rng.standard_normal((90, K)).astype(dtype)
    out = np.full((20, gather.padded_columns(M).shape[1]), np.nan)
    arrays = X.data, X.indices.astype(index), X.indptr.astype(index)
    gather.multiply(*arrays, 5, 20, gather.padded_columns(M, dtype), out)
    np.testing.assert_allclose(out[:, :K], (X.astype(np.float64) @ M)[5:25], rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(out[:, K:], 0.0)


def test_a_copy_of_a_used_design_has_buffers_of_its_own(always):
    memory = np.ones(50 * 64 + 16)
    offset = -memory.ctypes.data % 64 // 8
    A, nothing = np.ones((50, 3)), np.zeros((65, 0))
    for shift in (0, 3):  # the copy's rows begin elsewhere
        design = as_design(memory[offset + shift : offset + shift + 3200].reshape(50, 64))
        expected = design.fold(nothing, rows.hand_over, (A,)).product
        copy = pickle.loads(pickle.dumps(design))
        assert not copy.buffers
        np.testing.assert_array_equal(copy.fold(nothing, rows.hand_over, (A,)).product, expected)


def test_compiled_code_is_not_reached_by_wrong_shapes(always):
    X = np.ones((50, 64))
    design = as_design(X, intercept=False)
    with pytest.raises(ValueError, match=r"W must have 64 rows, got shape \(63, 3\)"):
        design.fold(np.zeros((63, 3)), rows.predict)
    with pytest.raises(ValueError, match="row arrays must have 50 rows, got 49"):
        design.fold(np.zeros((64, 3)), rows.weigh, (np.ones(49),))
    problem = Problem.of(X, np.arange(50) % 20)
    for method in (problem.evaluate, problem.at, problem.linearise):
        with pytest.raises(ValueError, match=r"W must have the shape \(65, 20\), got \(65, 2\)"):
            method(np.zeros((65, 2)))
