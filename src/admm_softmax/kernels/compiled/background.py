"""A thread for LLVM's part of compiling, beside Numba's part, while there is something to do."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Lock, Thread
from typing import Any

#: How long Python lets one thread wait for another. LLVM's calls are many, and after each its
#: thread waits to go on: with Python's own 5 ms it would wait as long as it works.
SWITCH_SECONDS = 2e-4


class Background(Executor):
    """Runs calls one after the other, in a thread that lives while there are any.

    LLVM takes about as long as Numba's Python and lets it run meanwhile; llvmlite lets only one
    thread into LLVM at a time, so that more threads would do no more.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._is_running = False

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Run a call after those before it; returns what will have its result."""
        future: Future[Any] = Future()
        with self._lock:
            self._calls.append((future, lambda: call(*arguments, **named)))
            starts, self._is_running = not self._is_running, True
        if starts:
            try:
                Thread(target=self._run, name="admm-softmax-llvm").start()
            except RuntimeError:  # no thread can be had, as where Python is about to end
                self._run()
        return future

    def _run(self) -> None:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(min(interval, SWITCH_SECONDS))
        try:
            while self._take():
                pass
        finally:
            sys.setswitchinterval(interval)

    def _take(self) -> bool:
        """Run the next call; False where there is none, so that the thread ends."""
        with self._lock:
            if not self._calls:
                self._is_running = False
                return False
            future, call = self._calls.popleft()
        if future.set_running_or_notify_cancel():
            try:
                result = call()
            except BaseException as error:  # whoever waits for the result is to see it
                future.set_exception(error)
            else:
                future.set_result(result)
        return True
