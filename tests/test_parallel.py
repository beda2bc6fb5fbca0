"""Threads: order, limits, and several callers at once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier, get_ident

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info

from admm_softmax import (
    ADMM,
    LBFGS,
    SGD,
    NewtonCG,
    Problem,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    _parallel,
    run,
)
from admm_softmax._parallel import (
    WORTH_THREADS,
    blas_threads,
    cpu_count,
    ordered_map,
    thread_count,
    use_threads,
)
from admm_softmax.solvers.base import measured_at
from admm_softmax.solvers.least_squares import Cholesky
from admm_softmax.solvers.row_space import RowSpace
from tests.problems import assert_close, make

#: Threads that wait for each other give up after so many seconds: then one of them has failed.
PATIENCE = 60
CALLERS = 8


def blas_limits():
    """The threads of NumPy's and SciPy's BLAS that can be limited: none with Apple's Accelerate.

    Other packages bring a BLAS of their own, some of them with one thread, whatever is asked for.
    """
    ours = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return [lib["num_threads"] for lib in ours if {"numpy.libs", "scipy.libs"} & parts_of(lib)]


def parts_of(lib):
    return set(Path(lib["filepath"]).parts)


def at_once(function, items):
    """Call the function on all items, each in a thread, and all of them at the same time."""
    ready = Barrier(len(items), timeout=PATIENCE)

    def call(item):
        ready.wait()
        return function(item)

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(call, items))


def test_results_come_in_order():
    assert ordered_map(lambda i: i * i, list(range(50)), 4) == [i * i for i in range(50)]


def test_an_error_in_a_block_is_passed_on():
    def fail(i):
        raise ArithmeticError(f"block {i}")

    with pytest.raises(ArithmeticError, match="block 0"):
        ordered_map(fail, [0, 1], 2)
    assert ordered_map(abs, [-1, -2], 2) == [1, 2]


def test_the_error_of_the_first_block_is_the_one_passed_on():
    def fail(i):
        if i > 2:
            raise ArithmeticError(f"block {i}")
        return i

    with pytest.raises(ArithmeticError, match="block 3"):
        ordered_map(fail, list(range(20)), 4)


def test_the_caller_works_as_well():
    both = Barrier(2, timeout=PATIENCE)

    def meet(_):
        both.wait()  # until another thread works on another item
        return get_ident()

    assert get_ident() in ordered_map(meet, [0, 1], 2)


def test_few_operations_stay_on_the_thread_of_the_caller():
    items = list(range(8))
    with use_threads(4):
        few = ordered_map(lambda _: get_ident(), items, operations=WORTH_THREADS / 2)
    assert {*few} == {get_ident()}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_small_passes_are_not_worth_threads(form):
    X, y = make(3000, 20, 3)
    problem = Problem.of(form(X), y, 1e-3)
    assert problem.design._operations(np.zeros(problem.shape)) < WORTH_THREADS


def test_a_map_within_a_map_ends():
    def inside(i):
        return sum(ordered_map(lambda j: i * j, list(range(5)), 2))

    assert ordered_map(inside, list(range(8)), 2) == [10 * i for i in range(8)]


# ---- how many threads ----


def test_threads_are_a_setting_of_what_runs_within():
    assert thread_count() == cpu_count()
    with use_threads(3):
        assert thread_count() == 3
        with use_threads(None):
            assert thread_count() == 3
        with use_threads(1):
            assert thread_count() == 1
        assert thread_count() == 3
    assert thread_count() == cpu_count()


def test_each_thread_has_its_own_setting():
    both = Barrier(2, timeout=PATIENCE)

    def count(n_threads):
        with use_threads(n_threads):
            both.wait()
            return thread_count()

    assert at_once(count, [2, 5]) == [2, 5]


@dataclass(frozen=True)
class Curious:
    """A solver that writes down how many threads it may use."""

    seen: list

    def iterates(self, problem, W0):
        while True:
            self.seen.append(thread_count())
            yield measured_at(problem.at(np.zeros(problem.shape)))


@pytest.mark.parametrize(("asked", "expected"), [(3, 3), (1, 1), (None, None)])
def test_a_run_has_the_threads_it_was_given(asked, expected):
    X, labels = make(60, 5, 3)
    problem, seen = Problem.of(X, labels, 0.1), []
    run(problem, Curious(seen), tol=0.0, max_iter=2, n_threads=asked)
    assert seen == [expected or cpu_count()] * 3
    with use_threads(4):
        run(problem, Curious(seen), tol=0.0, max_iter=1, n_threads=asked)
    assert seen[3:] == [expected or 4] * 2
    assert thread_count() == cpu_count()


def test_passes_and_factorisations_ask_for_the_threads_of_the_run(monkeypatch):
    X, labels = make(700, 6, 3)
    monkeypatch.setattr("admm_softmax.design.dense.DenseDesign.block_rows", lambda self: 50)
    pools, limits = [], []
    own_pool, own_enter = _parallel._pool, _parallel._limit.enter

    def pool(n_threads):
        pools.append(n_threads)
        return own_pool(n_threads)

    def enter(block, n_threads):
        limits.append(n_threads)
        own_enter(block, n_threads)

    monkeypatch.setattr(_parallel, "_pool", pool)
    monkeypatch.setattr(_parallel._limit, "enter", enter)
    monkeypatch.setattr(_parallel, "WORTH_BLAS_THREADS", 0.0)
    monkeypatch.setattr(_parallel, "WORTH_THREADS", 0.0)
    run(Problem.of(X, labels, 0.1), ADMM(rho=0.1), tol=0.0, max_iter=2, n_threads=3)
    assert set(pools) == {3}  # passes
    assert set(limits) == {1, 3}  # around passes, and in the Gram matrix and its factor
    del pools[:], limits[:]
    run(Problem.of(X, labels, 0.1), ADMM(rho=0.1), tol=0.0, max_iter=2, n_threads=1)
    assert pools == []
    assert set(limits) == {1}


@pytest.mark.parametrize("threads", [0, -1])
def test_bad_thread_counts_are_named(threads):
    message = f"n_threads must be at least 1 or None, got {threads}"
    with pytest.raises(ValueError, match=message), use_threads(threads):
        pass
    X, labels = make(60, 5, 3)
    with pytest.raises(ValueError, match=message):
        run(Problem.of(X, labels, 0.1), ADMM(), n_threads=threads)
    assert thread_count() == cpu_count()


def test_a_thread_count_of_the_wrong_type_is_named():
    message = r"n_threads must be at least 1 or None, got 1\.5"
    with pytest.raises(TypeError, match=message), use_threads(1.5):
        pass


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"])
def test_the_environment_can_lower_the_count(name, monkeypatch):
    monkeypatch.setenv(name, "1")
    assert cpu_count() == 1
    monkeypatch.setenv(name, "1000000")
    assert cpu_count() < 1_000_000


# ---- limits of BLAS ----


def test_the_limit_is_restored_also_after_concurrent_fits():
    X, y = make(3000, 8, 3)
    before = blas_limits()

    def fit(_):
        return SoftmaxRegression(0.1, tol=1e-9, n_threads=2).fit(X, y).coef_

    alone = fit(0)
    fits = at_once(fit, range(4))
    assert blas_limits() == before
    for coef in fits:
        assert_close(coef, alone, 1e-6)


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
            assert set(pool.submit(_limit_of, 2).result()) <= {2}
            assert set(blas_limits()) <= {1}
    assert blas_limits() == before


def _limit_of(n_threads):
    with blas_threads(n_threads):
        return blas_limits()


def test_nested_limits():
    before = blas_limits()
    with blas_threads(1):
        assert set(blas_limits()) <= {1}
        with blas_threads(2):
            assert set(blas_limits()) <= {2}
        assert set(blas_limits()) <= {1}
    assert blas_limits() == before


# ---- one problem, several callers ----


@dataclass(frozen=True)
class Meeting:
    """A W-step by Cholesky whose users wait for each other between factorising and solving.

    If they shared a factor, all of them would solve with the one made last.
    """

    barrier: Barrier

    def prepare(self, problem):
        step, barrier = Cholesky("double").prepare(problem), self.barrier
        own = step.solve

        def solve(M, start):
            barrier.wait()
            return own(M, start)

        step.solve = solve
        return step


RHOS = np.logspace(-3, 1, CALLERS).tolist()
#: One thread each: how BLAS cuts a product up among threads decides its last bits.
SHORT = {"tol": 0.0, "max_iter": 6, "n_threads": 1}


@pytest.mark.parametrize("meet", [False, True], ids=["freely", "meeting at every W-step"])
def test_runs_of_several_threads_on_one_problem_are_the_runs_alone(meet):
    X, labels = make(300, 12, 4)
    alone = [
        run(Problem.of(X, labels, 0.02), ADMM(rho, least_squares=Cholesky("double")), **SHORT)
        for rho in RHOS
    ]
    problem = Problem.of(X, labels, 0.02)
    step = Meeting(Barrier(CALLERS, timeout=PATIENCE)) if meet else Cholesky("double")
    together = at_once(lambda rho: run(problem, ADMM(rho, least_squares=step), **SHORT), RHOS)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(other.W, one.W)
        np.testing.assert_array_equal(other.history["objective"], one.history["objective"])
    # The Gram matrix was made once, by one of them, and each has one pass per iteration; that
    # over the start is not theirs.
    passes = sorted(result.iterate.passes for result in together)
    assert passes == [6.0] * (CALLERS - 1) + [7.0]
    assert problem.design.reads == 7 * CALLERS + 1


SOLVERS = {
    "admm": ADMM(),
    "lbfgs": LBFGS(20, "gram"),
    "newton": NewtonCG(preconditioner="gram"),
    "sgd": SGD(batch_size=30),
    "chain": ADMM(rho=0.1).then(LBFGS(20, "gram"), after=3),
    "row space": RowSpace(LBFGS(20, "gram")),
    "jacobi": LBFGS(20, "jacobi"),
    "plain": LBFGS(),
}


@pytest.mark.parametrize("shape", [(150, 8), (40, 90)], ids=["tall", "wide"])
def test_different_solvers_on_one_problem_do_not_disturb_each_other(shape):
    X, labels = make(*shape, 3)
    solvers = list(SOLVERS.values())
    # What is prepared may come from whoever asks first, so all find the same.
    problem, other = Problem.of(X, labels, 0.02), Problem.of(X, labels, 0.02)
    for prepared in (problem, other):
        prepared.gram()
        prepared.column_squares()
    alone = [run(other, solver, **SHORT) for solver in solvers]
    together = at_once(lambda solver: run(problem, solver, **SHORT), solvers)
    for name, one, result in zip(SOLVERS, alone, together, strict=True):
        np.testing.assert_array_equal(result.W, one.W, err_msg=name)


def test_what_is_prepared_is_made_once_for_all_threads():
    X, labels = make(300, 12, 4)
    problem = Problem.of(X, labels, 0.02)
    found = at_once(lambda _: (problem.gram(), problem.column_squares()), range(CALLERS))
    assert len({id(gram) for gram, _ in found}) == 1
    assert len({id(squares) for _, squares in found}) == 1
    assert problem.design.reads == 1


def test_compiled_passes_of_several_threads_do_not_disturb_each_other():
    X, labels = make(30_000, 12, 10)
    problem = Problem.of(X, labels, 0.02)
    assert problem.design.compiles(10)
    starts = np.random.default_rng(0).standard_normal((CALLERS, *problem.shape))
    alone = [problem.at(W) for W in starts]
    for one, other in zip(alone, at_once(problem.at, list(starts)), strict=True):
        np.testing.assert_array_equal(other.gradient, one.gradient)
        assert other.objective == one.objective
    assert problem.design.reads == 2 * CALLERS
