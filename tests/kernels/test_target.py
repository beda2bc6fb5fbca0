"""Compiled code and the arrays laid out for it follow the CPU that Numba compiles for."""

import os
import subprocess
import sys

import numpy as np
import pytest
from llvmlite import binding
from numba.core.registry import cpu_target

from admm_softmax.kernels.compiled import jit, layout, target, thin
from tests.trust.effort import DEEP

#: Compares compiled folds with the specification; prints the width of the vectors.
CHECK = """
import numpy as np, scipy.sparse as sp
from admm_softmax.design import as_design
from admm_softmax.kernels import rows, thresholds
from admm_softmax.kernels.compiled import target

rng = np.random.default_rng(0)
n, d, K = 70, 300, 7
X, W = rng.standard_normal((n, d)), rng.standard_normal((d + 1, K)) / 20
arrays = rng.integers(0, K, n), np.full(n, 1 / n)
for form, tol in ((X.astype(np.float32), 1e-5), (sp.csr_array(X), 1e-12)):
    design = as_design(form)
    handles = [design.place(array) for array in arrays]
    folds = []
    for limit in (0, np.inf):
        thresholds.COMPILED_FROM_PRODUCTS = limit
        folds.append(design.fold(W, rows.linearise, handles))
    got, expected = folds
    np.testing.assert_allclose(got.product, expected.product, rtol=tol, atol=tol)
    np.testing.assert_allclose(got.rows.held, expected.rows.held, rtol=tol, atol=tol)
    np.testing.assert_allclose(got.sums.values, expected.sums.values, rtol=tol)
print(target.VECTOR_BYTES)
"""
X86 = "x86_64-unknown-linux-gnu"
on_x86 = pytest.mark.skipif(
    not binding.get_process_triple().startswith("x86_64"), reason="names CPUs of x86"
)


def run(code, cache, **environment):
    known = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    settings = {**known, "NUMBA_CACHE_DIR": str(cache), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


#: What a machine with wide vectors says of itself.
OTHER_MACHINE = """
from llvmlite import binding
class Features(dict):
    def flatten(self): return "+avx512f"
binding.get_host_cpu_features = lambda: Features(avx512f=True, avx2=True)
binding.get_host_cpu_name = lambda: "skylake-avx512"
"""


@on_x86
def test_machines_of_different_width_may_share_a_cache(tmp_path):
    host = binding.get_host_cpu_features()
    targets = [("generic", "", 16)]
    if host.get("avx2") and host.get("fma"):
        targets += [("haswell", "", 32)]
    if DEEP:
        targets += [("x86-64", "-avx,-avx2", 16)]
        targets += [("generic", "+avx2,+fma", 32)] if len(targets) > 2 else []
        targets += [("skylake-avx512", "", 64)] if host.get("avx512f") else []
    # The first again: compiled by one machine, then run by another.
    for cpu, features, width in [*targets, targets[0]]:
        settings = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features}
        assert run(CHECK, tmp_path, **settings) == [str(width)], (cpu, features)
    # Nor does the width depend on the machine that compiles.
    settings = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert run(OTHER_MACHINE + CHECK, tmp_path, **settings) == ["16"]


@pytest.mark.parametrize(
    ("cpu", "features", "width"),
    [
        ("generic", "", 16),
        ("core2", "", 16),
        ("haswell", "", 32),
        ("znver3", "", 32),
        ("skylake-avx512", "", 64),
        ("generic", "+avx2", 32),
        ("skylake-avx512", "-avx512f", 32),
    ],
)
def test_the_width_is_what_llvm_makes_of_name_and_features(cpu, features, width):
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    assert target.vector_bytes(X86, cpu, features) == width
    assert target.vector_registers(X86, width) == (32 if width == 64 else 16)


def test_numba_compiles_for_what_the_width_comes_from():
    magic = cpu_target.target_context.codegen().magic_tuple()
    assert tuple(map(str, magic)) == target._TARGET


def test_large_fits_run_where_numba_may_not_compile(tmp_path):
    code = """
import numpy as np
from admm_softmax.problem import Problem
X = np.random.default_rng(0).standard_normal((30_000, 40))
problem = Problem.of(X, np.arange(30_000) % 30, 1e-3)
assert not problem.design.compiles(30)
print(np.isfinite(problem.at(np.zeros(problem.shape)).gradient).all())
"""
    assert run(code, tmp_path, NUMBA_DISABLE_JIT="1") == ["True"]


def test_padding_is_whole_tiles():
    for itemsize in (4, 8):
        assert layout.panel(itemsize) * itemsize == target.TILES.vectors * target.VECTOR_BYTES
        assert layout.padded(1, itemsize) == layout.panel(itemsize)
    assert jit.load(thin.PRODUCTS[np.dtype(np.float64)].flush)
