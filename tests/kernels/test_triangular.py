"""Triangular solves against LAPACK's."""

import numpy as np
import pytest
from scipy.linalg import cho_solve

from admm_softmax._parallel import use_threads
from admm_softmax.kernels.compiled import triangular


def factor(d, dtype):
    rng = np.random.default_rng(d)
    A = rng.standard_normal((2 * d + 5, d))
    return np.linalg.cholesky(A.T @ A / len(A) + np.eye(d)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 17, 64, 200, 321])
@pytest.mark.parametrize("K", [1, 4, 10, 37])
def test_solves(d, K, dtype):
    L = factor(d, dtype)
    B = np.random.default_rng(K).standard_normal((d, K))
    expected = cho_solve((L.astype(np.float64), True), B)
    got = triangular.solve(L, B)
    np.testing.assert_allclose(got, expected, rtol=0, atol=100 * np.finfo(dtype).eps)


@pytest.mark.usefixtures("threads_at_any_size")
def test_what_is_above_the_diagonal_and_the_threads_do_not_matter():
    L, B = factor(150, np.float64), np.random.default_rng(0).standard_normal((150, 12))
    expected = triangular.solve(L, B)
    kept = B.copy()
    for threads in (1, 2, 3):
        dirty = L + np.triu(np.full_like(L, 7.0), 1)
        with use_threads(threads):
            np.testing.assert_array_equal(triangular.solve(dirty, B), expected)
    np.testing.assert_array_equal(B, kept)


def test_the_right_hand_side_is_left_alone():
    B = np.ones((4, 3))
    np.testing.assert_allclose(triangular.solve(2 * np.eye(4), B), 0.25)
    np.testing.assert_array_equal(B, 1.0)
