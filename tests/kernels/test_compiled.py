"""The compiled twins compute what the NumPy specification says."""

import pickle
from threading import Event, Thread, current_thread

import numpy as np
import pytest
import scipy.sparse as sp
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from scipy.special import softmax

from admm_softmax._parallel import use_threads
from admm_softmax.design import DenseDesign, Request, as_design
from admm_softmax.kernels import rows, thresholds
from admm_softmax.kernels.compiled import jit, programs
from admm_softmax.kernels.row_kernel import RowKernel
from tests.problems import placed

ADMM = {"rho": 0.03, "relaxation": 1.6}
KERNELS = {
    "predict": rows.predict,
    "hand_over": rows.hand_over,
    "evaluate": rows.evaluate,
    "gradient": rows.gradient,
    "linearise": rows.linearise,
    "hessian_product": rows.hessian_product,
    "weigh": rows.weigh,
    "start": rows.start,
    "admm": rows.admm.bind(**ADMM, dual_is_zero=0.0),
    "admm, first": rows.admm.bind(**ADMM, dual_is_zero=1.0),
    "admm, no gradient": rows.admm_without_gradient.bind(**ADMM, dual_is_zero=0.0),
    "misfit": rows.misfit.bind(rho=0.03, dual_is_zero=0.0),
    "misfit, first": rows.misfit.bind(rho=0.03, dual_is_zero=1.0),
}


@pytest.fixture
def always(monkeypatch):
    """Take the compiled path for problems of any size."""
    monkeypatch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", 0)


def inputs(kernel, n, K, labels="hard", seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.random(n)
    weights[1::7] = 0.0
    given = {
        "weights": weights / weights.sum(),
        "state": rng.standard_normal((n, K)),
        "labels": rng.integers(0, K, n) if labels == "hard" else rng.dirichlet(np.ones(K), n),
    }
    return [given[name] for name in kernel.inputs]


def assert_same_fold(got, expected, tol, name):
    np.testing.assert_allclose(got.product, expected.product, rtol=tol, atol=tol)
    if expected.rows is not None:
        got_rows, rows_ = got.rows.held, expected.rows.held
        np.testing.assert_allclose(got_rows, rows_, rtol=100 * tol, atol=100 * tol)
    assert_same_sums(got.sums.values, expected.sums.values, 10 * tol, name)


def assert_same_sums(got, expected, tol, name):
    # Rounding may decide on one Newton step more.
    keep = [i for i in range(len(expected)) if not (name.startswith("admm") and i == 5)]
    np.testing.assert_allclose(got[keep], expected[keep], rtol=tol, atol=tol / 10)
    if name.startswith("admm"):
        assert got[5] == pytest.approx(expected[5], abs=1.0)


@pytest.mark.parametrize("labels", ["hard", "soft"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("n", "K"), [(1, 2), (75, 7), (64, 40), (33, 700)])
def test_row_kernels(name, labels, n, K):
    kernel = KERNELS[name]
    rows_in = inputs(kernel, n, K, labels)
    scores = 3 * np.random.default_rng(1).standard_normal((n, 0 if name == "hand_over" else K))
    R, new_rows, sums = kernel(scores, *rows_in)
    R_got, new_rows_got, sums_got = programs.run(kernel, scores, *rows_in)
    assert (R is None) == (R_got is None)
    assert (new_rows is None) == (new_rows_got is None)
    if R is not None:
        np.testing.assert_allclose(R_got, R, rtol=1e-9, atol=1e-13)
    if new_rows is not None:
        np.testing.assert_allclose(new_rows_got, new_rows, rtol=1e-7, atol=1e-9)
    tol = 1e-9 if name.startswith("admm") else 1e-12
    assert_same_sums(sums_got, sums, tol, name)


def test_ties_and_nan_are_those_of_the_specification():
    scores = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0], [3.0, 3.0, 3.0]])
    weights = np.full(3, 1 / 3)
    for labels in ([0, 1, 0], [1, 2, 1], [2, 2, 2]):
        expected = rows.evaluate(scores, np.array(labels), weights)[2]
        np.testing.assert_allclose(
            programs.run(rows.evaluate, scores, np.array(labels), weights)[2], expected
        )
    scores[1, 1] = np.nan
    R, _, sums = programs.run(rows.gradient, scores, np.array([0, 1, 0]), weights)
    assert np.isnan(R[1]).all()
    assert np.isfinite(R[[0, 2]]).all()
    assert np.isnan(sums[0])


