"""Measured constants follow the kind of CPU."""

import os
import platform
from types import SimpleNamespace

import numba
import pytest
from llvmlite import binding
from numba.core.registry import cpu_target

from admm_softmax import _cpu
from admm_softmax.kernels.compiled.target import VECTOR_BYTES
from admm_softmax.report.provenance import describe_machine

on_x86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="names CPUs of x86"
)


@pytest.fixture
def numpy_says(monkeypatch):
    """A function that lets NumPy report features of a CPU."""

    def say(features):
        told = SimpleNamespace(__cpu_features__=features)
        monkeypatch.setattr(_cpu, "import_module", lambda name: told)
        forget()

    def forget():
        _cpu.vector_instructions.cache_clear()
        _cpu._is_wide.cache_clear()

    for name in _cpu._TOLD_NUMBA:
        monkeypatch.delenv(name, raising=False)
    yield say
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize(
    ("features", "name"),
    [
        ({"AVX2": True, "AVX512F": True}, "AVX-512"),
        ({"AVX2": True, "AVX512F": False}, "AVX2"),
        ({"ASIMD": True, "AVX2": False}, "NEON"),
        ({"SSE42": True}, None),
    ],
)
def test_constants_follow_the_width_of_vectors(numpy_says, features, name):
    numpy_says(features)
    assert _cpu.vector_instructions() == name
    assert _cpu.measured(wide=1, narrow=2) == (1 if name == "AVX-512" else 2)
    assert (f"({name})" in describe_machine()) == (name is not None)


@on_x86
@pytest.mark.parametrize(
    ("name", "features", "is_wide"),
    [
        ("haswell", "", False),
        ("skylake-avx512", "", True),
        ("znver3", "+avx512f", True),
        ("nehalem", "", False),
    ],
)
def test_constants_follow_what_numba_is_told(monkeypatch, name, features, is_wide):
    monkeypatch.setenv("NUMBA_CPU_NAME", name)
    monkeypatch.setenv("NUMBA_CPU_FEATURES", features)
    assert _cpu.measured(wide=True, narrow=False) == is_wide


@pytest.fixture
def wide_host(monkeypatch):
    """LLVM reports a CPU with AVX-512, and Numba is told nothing yet."""
    told = binding.targets.FeatureMap(sse2=True, avx=True, avx2=True, avx512f=True)
    monkeypatch.setattr(binding, "get_host_cpu_name", lambda: "skylake-avx512")
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: type(told)(told))
    for name in _cpu._TOLD_NUMBA:
        monkeypatch.delenv(name, raising=False)
    _cpu._is_wide.cache_clear()
    yield
    monkeypatch.undo()
    _cpu._is_wide.cache_clear()
    numba.config.reload_config()


@on_x86
@pytest.mark.usefixtures("wide_host")
@pytest.mark.parametrize(
    ("settings", "is_wide"),
    [
        ({"NUMBA_CPU_NAME": "generic"}, False),
        ({"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "+avx512f"}, True),
        ({"NUMBA_CPU_NAME": "x86-64"}, True),  # this CPU's features are added
        ({"NUMBA_CPU_NAME": "nocona"}, False),
        ({"NUMBA_CPU_NAME": "nocona", "NUMBA_ENABLE_AVX": "1"}, True),
        ({"NUMBA_CPU_FEATURES": "-avx512f"}, False),
        ({"NUMBA_ENABLE_AVX": "0"}, False),
        ({"NUMBA_ENABLE_AVX": "1"}, True),
        ({"NUMBA_ENABLE_AVX": "0", "NUMBA_CPU_FEATURES": "+avx512f"}, True),
    ],
    ids=str,
)
def test_constants_follow_what_numba_makes_of_its_settings(settings, is_wide, monkeypatch):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert _cpu.measured(wide=True, narrow=False) == is_wide
    numba.config.reload_config()
    codegen = cpu_target.target_context.codegen()
    cpu, features = codegen._get_host_cpu_name(), codegen._get_host_cpu_features()
    assert (_cpu.vector_bytes(binding.get_process_triple(), cpu, features) == 64) == is_wide


@pytest.mark.usefixtures("wide_host")
def test_a_setting_that_is_no_number_leaves_avx_on(monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_AVX", "no")
    with pytest.warns(RuntimeWarning, match="NUMBA_ENABLE_AVX"):
        numba.config.reload_config()
    assert numba.config.ENABLE_AVX
    assert "+avx512f" in _cpu._features(None, "no")


def test_constants_and_tiles_are_of_one_cpu(monkeypatch):
    # In a profile of `make test-machines` Numba is told already; else by a name alone, to which
    # it adds this CPU's features.
    if "NUMBA_CPU_NAME" not in os.environ:
        monkeypatch.setenv("NUMBA_CPU_NAME", binding.get_host_cpu_name())
    assert _cpu.measured(wide=True, narrow=False) == (VECTOR_BYTES == 64)


def test_numpy_tells_what_the_cpu_has():
    # Where NumPy no longer tells, every CPU would silently be taken for a narrow one.
    from numpy._core._multiarray_umath import __cpu_features__

    for name in _cpu._VECTORS.values():
        assert isinstance(__cpu_features__[name], bool)
