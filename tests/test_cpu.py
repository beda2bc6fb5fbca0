"""Measured constants follow the kind of CPU."""

from types import SimpleNamespace

import pytest

from admm_softmax import _cpu
from admm_softmax.report.provenance import describe_machine


@pytest.fixture
def numpy_says(monkeypatch):
    """A function that lets NumPy report features of a CPU."""

    def say(features):
        told = SimpleNamespace(__cpu_features__=features)
        monkeypatch.setattr(_cpu, "import_module", lambda name: told)
        _cpu.vector_instructions.cache_clear()

    yield say
    monkeypatch.undo()
    _cpu.vector_instructions.cache_clear()


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


def test_numpy_tells_what_the_cpu_has():
    # Where NumPy no longer tells, every CPU would silently be taken for a narrow one.
    from numpy._core._multiarray_umath import __cpu_features__

    for name in _cpu._VECTORS.values():
        assert isinstance(__cpu_features__[name], bool)
