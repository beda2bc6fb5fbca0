"""Whether this process compiles, and for how long it has: a solver's clock leaves that out.

Also whether to announce that it compiles: on request, and at a terminal. Nothing here loads Numba
or LLVM by itself.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from admm_softmax._interrupts import act_at_once_while


class CompileTime:
    """Adds up what is spent compiling, and loading the compiler; loading what was kept is neither.

    The first time is announced where `announces()`: it takes seconds, in which nothing else is
    shown. Where threads compile side by side, the time counts once.
    """

    is_announced = False
    seconds = 0.0

    def __init__(self) -> None:
        self.stop_all()

    def stop_all(self) -> None:
        """Nothing compiles, as in a forked child: the threads that did are its parent's."""
        self._lock = Lock()
        #: One may begin within another, or in another thread: how many there are, how many of
        #: them compile, and when the first began.
        self._depth = self._compiling = 0
        self._begin = 0.0

    @contextmanager
    def counting(self, *, compiles: bool = True) -> Iterator[None]:
        """Count the time that this takes. Ctrl-C acts at once meanwhile, if it `compiles`.

        A module that is half imported would stay so.
        """
        if not self.is_announced and announces():
            self.is_announced = True
            from admm_softmax.kernels.compiled import code_store  # noqa: PLC0415  (loads LLVM)

            print(announcement(code_store.writable_folder()), file=sys.stderr, flush=True)
        with self._lock:
            if not self._depth:
                self._begin = time.perf_counter()
            self._depth += 1
            self._compiling += compiles
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                self._compiling -= compiles
                if not self._depth:
                    self.seconds += time.perf_counter() - self._begin

    @property
    def running(self) -> bool:
        """Whether it compiles now."""
        return self._compiling > 0


def announcement(folder: Any) -> str:
    """What is said when compiling begins, with where the code will be kept."""
    if folder is None:
        kept = "not kept, as no folder can be written to: set NUMBA_CACHE_DIR to one"
    else:
        kept = f"kept in {folder}"
    return f"admm-softmax: compiling for this machine, a few seconds; {kept}"


compile_time = CompileTime()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=compile_time.stop_all)


def compile_seconds() -> float:
    """Seconds so far."""
    return compile_time.seconds


def is_compiling() -> bool:
    """Whether a thread of this process compiles at the moment."""
    return compile_time.running


act_at_once_while(is_compiling)

_verbose = 0


@contextmanager
def announcing(verbose: bool | int) -> Iterator[None]:
    """While this lasts, compiling is announced if `verbose`, whatever the error stream is."""
    global _verbose  # noqa: PLW0603  (compiling is the process's, not a thread's)
    _verbose += bool(verbose)
    try:
        yield
    finally:
        _verbose -= bool(verbose)


def announces() -> bool:
    """Whether compiling is announced: on request, and at a terminal."""
    return _verbose > 0 or bool(sys.stderr and sys.stderr.isatty())
