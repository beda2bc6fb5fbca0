"""Several runs side by side, so that what they ask of X and of a factor is answered at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from queue import SimpleQueue
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any, Generic, TypeAlias, TypeVar

from admm_softmax.design import Fold, Task
from admm_softmax.problem import Problem

#: Jobs worth running side by side; more would share no more.
MOST_TOGETHER = 20

T = TypeVar("T")

#: Answers requests of one kind, in their order.
Answer: TypeAlias = Callable[[list[Any]], Sequence[Any]]


class Meeting:
    """Runs jobs by turns; where they wait for the same thing, it is done once for all.

    A job is a function, and looks like any other: what makes it stop in the middle is that a
    problem from `share`, or anything else that calls `ask`, waits for an answer. Only one job
    moves at a time, in a fixed order, so that the same input gives the same bits; each has a
    thread for no other reason than to keep its place.

    Requests to X wait until every job that is left has one, and then share reads
    (`Design.fold_together`). Others, cheaper, are answered before that, so that jobs that
    fell out of step (a line search tried twice) come back into it.

    >>> meeting = Meeting()
    >>> def double(numbers):
    ...     print("asked for", numbers)
    ...     return [2 * number for number in numbers]
    >>> meeting.run([lambda i=i: meeting.ask(double, i) + 1 for i in range(3)])
    asked for [0, 1, 2]
    [1, 3, 5]
    """

    def __init__(self) -> None:
        self._turn_over: SimpleQueue[None] = SimpleQueue()
        self._moving: _Job[Any] | None = None
        #: Ctrl-C was pressed during a run.
        self.interrupted = False

    def share(self, problem: Problem) -> Problem:
        """The same problem for use in a job of this meeting."""
        design = problem.design

        def host(task: Task) -> Fold:
            fold: Fold = self.ask(design.fold_together, task, patient=True)
            return fold

        return replace(problem, design=design.guest(host))

    def ask(self, answer: Answer, request: Any, *, patient: bool = False) -> Any:
        """Called within a job: wait for `answer` to this request, given with others' to it.

        A patient request is answered when all jobs have one. Outside a meeting, and in a
        thread that a job has started, the answer comes at once.
        """
        job = self._moving
        if job is None or current_thread() is not job.thread:
            return answer([request])[0]
        return job.wait(_Request(answer, request, patient))

    def run(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Run the jobs to their ends, and return what they did.

        An error in one ends the others. Ctrl-C is raised in every job at the place where it
        waits, and then here, unless all of them take it as a reason to return, or had
        nothing to wait for any more; `interrupted` says that it was pressed.
        """
        if self._moving is not None:
            raise RuntimeError("a meeting cannot be held within one of its own jobs")
        if len(jobs) == 1:
            return [jobs[0]()]
        seats = [_Job(job, self._turn_over) for job in jobs]
        try:
            with _held_interrupt() as interrupted:
                for seat in seats:
                    self._move(seat, None)
                while waiting := [seat for seat in seats if seat.request is not None]:
                    if interrupted():
                        self._end(waiting, KeyboardInterrupt())
                    else:
                        self._answer(waiting)
                self.interrupted = self.interrupted or interrupted()
        except BaseException:
            self._end(seats, _Cancelled())
            raise
        for seat in seats:
            if seat.error is not None:
                raise seat.error
        return [seat.result for seat in seats]

    def _answer(self, waiting: list[_Job[Any]]) -> None:
        """Answer all impatient requests, or else the patient ones of all jobs."""
        impatient = [seat for seat in waiting if not _request(seat).patient]
        kinds: dict[Answer, list[_Job[Any]]] = {}
        for seat in impatient or waiting:
            kinds.setdefault(_request(seat).answer, []).append(seat)
        for answer, seats in kinds.items():
            results = answer([_request(seat).content for seat in seats])
            for seat, result in zip(seats, results, strict=True):
                self._move(seat, result)

    def _move(self, seat: _Job[Any], message: Any) -> None:
        """Let a job go on until it waits again or ends."""
        self._moving = seat
        seat.go_on(message)
        self._turn_over.get()
        self._moving = None
        if seat.error is not None:
            raise seat.error

    def _end(self, seats: list[_Job[Any]], reason: BaseException) -> None:
        """Raise the reason in every job that waits, until it waits no more."""
        for seat in seats:
            while seat.request is not None:
                self._moving = seat
                seat.go_on(reason)
                self._turn_over.get()
                self._moving = None


@contextmanager
def _held_interrupt() -> Iterator[Callable[[], bool]]:
    """Make Ctrl-C wait for the next stop; yields whether it was pressed. Twice means at once.

    Only where Python's own handler is in charge: raised anywhere, between a job's turn and
    its end, an exception would leave threads behind.
    """
    pressed: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        if len(pressed) > 1:
            signal.default_int_handler(number, frame)

    ours = (
        current_thread() is main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class _Request:
    answer: Answer
    content: Any
    patient: bool


class _Cancelled(BaseException):
    """Ends a job whose meeting has failed."""


class _Job(Generic[T]):
    """A function that runs in a thread of its own, one stretch at a time."""

    result: T

    def __init__(self, function: Callable[[], T], turn_over: SimpleQueue[None]) -> None:
        self.function, self.turn_over = function, turn_over
        self.messages: SimpleQueue[Any] = SimpleQueue()
        #: What it waits for; None before the start and after the end.
        self.request: _Request | None = None
        self.error: BaseException | None = None
        context = copy_context()  # NumPy's error settings, among others
        self.thread = Thread(target=context.run, args=(self._live,), daemon=True)

    def go_on(self, message: Any) -> None:
        """Start, or hand over what it waits for: a result, or an exception to raise."""
        if not self.thread.is_alive():
            self.thread.start()
        self.request = None
        self.messages.put(message)

    def wait(self, request: _Request) -> Any:
        """Called in the job's thread: stop here until there is an answer."""
        self.request = request
        self.turn_over.put(None)
        message = self.messages.get()
        if isinstance(message, BaseException):
            raise message
        return message

    def _live(self) -> None:
        self.messages.get()
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        self.turn_over.put(None)


def _request(seat: _Job[Any]) -> _Request:
    assert seat.request is not None
    return seat.request