FORMS = {
    "float64": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sp.csr_array,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("products")
def test_folds(form, name, intercept, always, monkeypatch):
    n, d, K = 333, 37, 6
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    X = X.astype(np.float32).astype(np.float64)
    kernel = KERNELS[name]
    W = rng.standard_normal((d + intercept, 0 if name == "hand_over" else K))
    W = W.astype(np.float32).astype(np.float64)
    design = as_design(FORMS[form](X), intercept=intercept)
    arrays = inputs(kernel, n, K)
    got = design.fold(W, kernel, placed(design, arrays))
    assert design.reads == 1

    monkeypatch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", np.inf)
    design = as_design(X, intercept=intercept)
    expected = design.fold(W, kernel, placed(design, arrays))
    assert_same_fold(got, expected, 1e-5 if "float32" in form else 1e-9, name)


@pytest.mark.parametrize("compiles", [True, False], ids=["compiled", "numpy"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", ["float64", "float32", "fortran", "csr"])
@pytest.mark.parametrize("K", [4, 20], ids=["few columns", "many columns together"])
def test_requests_that_share_a_read_get_what_each_gets_alone(K, form, name, compiles, monkeypatch):
    monkeypatch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", 0 if compiles else np.inf)
    monkeypatch.setattr(thresholds, "COLUMNS_PER_CLASS", 0)
    n, d = 211, 23
    assert (5 * K >= thresholds.MANY_CLASSES) == (K == 20)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    design = as_design(FORMS[form](X))
    kernel = KERNELS[name]
    shared = placed(design, inputs(kernel, n, K))
    others = placed(design, inputs(kernel, n, K, seed=1))
    columns = 0 if name == "hand_over" else K
    requests = []
    for i in range(5):
        values = dict(zip(kernel.settings, kernel.values, strict=True))
        own = kernel.bind(**{**values, "rho": 0.01 * (i + 1)}) if "rho" in values else kernel
        # One's own weights and state for every other request, always the same labels.
        given = [b if i % 2 and name_ != "labels" else a
                 for name_, a, b in zip(kernel.inputs, shared, others, strict=True)]  # fmt: skip
        requests.append(Request(rng.standard_normal((d + 1, columns)), own, tuple(given)))
    alone = [design.fold(*request[:3]) for request in requests]
    before = design.reads
    together = design.fold_many(requests)
    assert design.reads == before + 1
    for got, expected in zip(together, alone, strict=True):
        assert_same_fold(got, expected, 1e-5 if form == "float32" else 1e-11, name)


@pytest.mark.usefixtures("threads_at_any_size")
def test_the_same_bits_for_any_number_of_threads_and_on_the_second_pass(always):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 50)).astype(np.float32)
    W, labels = rng.standard_normal((51, 4)), rng.integers(0, 4, 3000)
    results = []
    for threads in (1, 2, 3, 3):
        design = as_design(X)
        handles = placed(design, [labels, np.full(3000, 1 / 3000)])
        for _ in range(2):
            with use_threads(threads):
                fold = design.fold(W, rows.linearise, handles)
            results.append((fold.product, fold.new_rows.held, fold.sums.values))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [37, 1100, 3000])
def test_the_same_bits_wherever_the_rows_begin(d, dtype, always):
    rng = np.random.default_rng(0)
    memory = np.zeros(100 * d + 32, dtype)
    entries = rng.standard_normal((100, d)).astype(dtype)
    W, labels = rng.standard_normal((d + 1, 7)), rng.integers(0, 7, 100)
    results = []
    for shift in (0, 1, 4, 7, 16):
        X = memory[shift : shift + 100 * d].reshape(100, d)
        X[:] = entries
        design = as_design(X)
        fold = design.fold(W, rows.linearise, placed(design, [labels, np.full(100, 0.01)]))
        results.append((fold.product, fold.new_rows.held, fold.sums.values))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_result_is_not_overwritten_by_the_next_pass(always):
    rng = np.random.default_rng(0)
    design = as_design(rng.standard_normal((200, 30)))
    handles = placed(design, [rng.integers(0, 3, 200), np.full(200, 1 / 200)])
    first = design.fold(np.zeros((31, 3)), rows.gradient, handles).product
    kept = first.copy()
    design.fold(np.ones((31, 3)) * np.arange(3), rows.gradient, handles)
    np.testing.assert_array_equal(first, kept)


def test_float32_data_reach_a_gradient_of_1e_6(always):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 40)).astype(np.float32) + 3
    arrays = rng.integers(0, 5, 60_000), np.full(60_000, 1 / 60_000)
    W = 0.1 * rng.standard_normal((41, 5)).astype(np.float32).astype(np.float64)
    got, exact = (
        design.fold(W, rows.gradient, placed(design, arrays)).product
        for design in (as_design(X), as_design(X.astype(np.float64)))
    )
    assert np.abs(got - exact).max() < 3e-7


def test_a_kernel_without_a_twin_runs_as_it_is(always):
    kernel = RowKernel(
        "tanh", lambda scores: (np.tanh(scores), None, np.array([scores.sum()])), (), 1, 0, ("s",)
    )
    X = np.random.default_rng(0).standard_normal((50, 4))
    W = np.ones((5, 3))
    for form in (X, sp.csr_array(X)):
        fold = as_design(form).fold(W, kernel)
        T = np.column_stack([X, np.ones(50)])
        np.testing.assert_allclose(fold.product, T.T @ np.tanh(T @ W))


