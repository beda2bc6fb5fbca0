"""Jobs by turns: what they ask for is answered together, and they do as they would alone."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from admm_softmax import ADMM, LBFGS, NewtonCG, Problem, run
from admm_softmax.solvers.together import Meeting
from tests.problems import make


class Counter:
    """Answers by adding one, and keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, requests):
        self.asked.append(list(requests))
        return [request + 1 for request in requests]


def test_requests_are_answered_together_and_in_order():
    meeting, answer = Meeting(), Counter()

    def job(i):
        return [meeting.ask(answer, 10 * i + step) for step in range(3 - i)]

    assert meeting.run([lambda i=i: job(i) for i in range(3)]) == [[1, 2, 3], [11, 12], [21]]
    assert answer.asked == [[0, 10, 20], [1, 11], [2]]


def test_jobs_that_fell_out_of_step_come_back_into_it():
    meeting, read, solve = Meeting(), Counter(), Counter()

    def job(i):
        for _ in range(3):
            meeting.ask(read, i, patient=True)
            if i == 0:  # a line search that tries twice
                meeting.ask(read, i, patient=True)
            meeting.ask(solve, i)

    meeting.run([lambda i=i: job(i) for i in range(3)])
    # Job 0 asks for six reads, the others for three, and none of theirs is lost to sharing.
    assert [sorted(asked) for asked in read.asked].count([0, 1, 2]) == 3
    assert len(read.asked) == 6


def test_outside_a_meeting_answers_come_at_once():
    assert Meeting().ask(Counter(), 4) == 5


@pytest.mark.parametrize("solver", [LBFGS(), LBFGS(preconditioner="gram"), NewtonCG(), ADMM(0.1)])
def test_runs_side_by_side_are_the_runs_alone(solver):
    X, y = make(300, 8, 3)
    problem = Problem.of(X, y, 1e-2)
    settings = {"tol": 1e-8, "max_iter": 40}
    alphas = [1e-1, 1e-2, 1e-3, 3e-4]
    alone = [run(Problem.of(X, y, a), solver, **settings) for a in alphas]
    meeting = Meeting()
    jobs = [
        lambda a=a: run(meeting.share(problem.with_alpha(a)), solver, **settings) for a in alphas
    ]
    together = meeting.run(jobs)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(other.W, one.W, atol=1e-7)
        assert abs(other.n_iter - one.n_iter) <= 1
    passes = [result.iterate.passes for result in together]
    assert problem.design.reads < 0.6 * sum(passes)
    assert problem.design.reads >= max(passes) - 1  # a Gram matrix is its user's own read


def two_runs(X, y):
    meeting, problem = Meeting(), Problem.of(X, y, 1e-3)
    jobs = [lambda a=a: run(meeting.share(problem.with_alpha(a)), LBFGS()) for a in (1e-1, 1e-3)]
    return [result.W for result in meeting.run(jobs)]


def test_the_same_bits_twice():
    X, y = make(200, 6, 3)
    np.testing.assert_array_equal(two_runs(X, y), two_runs(X, y))


def test_an_error_in_one_ends_all():
    meeting, answer, ended = Meeting(), Counter(), []

    def patient():
        try:
            while True:
                meeting.ask(answer, 0)
        finally:
            ended.append(True)

    def fails():
        meeting.ask(answer, 1)
        raise RuntimeError("job 1 failed")

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="job 1 failed"):
        meeting.run([patient, fails, patient])
    assert ended == [True, True]
    assert threading.active_count() == before


def test_an_error_in_an_answer_ends_all():
    meeting = Meeting()

    def broken(requests):
        raise ArithmeticError("no answer")

    with pytest.raises(ArithmeticError, match="no answer"):
        meeting.run([lambda: meeting.ask(broken, 1)] * 2)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_what_the_runs_have():
    X, y = make(200, 6, 3)
    problem, meeting = Problem.of(X, y, 1e-6), Meeting()

    def interrupt(iterate):
        if iterate.passes >= 5:
            signal.raise_signal(signal.SIGINT)

    def job(alpha, callbacks=()):
        shared = meeting.share(problem.with_alpha(alpha))
        return run(shared, LBFGS(), tol=0, max_iter=10_000, callbacks=callbacks)

    first, second = meeting.run([lambda: job(1e-6), lambda: job(1e-5, interrupt)])
    assert first.status == second.status == "interrupted"
    assert np.isfinite(first.W).all()
    assert 3 < first.n_iter < 20


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_the_last_stretch_is_noted():
    meeting = Meeting()

    def answer(requests):
        signal.raise_signal(signal.SIGINT)
        return requests

    assert meeting.run([lambda: meeting.ask(answer, 1), lambda: meeting.ask(answer, 2)]) == [1, 2]
    assert meeting.interrupted


def test_a_job_may_have_threads_of_its_own():
    X, y = make(100, 4, 3)
    problem, meeting = Problem.of(X, y, 0.1), Meeting()

    def job():
        shared = meeting.share(problem)
        with ThreadPoolExecutor(2) as pool:
            starts = [np.zeros(problem.shape), np.ones(problem.shape)]
            return [point.objective for point in pool.map(shared.at, starts)]

    expected = [problem.objective(np.zeros(problem.shape)), problem.objective(np.ones((5, 3)))]
    for got in meeting.run([job, job]):
        assert got == pytest.approx(expected)


def test_a_meeting_within_itself_is_refused():
    meeting = Meeting()
    inner = [lambda: 1, lambda: 2]
    with pytest.raises(RuntimeError, match="within one of its own jobs"):
        meeting.run([lambda: meeting.run(inner), lambda: 3])
