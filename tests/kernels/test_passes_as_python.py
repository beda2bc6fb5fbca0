"""The source of compiled passes, run as Python: the same as the specification."""

from importlib import import_module

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax.design import as_design
from admm_softmax.kernels import rows, thresholds
from admm_softmax.kernels.compiled import folds, passes, programs, triangular
from admm_softmax.kernels.targets import kernel_of
from admm_softmax.kernels.zstep import zstep
from tests.kernels.as_python import as_python
from tests.problems import assert_close


@pytest.fixture
def python(monkeypatch):
    """Every function that Python calls is run as Python, whatever its size. What ran is noted."""
    ran = []

    def entry(place, *kind):
        module, _, maker = place.partition(":")
        ran.append(maker)
        kind = [str(one) if isinstance(one, np.dtype) else one for one in kind]
        return as_python(getattr(import_module(module), maker)(*kind))

    monkeypatch.setattr(passes, "entry", entry)
    monkeypatch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", 0)
    with np.errstate(all="ignore"):
        yield ran


def compared(X, kernel, arrays, K, tol, monkeypatch):
    """The fold as Python against the one in NumPy."""
    d = X.shape[1]
    W = np.random.default_rng(1).standard_normal((d + 1, K)) / np.sqrt(d)
    found = []
    for limit in (0, np.inf):
        monkeypatch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", limit)
        design = as_design(X)
        found.append(design.fold(W, kernel, tuple(design.place(array) for array in arrays)))
    got, expected = found
    if kernel.results:
        assert_close(got.product, expected.product, tol)
    if kernel.new_rows:
        assert_close(got.new_rows.held, expected.new_rows.held, tol)
    assert_close(np.array(got.sums.values), np.array(expected.sums.values), tol)


FORMS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "columns": np.asfortranarray,
    "float16": lambda X: X.astype(np.float16),
    "bfloat16": lambda X: X.astype(ml_dtypes.bfloat16),
    "float16, columns": lambda X: np.asfortranarray(X.astype(np.float16)),
    "csr": sp.csr_array,
}


@pytest.mark.parametrize("soft", [False, True], ids=["codes", "soft labels"])
@pytest.mark.parametrize("d", [9, 300], ids=["narrow", "wide"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("products")
def test_the_source_of_a_pass_is_its_fold(form, d, soft, python, monkeypatch):
    rng = np.random.default_rng(0)
    n, K = 150, 7
    X = FORMS[form](rng.standard_normal((n, d)))
    labels = rng.dirichlet(np.ones(K), n) if soft else rng.integers(0, K, n)
    tol = 1e-10 if X.dtype == np.float64 else 1e-5
    for kernel in (rows.linearise, rows.gradient):
        compared(X, kernel, (labels, rng.random(n)), K, tol, monkeypatch)
    assert python[0] == ("csr_pass" if form == "csr" else "dense_pass")


@pytest.mark.parametrize("form", ["float64", "float32", "columns", "float16", "bfloat16"])
def test_the_source_of_a_pass_with_many_classes(form, python, monkeypatch):
    rng = np.random.default_rng(0)
    n, K = 150, thresholds.MANY_CLASSES + 1
    X = FORMS[form](rng.standard_normal((n, 290)))
    tol = 1e-10 if X.dtype == np.float64 else 1e-5
    compared(X, rows.gradient, (rng.integers(0, K, n), rng.random(n)), K, tol, monkeypatch)


@pytest.mark.parametrize("kernel", ["predict", "evaluate", "hessian_product", "start"])
def test_passes_with_other_results_and_state(kernel, python, monkeypatch):
    rng = np.random.default_rng(0)
    n, K = 150, 4
    every = {"labels": rng.integers(0, K, n), "weights": rng.random(n)}
    every["state"] = rng.dirichlet(np.ones(K), n)
    kernel = getattr(rows, kernel)
    arrays = [every[name] for name in kernel.inputs]
    compared(rng.standard_normal((n, 11)), kernel, arrays, K, 1e-10, monkeypatch)


def test_sums_are_flushed_more_than_once(python, monkeypatch):
    rng = np.random.default_rng(0)
    n = folds.FLUSH + 300
    X, labels = rng.standard_normal((n, 3)), rng.integers(0, 2, n)
    compared(X, rows.gradient, (labels, rng.random(n)), 2, 1e-10, monkeypatch)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_source_of_many_targets_is_their_kernel(n_classes, python):
    rng = np.random.default_rng(0)
    n_targets, b = 3, 70
    width = n_targets * (1 if n_classes == 2 else n_classes)
    scores = 5 * rng.standard_normal((b, width))
    scores[0] = 0.0
    C = np.where(rng.random((b, width)) < 0.5, rng.random((b, width)), 0.0)
    C = C * rng.choice([-1, 1], C.shape) if n_classes == 2 else C
    kernel = kernel_of(n_targets, n_classes)
    R, _, sums = kernel(scores, C)
    R_source, _, sums_source = programs.run(kernel, scores, C)
    assert python == ["scores_pass"]
    assert_close(R_source, R, 1e-12)
    assert_close(np.array(sums_source), np.array(sums), 1e-12)


@pytest.mark.parametrize("soft", [False, True], ids=["codes", "soft labels"])
def test_the_source_of_the_z_step_alone(soft, python):
    rng = np.random.default_rng(0)
    V, K = 3 * rng.standard_normal((70, 4)), 4
    labels = rng.dirichlet(np.ones(K), 70) if soft else rng.integers(0, K, 70)
    Z, P, steps = programs.zstep(V, labels, 0.1, np.zeros((70, K)))
    assert python == ["rows_solver"]
    expected, P_expected, _ = zstep(V, labels, 0.1, np.zeros((70, K)))
    assert_close(Z, expected, 1e-10)
    assert_close(P, P_expected, 1e-10)
    assert steps.max() > 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("d", "K"), [(5, 2), (150, 7)])
def test_the_source_of_triangular_solves(d, K, dtype, python):
    rng = np.random.default_rng(0)
    L = np.tril(rng.standard_normal((d, d)) / d) + np.eye(d)
    B = rng.standard_normal((d, K))
    found = triangular.solve(L.astype(dtype), B)
    assert python == ["downward", "upward"]
    tol = 1e-10 if dtype == np.float64 else 1e-5
    assert_close(found, np.linalg.solve(L @ L.T, B), tol)


def test_the_source_of_tanh(python):
    x = np.linspace(-30, 30, 1204, dtype=np.float32).reshape(4, 301)
    found = x.copy()
    passes.tanh_in_place(found)
    assert python == ["tanh_of_array"]
    np.testing.assert_allclose(found, np.tanh(x), rtol=1e-6)


def test_the_source_that_widens_halves(python):
    every = np.arange(0, 2**16, 13, dtype=np.uint16)
    out = np.empty(len(every), np.float32)
    passes.widen_halves(every, out)
    assert python == ["widening"]
    np.testing.assert_array_equal(out, every.view(np.float16).astype(np.float32))
