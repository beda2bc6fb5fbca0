"""How functions are compiled here: each once, on its own, and kept on disk for other processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from inspect import Parameter, Signature
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from admm_softmax._interrupts import check_interrupt
from admm_softmax.kernels.compile_clock import compile_time
from admm_softmax.kernels.compiled import code_store, loading
from admm_softmax.kernels.compiled.background import Background
from admm_softmax.kernels.compiled.code_store import Record
from admm_softmax.kernels.compiled.loading import Loaded
from admm_softmax.kernels.compiled.lowering import numba_target
from admm_softmax.kernels.compiled.object_code import Unit, backend_of
from admm_softmax.kernels.compiled.pipeline import ShortPipeline

#: Sums may be reordered and products contracted; infinities and NaNs keep their meaning.
FAST = {"nsz", "arcp", "contract", "reassoc"}
#: Contraction alone, for code whose cancellations are meant.
STRICT = {"contract"}

#: Python calls no function of Numba's: so without the wrappers that convert its objects.
_NUMBA_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
    "pipeline_class": ShortPipeline,
}
#: Functions of other packages are not kept: nothing would tell when they change.
_OURS = __name__.removesuffix("compiled.jit")


def compiled(function: Any, fastmath: set[str] = FAST) -> Any:
    """Compile into every function that calls it. Python itself must not call it."""
    return njit(fastmath=fastmath, **_NUMBA_OPTIONS)(function)


def compiled_strictly(function: Any) -> Any:
    """As `compiled`, but sums stay in their order."""
    return compiled(function, STRICT)


def with_globals(template: Any, name: str, **meanings: Any) -> Any:
    """A copy of a template with these meanings of some of its global names, under its own name.

    A closure would do the same, but has no name that stays the same in other processes.
    """
    copy = FunctionType(template.__code__, {**template.__globals__, **meanings}, template.__name__)
    copy.__qualname__ = f"{template.__qualname__}.{name}"
    copy.__module__, copy.__doc__ = template.__module__, template.__doc__
    return copy


class Separate:
    """A function that is compiled once, on its own, and called, never inlined.

    What Numba's functions call is compiled again into each of them, at every level of the
    calls. On Zen 3, shared with other jobs, ADMM's pass after `gradient`'s took 23 to 27 s that
    way and takes 6 to 7 s this way; `gradient`'s own 9 to 13 s and 7.5 to 8.3 s. The price is
    a call, which is nothing beside a tile of rows.

    Compiled code calls `self.call` with arguments of exactly the types of `signature`, and
    finds the function by its name, under which it is also kept on disk.
    """

    def __init__(self, function: Any, signature: Any, fastmath: set[str], name: str) -> None:
        self.signature = signature
        self.name = f"{function.__module__}.{name}"
        self.dispatcher = compiled(function, fastmath)
        self.call = _calling(self)

    def load(self) -> int:
        """Compile it, or take it from the disk; returns its address."""
        # Numba's own lock: it is held where code that calls this is compiled, so with a second
        # lock two threads could each wait for the other's.
        with global_compiler_lock:
            if loading.find(self.name) is None:
                with pending.compiling():
                    self.begin()
                    pending.finish()
            return loading.loaded(self.name).address

    def begin(self) -> None:
        """Do Numba's part for this and all that it calls, and let LLVM begin with its part."""
        with global_compiler_lock:
            if self.name in pending or loading.find(self.name) is not None:
                return
            calls = called_by(self.dispatcher)
            for other in calls:
                other.begin()
            with pending.compiling():
                self.dispatcher.compile(self.signature.args)
                check_interrupt()  # what was pressed while LLVM called back
                result = self.dispatcher.overloads[self.signature.args]
                names = [other.name for other in calls]
                record = Record(result.fndesc.llvm_func_name, names, [], b"")
                pending.add(self.name, result.library.unit, record)


