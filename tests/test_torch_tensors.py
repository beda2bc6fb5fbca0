"""Torch tensors in this machine's memory go in as they are."""

import numpy as np
import pytest

from admm_softmax import SoftmaxRegression, as_design

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def rows_of(dtype, n=300, d=12):
    made = torch.Generator().manual_seed(0)
    return torch.randn(n, d, generator=made).to(dtype), torch.arange(n) % 3


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_tensor_is_not_copied(dtype):
    X, _ = rows_of(getattr(torch, dtype))
    design = as_design(X)
    assert design.X.ctypes.data == X.data_ptr()
    assert design.X.itemsize == X.element_size()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_fit_is_that_of_the_array(dtype):
    X, y = rows_of(getattr(torch, dtype))
    plain = X.double().numpy() if dtype == "float64" else X.float().numpy()
    found = SoftmaxRegression(alpha=1e-2).fit(X, y)
    expected = SoftmaxRegression(alpha=1e-2).fit(plain, y.numpy())
    assert found.coef_.dtype == plain.dtype
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found.predict(X), expected.predict(plain))
    assert found.score(X, y) == expected.score(plain, y.numpy())


def test_a_tensor_with_a_gradient_and_one_out_of_order():
    X, y = rows_of(torch.float32)
    leaf = X.clone().requires_grad_()
    found, turned = (SoftmaxRegression(alpha=1e-2).fit(A, y) for A in (leaf, X.T.contiguous().T))
    np.testing.assert_allclose(found.coef_, turned.coef_, rtol=1e-4, atol=1e-5)


def test_tensors_that_nothing_computes_with_are_refused():
    X, y = rows_of(torch.float32)
    with pytest.raises(TypeError, match=r"on one of the devices .* got one on meta"):
        SoftmaxRegression().fit(X.to("meta"), y)
    with pytest.raises(TypeError, match="dense, got the layout"):
        as_design(X.to_sparse())
