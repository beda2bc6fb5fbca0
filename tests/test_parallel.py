"""Threads: order, limits, and several callers at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV
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


def test_the_limit_is_restored_after_fits_that_take_turns():
    X, y = make(3000, 20, 3)
    before = blas_limits()
    for _ in range(2):
        SoftmaxRegressionCV([1.0, 0.1]).fit(X, y)
        assert blas_limits() == before


def test_any_thread_may_set_limits():
    before = blas_limits()

    def turns(_):
        for _ in range(100):
            with blas_threads(1):
                pass

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(turns, range(4)))
        assert blas_limits() == before
        with blas_threads(1):
            assert set(pool.submit(_limit_of, 2).result()) == {2}
            assert set(blas_limits()) == {1}
    assert blas_limits() == before


def _limit_of(n_threads):
    with blas_threads(n_threads):
        return blas_limits()


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
