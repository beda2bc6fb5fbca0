"""Ctrl-C at safe places only: nothing that is finished is lost, nothing is left half done."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


class Hold:
    """Whether Ctrl-C was pressed while it was held back."""

    def __init__(self) -> None:
        #: How often it was pressed.
        self.presses = 0
        #: Whether it was raised, or otherwise acted upon.
        self.taken = False
        #: How many blocks ask not to raise it within them.
        self.deferrals = 0

    @property
    def pressed(self) -> bool:
        """Whether it was pressed since the outermost block began."""
        return self.presses > 0

    def take(self) -> bool:
        """Whether it was pressed and nobody has acted upon it; the caller now does."""
        fresh = self.pressed and not self.taken
        self.taken = self.taken or fresh
        return fresh

    def release(self) -> None:
        """Raise KeyboardInterrupt if it was pressed and nobody has acted upon it."""
        if self.take():
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.presses += 1
        at_once = self.presses > 1 or any(busy() for busy in _acts_at_once_while)
        if at_once and not _is_lost_in(frame):
            self.taken = True
            signal.default_int_handler(number, frame)


def _is_lost_in(frame: FrameType | None) -> bool:
    """Whether an exception here is lost: LLVM has called back, and ignores what Python raises."""
    while frame is not None:
        if frame.f_code.co_name.startswith(CALLED_BACK):
            return True
        frame = frame.f_back
    return False


#: How llvmlite's functions are named that LLVM calls.
CALLED_BACK = "_raw_object_cache"


#: What takes long, and may be interrupted anywhere.
_acts_at_once_while: list[Callable[[], bool]] = []


def act_at_once_while(busy: Callable[[], bool]) -> None:
    """Do not hold Ctrl-C back while `busy` returns True."""
    _acts_at_once_while.append(busy)


#: The hold of the outermost block, in the main thread.
_current: Hold | None = None


@contextmanager
def held_interrupt() -> Iterator[Hold]:
    """Hold Ctrl-C back within the block; `check_interrupt` raises it, at places that are safe.

    An exception anywhere else could leave threads behind, BLAS limited, or a result on its way
    to the list of those that are kept. A second Ctrl-C acts at once, as does one while Numba
    compiles, which takes seconds. Blocks may be nested. Only in the main thread, and only where
    Python's own handler is in charge.
    """
    global _current  # noqa: PLW0603  (signals belong to the process)
    is_main = current_thread() is main_thread()
    if is_main and _current is not None:
        yield _current
        return
    hold = Hold()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield hold
        return
    try:
        _current = hold
        signal.signal(signal.SIGINT, hold._note)
        yield hold
    finally:
        # Python's own handler may run as soon as it is back: this comes last.
        _current = None
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Let `check_interrupt` do nothing within the block: something must be finished first."""
    hold = _held()
    if hold is None:
        yield
        return
    hold.deferrals += 1
    try:
        yield
    finally:
        hold.deferrals -= 1


def check_interrupt() -> None:
    """Raise KeyboardInterrupt, once, if Ctrl-C is held back."""
    hold = _held()
    if hold is not None and not hold.deferrals:
        hold.release()


def _held() -> Hold | None:
    return _current if current_thread() is main_thread() else None
