"""float16 and bfloat16 in memory are used as they are stored."""

import tracemalloc

import numpy as np
import pytest
from llvmlite import binding

from admm_softmax import (
    LBFGS,
    Problem,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    as_design,
    run,
    softmax_path,
)
from admm_softmax.contracts import check_design
from admm_softmax.design import DenseDesign, Design, HalfDesign
from admm_softmax.kernels import rows
from admm_softmax.kernels.compiled import passes, target


def bits_of(X):
    """bfloat16 by dropping the lower half of a float32."""
    return (np.asarray(X, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def widened(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def of_halves(X, intercept):
    return HalfDesign(X.astype(np.float16), intercept=intercept)


def of_bfloats(X, intercept):
    return HalfDesign(bits_of(X), intercept=intercept, half="bfloat16")


def by_columns(X, intercept):
    return HalfDesign(np.asfortranarray(X.astype(np.float16)), intercept=intercept)


@pytest.mark.parametrize("factory", [of_halves, of_bfloats, by_columns])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_contract(factory, compiled, monkeypatch):
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: compiled)
    check_design(factory)


def embeddings(n=1500, d=300, K=4):
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, n)
    X = rng.standard_normal((n, d)) + 0.3 * rng.standard_normal((K, d))[y]
    return X.astype(np.float16), y


@pytest.mark.parametrize("d", [5, 100, 300, 1100, 9001])
@pytest.mark.parametrize("K", [4, 9, 37, 66], ids="{} classes".format)  # groups, and panels
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_a_compiled_pass_has_the_bits_of_the_widened_copy(d, K, kind, monkeypatch):
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: True)
    n = 701 if d < 9000 else 203
    X, y = embeddings(n, d, K)
    bits = bits_of(X)
    half = HalfDesign(X) if kind == "float16" else HalfDesign(bits, half=kind)
    full = DenseDesign(X.astype(np.float32) if kind == "float16" else widened(bits))
    W = np.random.default_rng(1).standard_normal((d + 1, K))
    folds = [
        design.fold(W, rows.gradient, (design.place(y), design.place(np.full(n, 1 / n))))
        for design in (half, full)
    ]
    np.testing.assert_array_equal(folds[0].product, folds[1].product)


def test_rows_out_of_order_are_read_where_they_lie(monkeypatch):
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: True)
    X, _ = embeddings(300, 40)
    W = np.random.default_rng(1).standard_normal((41, 3))
    for view in (X[::2], X[:, ::-1], X.T[:30].T):
        half, full = HalfDesign(view), DenseDesign(view.astype(np.float32))
        scores = [D.gather(D.fold(W[: D.n_features], rows.predict).new_rows) for D in (half, full)]
        np.testing.assert_allclose(scores[0], scores[1], rtol=1e-5, atol=1e-5)
        assert half.X.base is not None  # a view


@pytest.mark.parametrize("entry", ["float16", "bfloat16", "moved"])
def test_every_number_is_widened_exactly(entry):
    bits = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)
    exact = widened(bits) if entry == "bfloat16" else bits.view(np.float16).astype(np.float32)
    if entry == "moved":  # what CPUs without the instruction do
        found = np.empty(bits.size, np.float32)
        passes.widen_halves(bits.reshape(-1), found)
        found = found.reshape(bits.shape)
    else:
        # A product with the identity would spread NaN: take those out, and infinities too.
        finite = np.isfinite(exact)
        exact, bits = np.where(finite, exact, 0), np.where(finite, bits, 0).astype(np.uint16)
        design = HalfDesign(bits, intercept=False, half=entry)
        found = design.block(slice(0, 256))
    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize(
    ("triple", "cpu", "converts"),
    [
        ("x86_64-unknown-linux-gnu", "skylake", True),
        ("x86_64-unknown-linux-gnu", "nehalem", False),
        ("aarch64-unknown-linux-gnu", "generic", True),
        ("aarch64-unknown-linux-gnu", "neoverse-n1", True),
        ("arm64-apple-darwin", "apple-m1", True),
    ],
)
def test_the_conversion_is_known_for_any_cpu(triple, cpu, converts):
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        binding.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"this LLVM has no target {triple}")
    assert target.converts_halves(triple, cpu, "") is converts