class _Pending:
    """Functions after Numba's part: LLVM compiles them in its thread, until they are loaded.

    Functions call each other by name, so that no part waits for another before that. All under
    Numba's lock.
    """

    def __init__(self) -> None:
        self._thread = Background()
        #: In an order in which they may be loaded.
        self._begun: dict[str, tuple[Record, Future[bytes]]] = {}
        #: How many of ours Numba is compiling, one within the other.
        self.depth = 0

    def __contains__(self, name: str) -> bool:
        return name in self._begun

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Count the time; after an error, as after Ctrl-C, LLVM ends with what it is at."""
        self.depth += 1
        try:
            with compile_time.counting():
                yield
        except BaseException:
            for _, code in self._begun.values():
                code.cancel()
            self._begun.clear()
            raise
        finally:
            self.depth -= 1

    def add(self, name: str, unit: Unit, record: Record) -> None:
        """Let LLVM compile a unit; `record` lacks only its code."""
        code = self._thread.submit(backend_of(numba_target()).object_code, unit)
        self._begun[name] = record, code

    def finish(self) -> None:
        """Wait for all code, load it, and keep it on disk."""
        for name, (record, code) in self._begun.items():
            whole = record._replace(code=code.result())
            if name.startswith(_OURS):
                code_store.keep(name, whole)
            loading.add(name, whole)
        self._begun.clear()

    def wait(self) -> None:
        """Return when LLVM has done its part of all that is begun."""
        self._thread.wait()


pending = _Pending()
if hasattr(os, "register_at_fork"):
    # A forked child would have neither the thread nor the locks that it holds.
    os.register_at_fork(before=pending.wait)


#: Separate functions by the intrinsic that calls them.
_separate: dict[Any, Separate] = {}


def separate(
    signature: Any, fastmath: set[str] = FAST, name: str | None = None
) -> Callable[[Any], Any]:
    """Decorate a function to be compiled as `Separate`; what it returns is called in others."""

    def decorate(function: Any) -> Any:
        return Separate(function, signature, fastmath, name or function.__qualname__).call

    return decorate


def load(function: Any) -> int:
    """Make a separate function ready to be called; returns its address."""
    return _separate[function].load()


def begin(function: Any) -> None:
    """Begin to compile a separate function; `load` waits for the end."""
    _separate[function].begin()


def load_entry(name: str, function: Any) -> Loaded:
    """The C function through which Python calls a separate function: see `entries`."""
    from admm_softmax.kernels.compiled import c_entries  # noqa: PLC0415  (imports this)

    target = _separate[function]
    with global_compiler_lock:
        if loading.find(name) is None:
            with pending.compiling():
                target.begin()
                pending.add(name, *c_entries.unit(name, target.name, target.signature))
                pending.finish()
        return loading.loaded(name)


def called_by(dispatcher: Any) -> list[Separate]:
    """The separate functions that a function calls, directly or through others."""
    found, function = [], dispatcher.py_func
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, Dispatcher):
            found += called_by(called)
        elif called.__hash__ is not None and called in _separate:
            found.append(_separate[called])
    return list(dict.fromkeys(found))


def _calling(target: Separate) -> Any:
    """What stands for a separate function where others call it."""

    def call(typing: Any, *arguments: Any) -> Any:
        if not pending.depth:  # code that is not ours calls it, and is loaded at once
            target.load()

        def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            kind = context.call_conv.get_function_type(signature.return_type, signature.args)
            function = cgutils.get_or_insert_function(builder.module, kind, target.name)
            return _emit_call(context, builder, signature, function, given)

        return _checked(target.signature, arguments), emit

    made = _intrinsic(call, len(target.signature.args))
    _separate[made] = target
    return made


def calling_at(signature: Any) -> Any:
    """An intrinsic that calls the function at an address, its first argument."""

    def call(typing: Any, address: Any, *arguments: Any) -> Any:
        def emit(context: Any, builder: Any, full: Any, given: Any) -> Any:
            kind = context.call_conv.get_function_type(signature.return_type, signature.args)
            function = builder.inttoptr(given[0], ir.PointerType(kind))
            return _emit_call(context, builder, signature, function, given[1:])

        _checked(signature, arguments)
        return signature.return_type(types.intp, *signature.args), emit

    return _intrinsic(call, 1 + len(signature.args))


def _intrinsic(function: Any, n_arguments: int) -> Any:
    """An intrinsic of so many arguments, which Numba reads off the function's signature."""
    names = ["typing", *(f"argument_{i}" for i in range(n_arguments))]
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    function.__signature__ = Signature(parameters)
    return intrinsic(function)


def _emit_call(context: Any, builder: Any, signature: Any, function: Any, given: Any) -> Any:
    _, result = context.call_conv.call_function(
        builder, function, signature.return_type, signature.args, given
    )
    return result


def _checked(signature: Any, given: Any) -> Any:
    """The signature, if these are its types: numbers are converted, arrays are not."""
    for wanted, got in zip(signature.args, given, strict=True):
        if wanted != got and isinstance(wanted, types.Array):
            raise TypeError(f"a separate function takes {wanted}, got {got}")
    return signature


@intrinsic  # type: ignore[untyped-decorator]
def keep_small(typing: Any) -> Any:
    """Let LLVM neither unroll nor vectorise the loops of this function: it compiles faster."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("optsize")
        return context.get_dummy_value()

    return types.void(), emit


@intrinsic  # type: ignore[untyped-decorator]
def use_wide_vectors(typing: Any) -> Any:
    """Let LLVM use registers of 512 bits in this function, which it avoids by itself."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite's own `add` refuses attributes that it does not list, as this one.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), emit
