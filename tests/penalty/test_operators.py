"""Operators: gradients and Laplacians by their definition, adjoints and null spaces."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from admm_softmax import operators

SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
BOUNDARIES = ["dirichlet", "neumann", "periodic"]


def all_operators(shape, spacing):
    n = int(np.prod(shape))
    yield operators.identity(n)
    yield operators.gradient(shape, spacing)
    for boundary in BOUNDARIES:
        yield operators.laplacian(shape, spacing, boundary)
    yield operators.per_channel(operators.laplacian(shape, spacing), 2)


@settings(max_examples=40, deadline=None)
@given(shape=SHAPES, spacing=st.floats(0.05, 3.0), seed=st.integers(0, 100))
def test_adjoint(shape, spacing, seed):
    rng = np.random.default_rng(seed)
    for L in all_operators(shape, spacing):
        assert sp.issparse(L)
        x, y = rng.standard_normal(L.shape[1]), rng.standard_normal(L.shape[0])
        left, right = (L @ x) @ y, x @ (L.T @ y)
        assert left == pytest.approx(right, rel=1e-10, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(shape=SHAPES, spacing=st.floats(0.1, 2.0))
def test_gradient_squared_is_minus_the_neumann_laplacian(shape, spacing):
    G = operators.gradient(shape, spacing)
    difference = G.T @ G + operators.laplacian(shape, spacing, "neumann")
    assert abs(difference).max() <= 1e-9 / spacing**2


@pytest.mark.parametrize("boundary", ["neumann", "periodic"])
@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 5)])
def test_constants_are_in_the_null_space(boundary, shape):
    L = operators.laplacian(shape, boundary=boundary)
    np.testing.assert_allclose(L @ np.ones(L.shape[1]), 0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_dirichlet_eigenvalues(n):
    h = 1 / (n + 1)
    k = np.arange(1, n + 1)
    expected = -4 / h**2 * np.sin(k * np.pi * h / 2) ** 2
    values = np.linalg.eigvalsh(operators.laplacian(n, h).toarray())
    np.testing.assert_allclose(np.sort(values), np.sort(expected), rtol=1e-10)


def test_laplacian_of_a_quadratic_is_its_second_derivative_inside():
    h = 0.1
    x, y, z = np.meshgrid(*(h * np.arange(6),) * 3, indexing="ij")
    L = operators.laplacian((6, 6, 6), h)
    value = (L @ (x**2 + 2 * y**2 + 3 * z**2).ravel()).reshape(6, 6, 6)
    np.testing.assert_allclose(value[1:-1, 1:-1, 1:-1], 12.0, rtol=1e-9)


def test_spacing_by_axis_and_c_order():
    G = operators.gradient((2, 3), (1.0, 0.5)).toarray()
    image = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(G @ image.ravel(), [3, 3, 3, 2, 2, 2, 2])


def test_per_channel_is_block_diagonal():
    L = operators.laplacian((3, 3))
    x = np.random.default_rng(0).standard_normal((4, 9))
    expected = np.stack([L @ channel for channel in x])
    np.testing.assert_allclose(operators.per_channel(L, 4) @ x.ravel(), expected.ravel())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: operators.laplacian((3, 3), boundary="open"), "boundary must be one of .* 'open'"),
        (lambda: operators.laplacian((2, 2, 2, 2)), "shape must have 1, 2 or 3 axes, got 4"),
        (lambda: operators.gradient((3, 0)), "shape must be a positive whole number, got 0"),
        (lambda: operators.gradient((3, 3), 0.0), "spacing must be positive, got 0.0"),
        (lambda: operators.gradient((3, 3), (1, 1, 1)), "spacing has 3 entries for 2 axes"),
        (lambda: operators.per_channel(np.eye(2), 0), "channels must be a positive"),
        (lambda: operators.identity(2.5), "n must be a positive whole number, got 2.5"),
    ],
)
def test_errors_name_the_rule_and_the_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
