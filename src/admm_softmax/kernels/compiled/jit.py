"""How functions are compiled here: on first call, without the GIL, cached on disk."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, lru_cache
from inspect import Parameter, Signature
from pathlib import Path
from types import FunctionType
from typing import Any

from llvmlite import binding, ir
from numba import njit
from numba.core import cgutils, event, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from admm_softmax._interrupts import check_interrupt
from admm_softmax.kernels import compile_clock

#: Sums may be reordered and products contracted; infinities and NaNs keep their meaning.
FAST = {"nsz", "arcp", "contract", "reassoc"}
#: Contraction alone, for code whose cancellations are meant.
STRICT = {"contract"}


#: For functions that Python never calls: without the wrappers that convert its objects.
INTERNAL = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


class _CompileTime(event.TimingListener):  # type: ignore[misc]
    """Adds up what Numba spends compiling; loading from its cache does not count.

    The first compilation is announced where `compile_clock.announces()`: it takes seconds, in
    which nothing else is shown.
    """

    is_announced = False

    def on_start(self, happening: Any) -> None:
        """Numba begins to compile a function."""
        if not self.is_announced and compile_clock.announces():
            self.is_announced = True
            print(announcement(happening.data["dispatcher"]), file=sys.stderr, flush=True)
        super().on_start(happening)

    @property
    def seconds(self) -> float:
        """Seconds spent compiling so far."""
        return float(self.duration) if self.done else 0.0

    @property
    def running(self) -> bool:
        """Whether it compiles now."""
        return bool(self._depth > 0)


def announcement(dispatcher: Any) -> str:
    """What is said when compiling begins, with where the code will be kept."""
    file = getattr(getattr(dispatcher, "_cache", None), "_cache_path", None)
    if file is None:
        kept = "not kept, as no folder can be written to: set NUMBA_CACHE_DIR to one"
    else:
        kept = f"kept in {file}"
    return f"admm-softmax: compiling for this machine, a few seconds; {kept}"


compile_time = _CompileTime()
event.register("numba:compile", compile_time)


def compiled(function: Any, fastmath: set[str] = FAST, **options: Any) -> Any:
    """Compile on first call; without a cache where there is no place to write to."""
    settings = {"nogil": True, "fastmath": fastmath, "error_model": "numpy", **options}
    try:
        dispatcher = njit(cache=True, **settings)(function)
    except RuntimeError:  # a read-only installation and no home directory
        return njit(**settings)(function)
    # Numba takes what is cached for fresh while the function's own file is unchanged; but
    # the functions it calls are compiled into it, and live in other files.
    file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if file is not None:
        file._source_stamp = _stamp()
    return dispatcher


@lru_cache(maxsize=1)
def _stamp() -> tuple[float, int]:
    """When any kernel last changed, and the size of all of them."""
    states = [path.stat() for path in sorted(Path(__file__).parents[1].rglob("*.py"))]
    return max(s.st_mtime for s in states), sum(s.st_size for s in states)


def compiled_strictly(function: Any) -> Any:
    """As `compiled`, but sums stay in their order."""
    return compiled(function, STRICT)


def specialised(template: Any, name: str, **meanings: Any) -> Any:
    """Compile a template with these meanings of some of its global names.

    A closure would do the same, but Numba keys its cache on disk by what a closure holds, and
    compiled functions have another key in every process. Under a name of its own, a copy of
    the template with other globals is found again.
    """
    return compiled(with_globals(template, name, **meanings), no_cfunc_wrapper=True, _nrt=False)


def with_globals(template: Any, name: str, **meanings: Any) -> Any:
    """A copy of a template with these meanings of some of its global names."""
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
    finds the function by its symbol. So this must be loaded before what calls it, also where
    that comes from the cache: `load` looks for such calls in the source.
    """

    def __init__(self, function: Any, signature: Any, fastmath: set[str], name: str) -> None:
        self.signature, self.fastmath = signature, fastmath
        self.symbol = f"admm_softmax.{function.__module__}.{name}"
        self.dispatcher = compiled(function, fastmath, **INTERNAL)
        self.call = _calling(self)
        self._address = 0

    def load(self) -> int:
        """Compile it, or take it from the cache; returns its address."""
        # Numba's own lock: it is held where code that calls this is compiled, so with a second
        # lock two threads could each wait for the other's.
        with global_compiler_lock:
            if not self._address:
                load_called(self.dispatcher)
                try:
                    self.dispatcher.compile(self.signature.args)
                except RuntimeError as error:
                    # Ctrl-C within a call back from LLVM is lost, and with it the code.
                    if "no compiled object yet" in str(error):
                        raise KeyboardInterrupt from error
                    raise
                check_interrupt()  # what was pressed while LLVM called back
                result = self.dispatcher.overloads[self.signature.args]
                name = result.fndesc.llvm_func_name
                self._address = result.library.get_pointer_to_function(name)
                binding.add_symbol(self.symbol, self._address)
        return self._address


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


@cache
def callable_from_python(function: Any) -> Any:
    """A separate function as one that Python can call: compiled again, with what that needs."""
    target = _separate[function]
    return ready(compiled(with_globals(target.dispatcher.py_func, "python"), target.fastmath))


def load_called(dispatcher: Any) -> None:
    """Load the separate functions that a function calls, directly or through others."""
    function = dispatcher.py_func
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, Dispatcher):
            load_called(called)
        elif called.__hash__ is not None and called in _separate:
            _separate[called].load()


def ready(dispatcher: Any) -> Any:
    """A function that can be called from Python: what it calls is loaded."""
    load_called(dispatcher)
    return dispatcher


def _calling(target: Separate) -> Any:
    """What stands for a separate function where others call it."""

    def call(typing: Any, *arguments: Any) -> Any:
        target.load()

        def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            kind = context.call_conv.get_function_type(signature.return_type, signature.args)
            function = cgutils.get_or_insert_function(builder.module, kind, target.symbol)
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
