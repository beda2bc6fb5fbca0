"""Threads: one pool of Python threads over row blocks, BLAS held to one thread inside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from admm_softmax._checks import check_count

T = TypeVar("T")
R = TypeVar("R")


def cpu_count() -> int:
    """The cores this process may use: by affinity, and by what the environment allows.

    A worker of joblib's finds its share in these variables, and should keep to it.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    for name in ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
        allowed = os.environ.get(name, "")
        if allowed.isdigit() and int(allowed) > 0:
            count = min(count, int(allowed))
    return count


def check_threads(n_threads: int | None) -> int:
    """Return the number of threads to use; None means every core."""
    if n_threads is None:
        return cpu_count()
    return check_count("n_threads", n_threads, "at least 1 or None")


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """Limit BLAS to `n_threads` within the block; the innermost block decides.

    The limit belongs to the process. Where several Python threads are in such blocks at
    once, the last in decides for all, and the last out restores what was before.

    BLAS's threads go on spinning for a while after their work, in the way of ours: so a run
    of a solver limits BLAS to one, and only large factorisations and products ask for more.
    """
    mine = object()
    _limit.enter(mine, n_threads)
    try:
        yield
    finally:
        _limit.leave(mine)


class _Limit:
    """The blocks that limit BLAS, in the order in which they were entered."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.inside: dict[object, int] = {}
        self.original: Any = None

    def enter(self, block: object, n_threads: int) -> None:
        """Set the limit, and remember what it was before the first block."""
        with self.lock:
            limiter = _controller().limit(limits=n_threads, user_api="blas")
            if not self.inside:
                self.original = limiter
            self.inside[block] = n_threads
            _let_go()

    def leave(self, block: object) -> None:
        """Go back to the limit of the block entered last, or to the first of all."""
        with self.lock:
            del self.inside[block]
            if self.inside:
                _controller().limit(limits=next(reversed(self.inside.values())), user_api="blas")
            else:
                self.original.restore_original_limits()
            _let_go()


_limit = _Limit()


def _let_go() -> None:
    """Let other threads set limits too: threadpoolctl heeds one thread until it is done."""
    for library in _controller().lib_controllers:
        release = getattr(library, "clear_controlling_thread", None)
        if release is not None:
            release()


def ordered_map(function: Callable[[T], R], items: Sequence[T], n_threads: int) -> list[R]:
    """Map over items in the pool and return results in order, BLAS single-threaded.

    The order of the results, and so of every sum over them, does not depend on the
    number of threads: the same input gives the same bits.
    """
    if len(items) == 1 or n_threads == 1:
        with blas_threads(1):
            return [function(item) for item in items]
    with blas_threads(1):
        return list(_pool(n_threads).map(function, items))


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Scanning the loaded libraries takes milliseconds, limiting them microseconds.
    import scipy.linalg  # noqa: F401, PLC0415  (SciPy ships a second BLAS: load it before the scan)

    return ThreadpoolController()


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="admm-softmax")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool but not its threads, and would wait for ever.
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_limit.__init__)  # type: ignore[misc]
