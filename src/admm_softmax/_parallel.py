"""Threads: one pool of Python threads over row blocks, BLAS held to one thread inside it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from admm_softmax._checks import check_count
from admm_softmax._interrupts import check_interrupt

T = TypeVar("T")
R = TypeVar("R")


def cpu_count() -> int:
    """The cores this process may use: by affinity, and by what the environment allows.

    joblib sets these variables in its workers to their share of the cores.
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


#: How many threads the current run may use; None means every core.
_allowed: ContextVar[int | None] = ContextVar("admm_softmax_threads", default=None)


@contextmanager
def use_threads(n_threads: int | None) -> Iterator[None]:
    """Let the code within the block use `n_threads` threads; None changes nothing.

    Threads are a setting of a run, not of the data: every pass and factorisation asks
    `thread_count()`.
    """
    if n_threads is None:
        yield
        return
    token = _allowed.set(check_threads(n_threads))
    try:
        yield
    finally:
        _allowed.reset(token)


def thread_count() -> int:
    """How many threads the caller may use."""
    return _allowed.get() or cpu_count()


#: Products and factorisations of fewer operations stay on one thread: BLAS's threads must be woken,
#: wait for each other, and then spin in the way of ours. Milliseconds of a Cholesky factorisation
#: in float32 on one thread and on two, idle and beside a process that keeps a core busy (an Emerald
#: Rapids with AVX-512): 47, 30, 66 and 165 with 2.7e9 operations (d = 2,000), 132, 86, 166 and 182
#: with 9e9 (3,000), 569, 374, 646 and 952 with 4.2e10 (5,000). On a Sapphire Rapids two threads in
#: a product of 5e7 (600 × 300) made a fit of 74 ms last 92 to 106 ms, and 140 ms beside one.
WORTH_BLAS_THREADS = 6e9
#: Multiplications of a pass, products and row kernel together, below which it stays on the thread
#: that asks for it; one thread takes 2 to 3 ms for as many. Milliseconds of passes on one thread
#: and on two, idle, on an Emerald Rapids with AVX-512, and held to AVX2: 1.95 and 2.1, 3.4 and 4.2
#: with 3.2e7 (20,000 × 50, K = 10); 5.1 and 5.6, 3.7 and 4.3 with 4.98e7 (3,000 × 800, K = 10).
#: Whole fits on two cores of a Sapphire Rapids: 30 and 24 with 5.2e7 (20,000 × 100, K = 10), 39 and
#: 31 with 9.2e7 (10,000 × 200, K = 20); beside a process that keeps a core busy 29 and 31, 32 and
#: 34.
WORTH_THREADS = 5e7


@contextmanager
def blas_threads(n_threads: int | None = None, *, operations: float = np.inf) -> Iterator[None]:
    """Limit BLAS to `n_threads` within the block; the innermost block decides.

    None stands for the threads of the run, or one where the block has few `operations`.

    The limit belongs to the process. Where several Python threads are in such blocks at
    once, the last in decides for all, and the last out restores what was before.

    BLAS's threads keep spinning for a while after their work and compete with ours: so a run
    of a solver limits BLAS to one, and only large factorisations and products ask for more.
    """
    mine = object()
    if n_threads is None:
        n_threads = thread_count() if operations >= WORTH_BLAS_THREADS else 1
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
        self.current = 0
        #: The libraries, and the threads each had before the first block.
        self.original: list[tuple[Any, int]] = []

    def enter(self, block: object, n_threads: int) -> None:
        """Set the limit, and remember what it was before the first block."""
        with self.lock:
            if not self.inside:
                self.original = [(library, library.get_num_threads()) for library in _blas()]
                self.current = 0
            self.inside[block] = n_threads
            self._set(n_threads)

    def leave(self, block: object) -> None:
        """Restore the limit of the block entered last, or the original one after the last block."""
        with self.lock:
            if self.inside.pop(block, None) is None:
                return  # it was entered before a fork, and this is the child
            if self.inside:
                self._set(next(reversed(self.inside.values())))
                return
            for library, n_threads in self.original:
                _set_threads(library, n_threads)

    def forget(self) -> None:
        """In a forked child, which is in none of the blocks: restore BLAS's threads."""
        limited = self.original if self.inside else []
        self.__init__()  # type: ignore[misc]  # the lock may be held by a thread that is no more
        for library, n_threads in limited:
            _set_threads(library, n_threads)

    def _set(self, n_threads: int) -> None:
        if n_threads == self.current:
            return
        self.current = n_threads
        for library, _ in self.original:
            _set_threads(library, n_threads)


