"""LLVM's part of compiling: in a thread of its own, which ends, and whose errors are not lost."""

import ctypes
import os
import subprocess
import sys
import tempfile
import threading
from threading import Event, Thread

import numpy as np
import pytest
from llvmlite import ir
from numba import njit, types
from numba.core.registry import cpu_target

from admm_softmax.kernels import compile_clock
from admm_softmax.kernels.compiled import (
    background,
    code_store,
    entries,
    jit,
    loading,
    lowering,
    object_code,
    rows,
)
from admm_softmax.kernels.compiled.background import Background

SCALAR = types.float64(types.float64)
WORD = ir.IntType(64)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "admm-softmax-llvm"]


def wait_for_the_end():
    for thread in threads():
        thread.join(60)
    assert not threads()


def test_calls_run_in_order_in_a_thread_that_ends():
    runs, gate, order = Background(), Event(), []
    interval = sys.getswitchinterval()
    first = runs.submit(gate.wait, 60)
    others = [runs.submit(order.append, i) for i in range(5)]
    assert len(threads()) == 1
    others[3].cancel()
    gate.set()
    assert first.result(60)
    others[-1].result(60)
    assert order == [0, 1, 2, 4]
    wait_for_the_end()
    assert sys.getswitchinterval() == interval
    assert runs.submit(sum, [1, 2]).result(60) == 3  # in another thread
    wait_for_the_end()


def test_what_a_call_raises_reaches_whoever_waits():
    runs = Background()
    with pytest.raises(ZeroDivisionError):
        runs.submit(lambda: 1 // 0).result(60)
    assert runs.submit(int, "3").result(60) == 3
    wait_for_the_end()


def test_a_thread_that_never_began_is_replaced(monkeypatch):
    runs = Background()

    def interrupted(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(background.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            runs.submit(int)
    assert runs.submit(sum, [1, 2]).result(60) == 3
    wait_for_the_end()


def test_the_switch_interval_is_what_it_was_or_what_someone_set():
    runs, gate, interval = Background(), Event(), sys.getswitchinterval()
    runs.submit(gate.wait, 60)
    assert sys.getswitchinterval() < interval
    sys.setswitchinterval(0.003)
    gate.set()
    wait_for_the_end()
    try:
        assert sys.getswitchinterval() == pytest.approx(0.003, rel=1e-3)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_fork_waits_for_the_thread_and_the_child_compiles():
    code = """
import os, sys, warnings
from admm_softmax.kernels.compiled import folds, jit, rows
warnings.simplefilter("ignore")  # threads and fork: Python warns from 3.12 on
jit.begin(rows.gradient)
child = os.fork()
if child == 0:
    os._exit(0 if jit.load(rows.gradient) and jit.load(rows.predict) else 1)
print(os.waitpid(child, 0)[1], jit.load(rows.gradient) > 0)
"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": folder},
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
    assert done.stdout.split() == ["0", "True"]


def test_what_is_loaded_is_not_loaded_again():
    # Another process may keep a function on disk while this one compiles it.
    name = "admm_softmax.kernels.compiled.rows.predict"
    jit.load(rows.predict)
    before = loading.loaded(name)
    assert loading.add(name, code_store.Record("nothing", [], [], b"no code")) is before


def test_where_no_thread_can_be_had_calls_run_at_once(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background.Thread, "start", refuse)
    assert Background().submit(threading.current_thread).result(0) is threading.current_thread()


def doubled(x):
    return 2 * x


callee = jit.compiled(doubled)


def called(address, value):
    """What a compiled function of one double returns; Numba's functions write it to a pointer."""
    function = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p, ctypes.c_double
    )(address)
    found = ctypes.c_double()
    assert function(ctypes.byref(found), None, value) == 0
    return found.value


def uses_numba(x):
    return callee(x) + np.float64(pow(x, 3)) + divmod(x, 2.0)[1]


def test_functions_are_compiled_into_others_as_are_numbas_own():
    function = jit.separate(SCALAR, name="uses numba")(uses_numba)
    address = jit.load(function)
    assert called(address, 3.0) == 6.0 + 27.0 + 1.0
    library = jit._separate[function].dispatcher.overloads[SCALAR.args].library
    ours, numbas = ([unit for unit in library.unit.inlined if bool(unit.symbols) == own]
                    for own in (True, False))  # fmt: skip
    assert len(ours) == 1
    assert numbas
    symbol = jit._separate[function].dispatcher.overloads[SCALAR.args].fndesc.llvm_func_name
    defined = [one.name for one in library.get_function(symbol).module.functions]
    assert "define" in library.get_llvm_str()
    assert not any("doubled" in name for name in defined)
    assert "ret" in library.get_asm_str()


def test_numbas_own_functions_may_call_them():
    @njit
    def plain(x):
        return callee(x) + 1

    assert plain(2.0) == 5.0
    assert plain(3) == 7


def test_an_error_of_llvms_reaches_the_caller_and_nothing_is_left(monkeypatch):
    function = jit.separate(SCALAR, name="fails at first")(doubled)
    with monkeypatch.context() as patch:

        def fail(self, unit):
            raise RuntimeError("LLVM says no")

        patch.setattr(object_code.Backend, "object_code", fail)
        with pytest.raises(RuntimeError, match="LLVM says no"):
            jit.load(function)
    assert not jit.pending._begun
    assert not compile_clock.is_compiling()
    wait_for_the_end()
    assert called(jit.load(function), 4.0) == 8.0


def test_code_that_is_begun_is_loaded_by_whoever_waits_first():
    first, second = (jit.separate(SCALAR, name=name)(doubled) for name in ("begun", "waited for"))
    jit.begin(first)
    name = jit._separate[first].name
    assert name in jit.pending
    assert name not in loading._loaded
    other = Thread(target=jit.load, args=(second,))
    other.start()
    other.join(60)
    assert name in loading._loaded
    assert called(jit.load(first), 1.5) == 3.0
    wait_for_the_end()


def test_a_twin_has_its_address_when_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(loading, "_loaded", {})
    place = "admm_softmax.kernels.compiled.rows:predict"
    twin = loading.Twin(place)
    name = place.replace(":", ".")
    assert name in jit.pending
    assert twin.__index__() == loading._loaded[name].address
    assert loading.Twin(place).__index__() == twin.__index__()
    assert entries.Struct("q").pack(twin)


@pytest.mark.parametrize(
    "kind",
    [
        ir.IntType(1), ir.IntType(8), ir.IntType(64), ir.IntType(128), ir.HalfType(),
        ir.DoubleType(), WORD.as_pointer(), ir.VectorType(ir.DoubleType(), 8),
        ir.VectorType(ir.FloatType(), 4), ir.ArrayType(ir.FloatType(), 3),
        ir.LiteralStructType([ir.IntType(8), WORD, ir.IntType(1)]),
        ir.LiteralStructType([ir.IntType(32), ir.ArrayType(ir.IntType(8), 3)]),
        ir.LiteralStructType([ir.IntType(8), WORD], packed=True),
        ir.LiteralStructType([ir.IntType(8), ir.IntType(128)]),
        cpu_target.target_context.get_value_type(types.Array(types.float32, 3, "C")),
    ],
    ids=str,
)  # fmt: skip
def test_sizes_are_llvms(kind):
    assert lowering.size_of(kind) == cpu_target.target_context.get_abi_sizeof(kind)
