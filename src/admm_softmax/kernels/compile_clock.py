"""Whether this process compiles, and for how long it has: a solver's clock leaves that out.

Also whether to announce that it compiles: on request, and at a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from admm_softmax._interrupts import act_at_once_while

_COMPILER = "admm_softmax.kernels.compiled.jit"


def compile_seconds() -> float:
    """Seconds so far; zero while nothing compiled is loaded."""
    clock = getattr(sys.modules.get(_COMPILER), "compile_time", None)  # it may be half loaded
    return 0.0 if clock is None else float(clock.seconds)


def is_compiling() -> bool:
    """Whether a thread of this process compiles at the moment."""
    clock = getattr(sys.modules.get(_COMPILER), "compile_time", None)
    return clock is not None and bool(clock.running)


act_at_once_while(is_compiling)

_verbose = 0


@contextmanager
def announcing(verbose: bool) -> Iterator[None]:
    """While this lasts, compiling is announced if `verbose`, whatever the error stream is."""
    global _verbose  # noqa: PLW0603  (compiling is the process's, not a thread's)
    _verbose += verbose
    try:
        yield
    finally:
        _verbose -= verbose


def announces() -> bool:
    """Whether compiling is announced: on request, and at a terminal."""
    return _verbose > 0 or bool(sys.stderr and sys.stderr.isatty())
