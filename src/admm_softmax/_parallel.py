"""Threads: one pool of Python threads over row blocks, BLAS held to one thread inside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


def cpu_count() -> int:
    """The cores this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(n_threads: int | None) -> int:
    """Return the number of threads to use; None means every core."""
    if n_threads is None:
        return cpu_count()
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1 or None, got {n_threads}")
    return int(n_threads)


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """Limit BLAS to `n_threads` within the block."""
    with _controller().limit(limits=n_threads, user_api="blas"):
        yield


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
