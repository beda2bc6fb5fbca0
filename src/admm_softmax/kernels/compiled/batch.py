"""Functions that are compiled together: LLVM's part in a thread, beside Numba's part."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from admm_softmax.kernels.compiled.code_store import Record
from admm_softmax.kernels.compiled.object_code import Backend, Target, Unit

#: How long Python lets one thread wait for another: LLVM's calls are many, each waits to go on,
#: and with Python's own 5 ms they would wait as long as they run.
SWITCH_SECONDS = 2e-4


class Batch:
    """Functions on their way to object code, in the order in which they may be loaded.

    LLVM takes about as long as Numba's Python, and lets it run meanwhile. Functions call each
    other by name, so that no part waits for another before all are loaded.
    """

    def __init__(self, target: Target) -> None:
        self._backend = Backend(target)
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        self._thread = ThreadPoolExecutor(1, "admm-softmax-llvm")
        self._begun: dict[str, tuple[Record, Future[bytes]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._begun

    def begin(self, name: str, unit: Unit, record: Record) -> None:
        """Let LLVM compile a unit; `record` lacks only its code."""
        self._begun[name] = record, self._thread.submit(self._backend.object_code, unit)

    def finished(self) -> Iterator[tuple[str, Record]]:
        """All records with their code; waits for each, and raises what its compilation raised."""
        for name, (record, code) in self._begun.items():
            yield name, record._replace(code=code.result())

    def close(self) -> None:
        """Compile nothing more. What LLVM is at, after an error, it does in vain."""
        sys.setswitchinterval(self._interval)
        self._thread.shutdown(wait=False, cancel_futures=True)