_limit = _Limit()


def _set_threads(library: Any, n_threads: int) -> None:
    library.set_num_threads(n_threads)
    # Let other threads set limits too: threadpoolctl otherwise obeys one thread only.
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release()


@lru_cache(maxsize=1)
def _blas() -> list[Any]:
    """What controls each BLAS. Scanning the loaded libraries takes milliseconds."""
    import scipy.linalg  # noqa: F401, PLC0415  (SciPy ships a second BLAS: load it before the scan)

    found = ThreadpoolController().lib_controllers
    return [library for library in found if library.user_api == "blas"]


def ordered_map(
    function: Callable[[T], R],
    items: Sequence[T],
    n_threads: int | None = None,
    *,
    operations: float = np.inf,
) -> list[R]:
    """Map over items in the pool and return results in order, BLAS single-threaded.

    None takes the number of threads of the run, or one where all items together have few
    `operations`. The order of the results, and so of
    every sum over them, does not depend on it: the same input gives the same bits. Ctrl-C acts
    before, not in between.
    """
    check_interrupt()
    with blas_threads(1):
        if len(items) > 1:
            if n_threads is None:
                n_threads = thread_count() if operations >= WORTH_THREADS else 1
            if n_threads > 1:
                return _Shared(function, items).run(min(n_threads, len(items)))
        return [function(item) for item in items]


class _Shared(Generic[T, R]):
    """Items that several threads work off, the caller one of them.

    A future for every item, with the caller waiting for them, takes longer than the items of a
    small pass: over 10,000 sparse rows of 30 entries, with 20 classes, one thread alone was faster.
    """

    def __init__(self, function: Callable[[T], R], items: Sequence[T]) -> None:
        self.function, self.items = function, items
        self.results: list[Any] = [None] * len(items)
        #: The items that no thread has taken. To take one is atomic.
        self.left = deque(range(len(items)))
        #: The first error by the order of the items, and its item.
        self.errors: dict[int, BaseException] = {}

    def run(self, n_threads: int) -> list[R]:
        """The results, in order; or the error of the first item that has one."""
        pool = _pool(n_threads)
        helpers = [pool.submit(self._work) for _ in range(n_threads - 1)]
        self._work()
        for helper in helpers:
            # One that has not begun finds nothing left to do; waiting for it could take for ever
            # where all threads of the pool wait so.
            if not helper.cancel():
                helper.result()
        if self.errors:
            raise self.errors[min(self.errors)]
        return self.results

    def _work(self) -> None:
        while True:
            try:
                number = self.left.popleft()
            except IndexError:
                return
            try:
                self.results[number] = self.function(self.items[number])
            except BaseException as error:  # the caller raises it again
                self.errors[number] = error
                self.left.clear()
                return


class Lanes:
    """Jobs in the pool, of which those of one lane run one after the other, in their order.

    A lane without a job holds no thread: what brings the jobs may need the same threads. Jobs of
    different lanes that came earlier are begun earlier. On one thread a job runs as it comes.
    """

    def __init__(self, count: int) -> None:
        n_threads = thread_count()
        pool = _pool(n_threads) if min(count, n_threads) > 1 else None
        self._lanes = [_Lane(pool) for _ in range(count)]

    def __len__(self) -> int:
        return len(self._lanes)

    def start(self, lane: int, job: Callable[[], None]) -> Future[None]:
        """Put a job behind those of its lane. Errors come with the result."""
        return self._lanes[lane].add(job)


class _Lane:
    """Jobs that wait for each other."""

    def __init__(self, pool: ThreadPoolExecutor | None) -> None:
        self.pool, self.lock = pool, Lock()
        self.waiting: deque[tuple[Future[None], Callable[[], None]]] = deque()
        self.is_busy = False

    def add(self, job: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        with self.lock:
            self.waiting.append((future, job))
            was_busy, self.is_busy = self.is_busy, True
        if self.pool is None:
            self._run_one()
        elif not was_busy:
            self.pool.submit(self._run_one)
        return future

    def _run_one(self) -> None:
        """Run the job that has waited longest; for the next one, queue again behind others."""
        with self.lock:
            future, job = self.waiting.popleft()
        try:
            job()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        with self.lock:
            self.is_busy = more = bool(self.waiting)
        if more and self.pool is not None:
            self.pool.submit(self._run_one)


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="admm-softmax")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool but not its threads, and would wait for ever.
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_limit.forget)
