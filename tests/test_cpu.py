"""Measured constants follow the kind of CPU."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from admm_softmax import _cpu


@pytest.mark.parametrize(("features", "wide"), [({"AVX512F": True}, True), ({"AVX2": True}, False)])
def test_constants_follow_the_width_of_vectors(monkeypatch, features, wide):
    monkeypatch.setattr(
        _cpu, "import_module", lambda name: SimpleNamespace(__cpu_features__=features)
    )
    _cpu.has_wide_vectors.cache_clear()
    assert _cpu.has_wide_vectors() is wide
    assert _cpu.measured(wide=1, narrow=2) == (1 if wide else 2)
    monkeypatch.undo()
    _cpu.has_wide_vectors.cache_clear()


def test_numpy_tells_what_the_cpu_has():
    # Where NumPy no longer tells, every CPU would silently be taken for a narrow one.
    code = "import numpy._core._multiarray_umath as m; print(type(m.__cpu_features__['AVX512F']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "bool" in done.stdout or "KeyError" in done.stderr  # no such name off x86
