"""Products of rows with a thin matrix, dense and sparse, are those of NumPy and SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from admm_softmax.design import DenseDesign, blocks
from admm_softmax.kernels import rows, thresholds
from admm_softmax.kernels.compiled import folds, layout
from admm_softmax.kernels.compiled.entries import entry
from tests.problems import placed


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 40),
    d=st.one_of(st.integers(1, 70), st.sampled_from([100, 170, 256, 300, 512, 1100, 2100])),
    K=st.one_of(st.integers(1, 17), st.sampled_from([40, 65])),
    dtype=st.sampled_from([np.float32, np.float64]),
    shift=st.integers(0, 20),
    order=st.sampled_from("CF"),
    per_class=st.sampled_from([0, 1000]),
)
def test_thin_products(n, d, K, dtype, shift, order, per_class):
    rng = np.random.default_rng(n * d + K)
    memory = rng.standard_normal(n * d + shift).astype(dtype)
    X = memory[shift:].reshape((n, d), order=order)  # begins anywhere
    design = DenseDesign(X, intercept=False)
    W = rng.standard_normal((d, K)).astype(dtype)
    handle = placed(design, [rng.standard_normal((n, K)).astype(dtype).astype(float)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", 0)
        patch.setattr(thresholds, "COLUMNS_PER_CLASS", per_class)  # by tiles, or by panels
        S = design.fold(W, rows.predict).new_rows.held
        G = design.fold(np.zeros((d, 0)), rows.hand_over, handle).product
    wide, R = X.astype(np.float64), handle[0].held
    eps = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(S, wide @ W, atol=eps * (abs(wide) @ abs(W)).max())
    np.testing.assert_allclose(G, wide.T @ R, atol=eps * (abs(wide).T @ abs(R)).max())


def test_what_is_added_up_begins_where_cache_lines_do():
    for dtype in (np.float32, np.float64):
        G = layout.aligned(5, 70, dtype)
        assert G.ctypes.data % 64 == G.strides[0] % 64 == 0
        assert G.strides[0] // 64 % 2 == 1
        assert G.shape[1] >= layout.padded(70, G.itemsize) >= 70


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_designs_of_as_many_features_may_share_buffers(dtype, monkeypatch):
    # With and without an intercept, in either order, on both sides of where panels begin to pay.
    monkeypatch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", 0)
    rng = np.random.default_rng(0)
    for K, n_features in ((10, thresholds.COLUMNS_PER_CLASS * 10 + 1), (3, 400)):
        buffers, W = {}, rng.standard_normal((n_features, K)) / 20
        for order in "CFC":
            for intercept in (True, False):
                X = rng.standard_normal((300, n_features - intercept)).astype(dtype, order=order)
                sharing, alone = (DenseDesign(X, intercept=intercept) for _ in range(2))
                sharing.use_buffers(buffers)
                products = []
                for design in (sharing, alone):
                    arrays = placed(design, [np.arange(300) % K, np.full(300, 1 / 300)])
                    products.append(design.fold(W, rows.gradient, arrays).product)
                np.testing.assert_array_equal(*products)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows_per_group", [300, 3000], ids=["one part", "a total and a part"])
@pytest.mark.parametrize("intercept", [True, False])
def test_groups_are_added_up_and_leave_nothing_behind(
    rows_per_group, intercept, dtype, monkeypatch
):
    monkeypatch.setattr(thresholds, "COMPILED_FROM_PRODUCTS", 0)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64 * 70 * 8)
    monkeypatch.setattr(blocks, "MAX_GROUPS", 3)
    rng = np.random.default_rng(0)
    n, d, K = 3 * rows_per_group - 20, 70, 4
    X = rng.standard_normal((n, d)).astype(dtype)
    design = DenseDesign(X, intercept=intercept)
    W, codes = rng.standard_normal((design.n_features, K)) / 9, rng.integers(0, K, n)
    assert len(design._groups(W)) == 3
    assert (rows_per_group > folds.FLUSH) == (rows_per_group == 3000)
    handles = placed(design, [codes, np.full(n, 1 / n)])
    first, second = (design.fold(W, rows.gradient, handles).product for _ in range(2))
    np.testing.assert_array_equal(first, second)
    whole = np.column_stack([X, np.ones(n)])[:, : design.n_features].astype(np.float64)
    R = (softmax(whole @ W, axis=1) - np.eye(K)[codes]) / n
    tol = 4 * np.finfo(dtype).eps * (abs(whole).T @ abs(R)).max()
    np.testing.assert_allclose(first, whole.T @ R, rtol=0, atol=tol)
    ((parts, _, _),) = design.buffers.values()
    assert not parts.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 33, 64, 200])
def test_sums_in_panels_are_read_back_as_rows(d, dtype):
    width = layout.panel(np.dtype(dtype).itemsize)
    sums = layout.panels(3, d, dtype)
    assert sums.ctypes.data % 64 == 0
    for j in range(d):
        for k in range(3):  # the last panel comes first
            sums[len(sums) - (j // width + 1) * 3 + k, j % width] = 1000 * k + j
    np.testing.assert_array_equal(
        layout.from_panels(sums, 3, d), 1000 * np.arange(3)[:, None] + np.arange(d)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("K", [1, 8, 12, 13, 20, 24, 28, 32, 50, 70])
def test_sparse_rows_times_a_thin_matrix(K, index, dtype):
    rng = np.random.default_rng(K)
    X = sp.random_array((30, 90), density=0.1, rng=rng, dtype=dtype, format="csr")
    M = layout.padded_columns(rng.standard_normal((90, K)).astype(dtype), dtype)
    out = np.full((20, M.shape[1]), np.nan)
    arrays = X.data, X.indices.astype(index), X.indptr.astype(np.intp)
    kinds = map(np.dtype, (dtype, index, dtype))
    entry("admm_softmax.kernels.compiled.gather:multiply_rows", *kinds)(*arrays, 5, 20, M, out)
    expected = (X.astype(np.float64) @ M[:, :K])[5:25]
    np.testing.assert_allclose(out[:, :K], expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(out[:, K:], 0.0)