def test_a_fit_is_that_of_the_widened_copy():
    X, y = embeddings()
    narrow = SoftmaxRegression(alpha=1e-2, tol=1e-5).fit(X, y)
    wide = SoftmaxRegression(alpha=1e-2, tol=1e-5).fit(X.astype(np.float32), y)
    assert narrow.coef_.dtype == np.float32
    np.testing.assert_allclose(narrow.coef_, wide.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(narrow.predict(X), wide.predict(X.astype(np.float32)))
    np.testing.assert_allclose(
        narrow.predict_proba(X), wide.predict_proba(X.astype(np.float32)), atol=1e-5
    )
    assert narrow.score(X, y) == wide.score(X.astype(np.float32), y)
    assert narrow.n_features_in_ == X.shape[1]
    with pytest.raises(ValueError, match="expecting 300 features"):
        narrow.predict(X[:, :10])


def test_paths_and_cross_validation_take_halves():
    X, y = embeddings(400, 20)
    alphas = [1e-1, 1e-2]
    paths = [softmax_path(A, y, alphas=alphas, tol=1e-6) for A in (X, X.astype(np.float32))]
    for narrow, wide in zip(paths[0].coefs, paths[1].coefs, strict=True):
        np.testing.assert_allclose(narrow, wide, rtol=1e-4, atol=1e-5)
    narrow, wide = (
        SoftmaxRegressionCV(alphas=alphas, cv=3).fit(A, y) for A in (X, X.astype(np.float32))
    )
    assert narrow.alpha_ == wide.alpha_


def test_a_pass_stores_no_widened_copy():
    X, y = embeddings(60_000, 300)
    problem = Problem.of(X, y)
    W = np.zeros(problem.shape)
    problem.at(W)  # compiled now
    tracemalloc.start()
    problem.at(W)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * X.nbytes


def test_standardised_and_sampled_halves():
    X, y = embeddings(400, 20)
    narrow, wide = (
        SoftmaxRegression(alpha=1e-2, standardize=True).fit(A, y) for A in (X, X.astype(np.float32))
    )
    np.testing.assert_allclose(narrow.coef_, wide.coef_, rtol=1e-4, atol=1e-5)
    results = [
        run(Problem.of(A, y, 1e-2), LBFGS(preconditioner="gram", subsample=100), tol=1e-4)
        for A in (X, X.astype(np.float32))
    ]
    np.testing.assert_allclose(results[0].W, results[1].W, rtol=1e-3, atol=1e-4)


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    X, y = embeddings(300, 10)
    X = X.astype(ml_dtypes.bfloat16)
    narrow = SoftmaxRegression(alpha=1e-2).fit(X, y)
    wide = SoftmaxRegression(alpha=1e-2).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(narrow.coef_, wide.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_must_be_finite(bad):
    X, y = embeddings(60, 5)
    X[3, 2] = bad
    for call in (lambda: as_design(X), lambda: SoftmaxRegression().fit(X, y)):
        with pytest.raises(ValueError, match="finite"):
            call()
    with pytest.raises(ValueError, match="finite"):
        as_design(X.astype(np.float32))


def test_what_is_not_half_precision_is_refused():
    with pytest.raises(TypeError, match="float16 or bfloat16, got type float32"):
        HalfDesign(np.ones((2, 2), np.float32))
    with pytest.raises(ValueError, match="two-dimensional, got 1"):
        HalfDesign(np.ones(2, np.float16))


class Exported:
    """An array of a library that speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **settings):
        return self.array.__dlpack__(**settings)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dlpack_shares_memory(dtype):
    X = np.arange(6.0).reshape(3, 2).astype(dtype)
    design = as_design(Exported(X))
    assert np.shares_memory(design.X, X)
    y = np.array([0, 1, 1])
    found = SoftmaxRegression(alpha=0.1).fit(Exported(X), Exported(y))
    np.testing.assert_array_equal(found.coef_, SoftmaxRegression(alpha=0.1).fit(X, y).coef_)
