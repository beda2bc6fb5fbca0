"""Jobs by turns: what they ask for is answered together, and they do as they would alone."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from admm_softmax import ADMM, LBFGS, NewtonCG, Problem, ProximalLBFGS, penalties, run
from admm_softmax._parallel import thread_count, use_threads
from admm_softmax.prepared import Slot
from admm_softmax.solvers import working_set
from admm_softmax.solvers.scheduler import Scheduler
from tests.problems import assert_close, make


class Counter:
    """Answers by adding one, and keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, requests):
        self.asked.append(list(requests))
        return [request + 1 for request in requests]


def test_requests_are_answered_together_and_in_order():
    scheduler, answer = Scheduler(), Counter()

    def job(i):
        return [scheduler.ask(answer, 10 * i + step) for step in range(3 - i)]

    assert scheduler.run([lambda i=i: job(i) for i in range(3)]) == [[1, 2, 3], [11, 12], [21]]
    assert answer.asked == [[0, 10, 20], [1, 11], [2]]


def test_jobs_that_fell_out_of_step_come_back_into_it():
    scheduler, read, solve = Scheduler(), Counter(), Counter()

    def job(i):
        for _ in range(3):
            scheduler.ask(read, i, patient=True)
            if i == 0:  # a line search that tries twice
                scheduler.ask(read, i, patient=True)
            scheduler.ask(solve, i)

    scheduler.run([lambda i=i: job(i) for i in range(3)])
    # Job 0 asks for six reads, the others for three, and none of theirs is lost to sharing.
    assert [sorted(asked) for asked in read.asked].count([0, 1, 2]) == 3
    assert len(read.asked) == 6


def test_outside_a_run_answers_come_at_once():
    assert Scheduler().ask(Counter(), 4) == 5


ALPHAS = [1e-1, 1e-2, 1e-3, 3e-4]


@pytest.mark.parametrize("solver", [LBFGS(), LBFGS(preconditioner="gram"), NewtonCG(), ADMM(0.1)])
def test_runs_side_by_side_are_the_runs_alone(solver):
    X, y = make(300, 8, 3)
    problem, tol = Problem.of(X, y, 1e-2), 1e-8
    settings = {"tol": tol, "max_iter": 1000}
    alone = [run(Problem.of(X, y, a), solver, **settings) for a in ALPHAS]
    scheduler = Scheduler()
    jobs = [
        lambda a=a: run(scheduler.share(problem.with_alpha(a)), solver, **settings) for a in ALPHAS
    ]
    together = scheduler.run(jobs)
    for alpha, one, other in zip(ALPHAS, alone, together, strict=True):
        assert one.status == other.status == "converged"
        # A product with several W side by side has other last digits, and a descent amplifies
        # them: the beginnings agree closely, the ends as far as tol and convexity demand.
        assert_close(other.history["objective"][:5], one.history["objective"][:5], 1e-9)
        assert np.linalg.norm(other.W - one.W) < 2 * tol * np.sqrt(one.W.size) / alpha
        assert other.n_iter == pytest.approx(one.n_iter, rel=0.2, abs=2)
    passes = [result.iterate.passes for result in together]
    assert problem.design.reads < 0.6 * sum(passes)
    assert problem.design.reads >= max(passes) - 1  # a Gram matrix is its user's own read


def test_a_shared_read_is_one_of_x_and_one_of_each_job():
    X, y = make(300, 8, 3)
    problem, scheduler = Problem.of(X, y, 1e-2), Scheduler()
    jobs = [scheduler.share(problem.with_alpha(alpha)).for_run() for alpha in ALPHAS]
    starts = np.random.default_rng(0).standard_normal((len(jobs), *problem.shape))

    def job(own, W):
        return [own.at(W).gradient for _ in range(3)]

    found = scheduler.run(
        [lambda own=own, W=W: job(own, W) for own, W in zip(jobs, starts, strict=True)]
    )
    assert problem.design.reads == 3
    assert [own.design.reads for own in jobs] == [3] * len(jobs)
    for own, W, gradients in zip(jobs, starts, found, strict=True):
        assert_close(gradients, [problem.with_alpha(own.penalty.alpha).at(W).gradient] * 3, 1e-12)


def test_what_is_prepared_in_a_job_is_read_once_and_counted_once():
    X, y = make(300, 8, 3)
    problem, scheduler = Problem.of(X, y, 1e-2), Scheduler()
    jobs = [scheduler.share(problem.with_alpha(alpha)).for_run() for alpha in ALPHAS]
    grams = scheduler.run([own.gram for own in jobs])
    assert all(gram is problem.gram() for gram in grams)
    assert problem.design.reads == 1
    assert sorted(own.design.reads for own in jobs) == [0, 0, 0, 1]


def test_threads_are_those_of_the_caller():
    with use_threads(3):
        assert Scheduler().run([thread_count] * 2) == [3, 3]


def two_runs(X, y):
    scheduler, problem = Scheduler(), Problem.of(X, y, 1e-3)
    jobs = [lambda a=a: run(scheduler.share(problem.with_alpha(a)), LBFGS()) for a in (1e-1, 1e-3)]
    return [result.W for result in scheduler.run(jobs)]


