"""Several runs side by side, whose requests to X and to a factorisation are answered together.

Each job runs in a thread of its own, one at a time: the thread only keeps the job's call stack
while it waits. Greenlets would do the same but need a compiled dependency; generators would,
if every function between `run` and `Design.fold` were one. See
docs/decisions/0010-scheduler.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import Any, Generic, TypeAlias, TypeVar

from admm_softmax._interrupts import Hold, deferred_interrupt, held_interrupt
from admm_softmax.design import Fold, Request
from admm_softmax.problem import Problem

T = TypeVar("T")

#: A function from requests of one kind to their results, in the same order.
Answer: TypeAlias = Callable[[list[Any]], Sequence[Any]]
#: Seconds after which the scheduler looks whether the job that it waits for is still there.
LOOK_AFTER = 1.0


class Scheduler:
    """Runs jobs in turns; requests of several jobs to the same function are answered together.

    A job is any function. It pauses where a problem from `share`, or anything else that calls
    `ask`, waits for an answer. Only one job runs at a time, in a fixed order, so that the same
    input gives the same bits.

    Requests to X wait until every unfinished job has one, and then share reads
    (`Design.fold_many`). Other, cheaper requests are answered before that, so that jobs that
    lag behind (by a second trial of a line search, say) catch up.

    >>> scheduler = Scheduler()
    >>> def double(numbers):
    ...     print("asked for", numbers)
    ...     return [2 * number for number in numbers]
    >>> scheduler.run([lambda i=i: scheduler.ask(double, i) + 1 for i in range(3)])
    asked for [0, 1, 2]
    [1, 3, 5]
    """

    def __init__(self) -> None:
        self._turn_over: SimpleQueue[None] = SimpleQueue()
        self._moving: _Job[Any] | None = None
        #: Ctrl-C was pressed during a run.
        self.interrupted = False

    def share(self, problem: Problem) -> Problem:
        """The same problem for use in a job: its folds share reads with those of other jobs."""
        design = problem.design

        def submit(request: Request) -> Fold:
            fold: Fold = self.ask(design.fold_many, request, patient=True)
            return fold

        return replace(problem, design=design.view(submit))

    def ask(self, answer: Answer, content: Any, *, patient: bool = False) -> Any:
        """Called within a job: the result of `answer` for `content`, computed with other jobs'.

        A patient request is answered when all jobs have one. Outside a run, and in a thread
        that a job has started, the answer comes at once.
        """
        job = self._moving
        if job is None or current_thread() is not job.thread:
            return answer([content])[0]
        return job.wait(_Pending(answer, content, patient))

    def run(self, functions: Sequence[Callable[[], T]]) -> list[T]:
        """Run the functions as jobs until all have ended, and return their results.

        An error in one ends the others. Ctrl-C is raised in every job at the place where it
        waits, and then here, unless all jobs catch it and return, or none waits any more;
        `interrupted` says that it was pressed.
        """
        if self._moving is not None:
            raise RuntimeError("a scheduler cannot run jobs within one of its own jobs")
        if len(functions) == 1:
            return [functions[0]()]
        jobs = [_Job(function, self._turn_over) for function in functions]
        try:
            with held_interrupt() as hold:
                self._run(jobs, hold)
                self.interrupted = self.interrupted or hold.pressed
        except BaseException:
            self._end(jobs, _Cancelled())
            raise
        for job in jobs:
            if job.error is not None:
                raise job.error
        return [job.result for job in jobs]

    def _run(self, jobs: Sequence[_Job[Any]], hold: Hold) -> None:
        may_be_ended = not hold.deferrals
        with deferred_interrupt():  # it is raised in the jobs, not here
            for job in jobs:
                self._move(job, None)
            while waiting := [job for job in jobs if job.pending is not None]:
                if may_be_ended and hold.take():
                    self._end(waiting, KeyboardInterrupt())
                else:
                    self._answer(waiting)

    def _answer(self, waiting: list[_Job[Any]]) -> None:
        """Answer all impatient requests; if there are none, the patient ones of all jobs."""
        impatient = [job for job in waiting if not job.asked.patient]
        kinds: dict[Answer, list[_Job[Any]]] = {}
        for job in impatient or waiting:
            kinds.setdefault(job.asked.answer, []).append(job)
        for answer, jobs in kinds.items():
            results = answer([job.asked.content for job in jobs])
            for job, result in zip(jobs, results, strict=True):
                self._move(job, result)

    def _move(self, job: _Job[Any], message: Any) -> None:
        """Let a job run until it waits again or ends."""
        self._moving = job
        job.go_on(message)
        self._wait_for(job)
        self._moving = None
        if job.error is not None:
            raise job.error

    def _wait_for(self, job: _Job[Any]) -> None:
        """Until the job waits again or has ended.

        With a timeout: a suite that interrupts thousands of runs was once seen to stand still
        here after all jobs had ended, until a signal woke it.
        """
        while True:
            try:
                self._turn_over.get(timeout=LOOK_AFTER)
            except Empty:
                if job.thread.is_alive() or not self._turn_over.empty():
                    continue
            return

    def _end(self, jobs: list[_Job[Any]], reason: BaseException) -> None:
        """Raise the reason in every job that waits, until it waits no more."""
        for job in jobs:
            while job.pending is not None:
                self._moving = job
                job.go_on(reason)
                self._wait_for(job)
                self._moving = None


@dataclass(frozen=True)
class _Pending:
    answer: Answer
    content: Any
    patient: bool


class _Cancelled(BaseException):
    """Ends a job whose scheduler has failed."""


class _Job(Generic[T]):
    """A function that runs in a thread of its own, from one request to the next."""

    result: T

    def __init__(self, function: Callable[[], T], turn_over: SimpleQueue[None]) -> None:
        self.function, self.turn_over = function, turn_over
        self.messages: SimpleQueue[Any] = SimpleQueue()
        #: What it waits for; None before the start and after the end.
        self.pending: _Pending | None = None
        self.error: BaseException | None = None
        context = copy_context()  # NumPy's error settings, among others
        self.thread = Thread(target=context.run, args=(self._run,), daemon=True)

    def go_on(self, message: Any) -> None:
        """Start the job, or give it what it waits for: a result, or an exception to raise."""
        if not self.thread.is_alive():
            self.thread.start()
        self.pending = None
        self.messages.put(message)

    @property
    def asked(self) -> _Pending:
        """The request that a waiting job has made."""
        assert self.pending is not None
        return self.pending

    def wait(self, pending: _Pending) -> Any:
        """Called in the job's thread: stop here until there is an answer."""
        self.pending = pending
        self.turn_over.put(None)
        message = self.messages.get()
        if isinstance(message, BaseException):
            raise message
        return message

    def _run(self) -> None:
        self.messages.get()
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        self.turn_over.put(None)
