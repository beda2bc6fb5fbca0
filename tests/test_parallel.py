"""Threads: order, limits, and several callers at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from admm_softmax import SoftmaxRegression
from admm_softmax._parallel import blas_threads, cpu_count, ordered_map
from tests.problems import make


def blas_limits():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


def test_results_come_in_order():
    assert ordered_map(lambda i: i * i, list(range(50)), 4) == [i * i for i in range(50)]


def test_an_error_in_a_block_is_passed_on():
    def fail(i):
        raise ArithmeticError(f"block {i}")

    with pytest.raises(ArithmeticError, match="block 0"):
        ordered_map(fail, [0, 1], 2)
    assert ordered_map(abs, [-1, -2], 2) == [1, 2]


def test_the_limit_is_restored_also_after_concurrent_fits():
    X, y = make(3000, 8, 3)
    before = blas_limits()
    alone = SoftmaxRegression(0.1, n_threads=2).fit(X, y).coef_
    with ThreadPoolExecutor(4) as pool:
        fits = list(
            pool.map(lambda _: SoftmaxRegression(0.1, n_threads=2).fit(X, y).coef_, range(8))
        )
    assert blas_limits() == before
    for coef in fits:
        np.testing.assert_allclose(coef, alone, rtol=1e-9)


def test_nested_limits():
    before = blas_limits()
    with blas_threads(1):
        assert set(blas_limits()) == {1}
        with blas_threads(2):
            assert set(blas_limits()) == {2}
        assert set(blas_limits()) == {1}
    assert blas_limits() == before


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"])
def test_the_environment_can_lower_the_count(name, monkeypatch):
    monkeypatch.setenv(name, "1")
    assert cpu_count() == 1
    monkeypatch.setenv(name, "4096")
    assert cpu_count() < 4096