def test_the_same_bits_twice():
    X, y = make(200, 6, 3)
    np.testing.assert_array_equal(two_runs(X, y), two_runs(X, y))


def test_an_error_in_one_ends_all():
    scheduler, answer, ended = Scheduler(), Counter(), []

    def patient():
        try:
            while True:
                scheduler.ask(answer, 0)
        finally:
            ended.append(True)

    def fails():
        scheduler.ask(answer, 1)
        raise RuntimeError("job 1 failed")

    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="job 1 failed"):
        scheduler.run([patient, fails, patient])
    assert ended == [True, True]
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=60)  # its last line may be still to come
        assert not thread.is_alive()


def test_an_error_in_an_answer_ends_all():
    scheduler = Scheduler()

    def broken(requests):
        raise ArithmeticError("no answer")

    with pytest.raises(ArithmeticError, match="no answer"):
        scheduler.run([lambda: scheduler.ask(broken, 1)] * 2)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_what_the_runs_have():
    X, y = make(200, 6, 3)
    problem, scheduler = Problem.of(X, y, 1e-6), Scheduler()

    def interrupt(iterate):
        if iterate.passes >= 5:
            signal.raise_signal(signal.SIGINT)

    def job(alpha, callbacks=()):
        shared = scheduler.share(problem.with_alpha(alpha))
        return run(shared, LBFGS(), tol=0, max_iter=10_000, callbacks=callbacks)

    first, second = scheduler.run([lambda: job(1e-6), lambda: job(1e-5, interrupt)])
    assert first.status == second.status == "interrupted"
    assert np.isfinite(first.W).all()
    assert 3 < first.n_iter < 20


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_the_last_stretch_is_noted():
    scheduler = Scheduler()

    def answer(requests):
        signal.raise_signal(signal.SIGINT)
        return requests

    assert scheduler.run([lambda: scheduler.ask(answer, 1), lambda: scheduler.ask(answer, 2)]) == [
        1,
        2,
    ]
    assert scheduler.interrupted


def test_a_job_may_have_threads_of_its_own():
    X, y = make(100, 4, 3)
    problem, scheduler = Problem.of(X, y, 0.1), Scheduler()

    def job():
        shared = scheduler.share(problem)
        with ThreadPoolExecutor(2) as pool:
            starts = [np.zeros(problem.shape), np.ones(problem.shape)]
            return [point.objective for point in pool.map(shared.at, starts)]

    expected = [problem.objective(np.zeros(problem.shape)), problem.objective(np.ones((5, 3)))]
    for got in scheduler.run([job, job]):
        assert got == pytest.approx(expected)


def test_a_run_within_a_job_is_refused():
    scheduler = Scheduler()
    inner = [lambda: 1, lambda: 2]
    with pytest.raises(RuntimeError, match="within one of its own jobs"):
        scheduler.run([lambda: scheduler.run(inner), lambda: 3])


@pytest.mark.parametrize("solver", [ProximalLBFGS(), ADMM(rho=0.5)], ids=["proximal", "admm"])
@pytest.mark.parametrize("wide", [False, True])
def test_jobs_on_one_problem_share_what_they_prepare_with_folds(solver, wide, monkeypatch):
    # Both make the anchor of their gaps (and the working set's diagonal) at the same time, and
    # a fold waits until both have asked for one: neither may wait for the other meanwhile.
    monkeypatch.setattr(working_set, "LARGEST_GRAM", 2 if wide else 6_000)
    X, y = make(60, 5, 3)
    problem, scheduler = Problem.of(X, y, 0.02, penalty=penalties.Lasso()), Scheduler()
    alphas = [0.02, 0.05, 0.1]

    def job(alpha):
        shared = scheduler.share(problem.with_alpha(alpha))
        return run(shared, solver, tol=0.0, max_iter=4)

    together = scheduler.run([lambda a=a: job(a) for a in alphas])
    for alpha, result in zip(alphas, together, strict=True):
        alone = run(problem.fresh().with_alpha(alpha), solver, tol=0.0, max_iter=4)
        assert_close(result.W, alone.W, 1e-8)
    assert problem.prepared.anchor.last() is not None


def test_of_values_made_at_once_the_first_is_everyones():
    slot, scheduler = Slot(folds=True), Scheduler()

    def make_with_a_fold(number):
        scheduler.ask(Counter(), 0, patient=True)
        return [number]

    found = scheduler.run(
        [lambda i=i: slot.get(lambda v: True, lambda: make_with_a_fold(i)) for i in range(3)]
    )
    assert found[0] == [0]
    assert all(value is found[0] for value in found)
    assert slot.last() is found[0]


def test_a_value_made_without_folds_is_made_once_for_all_threads():
    slot, made = Slot(), []
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: slot.get(lambda v: True, lambda: made.append(i) or [i]), range(20)))
    assert len(made) == 1
    assert slot.get(lambda v: v == [99], lambda: [99]) == slot.last() == [99]
