"""A thread for LLVM's part of compiling, beside Numba's part, while there is something to do."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any

#: How long Python lets one thread wait for another. LLVM's calls are many, and after each its
#: thread waits to go on: with Python's own 5 ms it would wait as long as it works.
SWITCH_SECONDS = 2e-4


class Background:
    """Runs calls one after the other, in a thread that lives while there are any.

    LLVM takes about as long as Numba's Python and lets it run meanwhile; llvmlite lets only one
    thread into LLVM at a time, so that more threads would do no more.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._thread: Thread | None = None
        #: How long threads wait without us, and what we made of it; None where that is left alone.
        self._intervals: tuple[float, float] | None = None

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Run a call after those before it; returns what will have its result."""
        future: Future[Any] = Future()
        with self._lock:
            self._calls.append((future, lambda: call(*arguments, **named)))
            # A thread may be there that never began: Ctrl-C can come before it does.
            begins = self._thread is None or not self._thread.is_alive()
            if begins:
                self._hurry()
                self._thread = Thread(target=self._run, name="admm-softmax-llvm")
                try:
                    self._thread.start()
                    begins = False
                except RuntimeError:  # no thread can be had, as where Python is about to end
                    self._thread = None
        if begins:
            self._run()
        return future

    def wait(self) -> None:
        """Return when there is nothing left to do, and no thread."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            thread.join()

    def _hurry(self) -> None:
        """Let threads wait for a shorter time, the whole process's. Under the lock."""
        if self._intervals is None:
            before = sys.getswitchinterval()
            sys.setswitchinterval(min(before, SWITCH_SECONDS))
            self._intervals = before, sys.getswitchinterval()

    def _rest(self) -> None:
        """Let them wait as before, unless someone else has set it meanwhile. Under the lock."""
        if self._intervals is not None and sys.getswitchinterval() == self._intervals[1]:
            sys.setswitchinterval(self._intervals[0])
        self._intervals = None

    def _run(self) -> None:
        while self._take():
            pass

    def _take(self) -> bool:
        """Run the next call; False where there is none, so that the thread ends."""
        with self._lock:
            if not self._calls:
                self._thread = None
                self._rest()
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