def test_one_compiled_pass_serves_all_kinds_of_arrays(always):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 40))
    frozen = X.copy()
    codes, weights = rng.integers(0, 3, 50), np.full(50, 0.02)
    soft = np.eye(3)[codes]
    for array in (frozen, codes, weights, soft):
        array.flags.writeable = False
    W = rng.standard_normal((41, 3))
    results = []
    for form in (X, frozen, np.asfortranarray(X), X[:, :]):
        for labels in (codes, codes.astype(np.int32), soft, np.asfortranarray(soft)):
            design = as_design(form)
            fold = design.fold(W, rows.gradient, placed(design, [labels, weights]))
            results.append(fold.product)
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-13, atol=1e-15)

    csr = sp.csr_array(X)
    wide = sp.csr_array((csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)))
    for array in (wide.data, wide.indices, wide.indptr):
        array.flags.writeable = False
    for form in (csr, wide):
        design = as_design(form)
        fold = design.fold(W, rows.gradient, placed(design, [codes, weights]))
        np.testing.assert_allclose(fold.product, results[0], rtol=1e-12, atol=1e-14)
        assert design.X.indices.dtype == np.int32


def test_a_copy_of_a_used_design_has_buffers_of_its_own(always):
    design = as_design(np.random.default_rng(0).standard_normal((50, 64)))
    A, nothing = np.ones((50, 3)), np.zeros((65, 0))
    expected = design.fold(nothing, rows.hand_over, placed(design, [A])).product
    copy = pickle.loads(pickle.dumps(design))
    assert not copy.buffers
    got = copy.fold(nothing, rows.hand_over, placed(copy, [A])).product
    np.testing.assert_array_equal(got, expected)


def test_compiled_code_is_not_reached_by_wrong_shapes(always):
    design = as_design(np.ones((50, 64)), intercept=False)
    with pytest.raises(ValueError, match=r"W must have 64 rows, got shape \(63, 3\)"):
        design.fold(np.zeros((63, 3)), rows.predict)
    other = as_design(np.ones((49, 64)))
    with pytest.raises(ValueError, match="weights must have 50 rows, got 49"):
        design.fold(np.zeros((64, 3)), rows.weigh, placed(other, [np.ones(49)]))


def test_labels_of_either_kind_take_turns_on_one_design():
    rng = np.random.default_rng(0)
    n, d, K = 150, 20, 7
    X, W = rng.standard_normal((n, d)), rng.standard_normal((d + 1, K))
    codes = rng.integers(0, K, n)
    soft = rng.dirichlet(np.ones(K), n)
    shared = DenseDesign(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", 0)
        for labels in (codes, soft, codes[::-1].copy(), soft, codes):
            handles = placed(shared, [labels, np.ones(n)])
            got = shared.fold(W, rows.gradient, handles)
            alone = DenseDesign(X)
            expected = alone.fold(W, rows.gradient, placed(alone, [labels, np.ones(n)]))
            np.testing.assert_array_equal(got.product, expected.product)
            np.testing.assert_array_equal(got.sums.values, expected.sums.values)
            P = softmax(X @ W[:-1] + W[-1], axis=1)
            C = soft if labels.ndim == 2 else np.eye(K)[labels]
            np.testing.assert_allclose(got.product[:-1], X.T @ (P - C), atol=1e-11)


def tripled(x):
    return 3 * x


def test_threads_that_compile_at_once_do_not_wait_for_each_other(monkeypatch):
    inner = jit.separate(types.float64(types.float64), name="inner")(tripled)
    outer = jit.separate(types.float64(types.float64), name="outer")(tripled)
    is_loading = Event()

    class NotedLock:
        """Numba's lock, and a note that the other thread wants it."""

        def __enter__(self):
            if current_thread() is other:
                is_loading.set()
            global_compiler_lock.acquire()

        def __exit__(self, *error):
            global_compiler_lock.release()

    def load_while_numba_compiles():
        with global_compiler_lock:
            other.start()
            # Whoever loads takes no lock of its own before Numba's, for which it waits now.
            if is_loading.wait(60):
                jit.load(inner)

    monkeypatch.setattr(jit, "global_compiler_lock", NotedLock())
    other = Thread(target=jit.load, args=(outer,), daemon=True)
    first = Thread(target=load_while_numba_compiles, daemon=True)
    first.start()
    first.join(120)
    other.join(60)
    assert is_loading.is_set()
    assert not first.is_alive()
    assert not other.is_alive()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("K", [3, 4, 20])
@pytest.mark.parametrize("factor", [0.0, 1.0])
def test_sparse_passes_take_w_of_any_kind(factor, K, intercept, monkeypatch):
    """Zero, for which X W is not computed; C-ordered, which is not copied; and of other orders."""
    X = sp.random_array((50, 90), density=0.1, rng=0, dtype=np.float32, format="csr")
    design = as_design(X, intercept=intercept)
    W = np.random.default_rng(0).standard_normal((design.n_features, K)).astype(np.float32)
    W[:90] *= factor
    given = placed(design, inputs(rows.gradient, 50, K))
    expected = design.fold(W, rows.gradient, given)
    monkeypatch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", 0)
    read_only = W.copy()
    read_only.flags.writeable = False
    for each in (W, np.asfortranarray(W), W.astype(np.float64), read_only):
        before = each.copy()
        got = design.fold(each, rows.gradient, given)
        assert_same_fold(got, expected, 1e-5, "gradient")
        np.testing.assert_array_equal(each, before)
