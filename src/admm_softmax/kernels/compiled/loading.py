"""Compiled functions in memory, by name: from the disk where they are kept, else compiled.

Object code is loaded by LLVM alone. Numba is loaded only to compile.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from threading import RLock
from typing import Any, NamedTuple

from llvmlite import binding

from admm_softmax.kernels.compile_clock import compile_time
from admm_softmax.kernels.compiled import code_store
from admm_softmax.kernels.compiled.code_store import Record
from admm_softmax.kernels.compiled.target import TRIPLE


class Loaded(NamedTuple):
    """Where a function is in memory, what it takes, and what keeps it there."""

    address: int
    kinds: list[Any]
    engine: Any


_loaded: dict[str, Loaded] = {}
#: Nothing that takes another lock is called under it: Numba's own is held while it compiles.
_lock = RLock()


def find(name: str) -> Loaded | None:
    """A function that is in memory, or kept on disk with all that it calls; else None."""
    with _lock:
        if name in _loaded:
            return _loaded[name]
        record = code_store.find(name)
        if record is None or any(find(called) is None for called in record.calls):
            return None
        return add(name, record)


def loaded(name: str) -> Loaded:
    """A function that is in memory."""
    with _lock:
        return _loaded[name]


def add(name: str, record: Record) -> Loaded:
    """Load object code, whose function others then call by this name.

    What is loaded already stays as it is: others hold its address. Another process or thread may
    have kept the same function while this one compiled it.
    """
    with _lock:
        if name in _loaded:
            return _loaded[name]
        module = binding.parse_assembly(f'target triple = "{TRIPLE}"')
        # It only loads code, so that it does not matter for which CPU it would compile.
        machine = binding.Target.from_triple(TRIPLE).create_target_machine(jit=True)
        engine = binding.create_mcjit_compiler(module, machine)
        engine.add_object_file(binding.ObjectFileRef.from_data(record.code))
        engine.finalize_object()
        address = engine.get_function_address(record.symbol)
        binding.add_symbol(name, address)
        _loaded[name] = Loaded(address, record.kinds, engine)
        return _loaded[name]


class Twin:
    """A row kernel's compiled twin, given as "module:function"; as an integer, its address.

    Passes take the address when they run. Until then LLVM may compile the twin, while Numba is at
    the pass that calls it.
    """

    def __init__(self, place: str) -> None:
        self._module, _, self._function = place.partition(":")
        self._address: int | None = None
        found = find(f"{self._module}.{self._function}")
        if found is None:
            jit, function = self._with_compiler()
            jit.begin(function)
        else:
            self._address = found.address

    def __index__(self) -> int:
        if self._address is None:
            jit, function = self._with_compiler()
            self._address = jit.load(function)
        return self._address

    def _with_compiler(self) -> tuple[Any, Any]:
        """`jit`, and the function to be compiled."""
        with compile_time.counting(compiles=False):
            from admm_softmax.kernels.compiled import jit  # noqa: PLC0415  (loads Numba)

            return jit, getattr(import_module(self._module), self._function)


@cache
def twin(place: str) -> Any:
    """A row kernel's compiled twin, which is its address as an integer."""
    return Twin(place)
