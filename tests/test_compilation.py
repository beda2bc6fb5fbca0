"""Compiling ahead, and a clock that leaves compiling out."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import LBFGS, Problem, SoftmaxRegressionCV, run, softmax_path
from admm_softmax.kernels import compile_clock
from admm_softmax.kernels.compile_clock import compile_seconds
from admm_softmax.kernels.compiled import loading
from admm_softmax.path.fitter import Fitter
from admm_softmax.solvers import loop

FIT = """
import sys
import time
import numpy as np
from admm_softmax import LBFGS, Problem, run
from admm_softmax.kernels.compile_clock import compile_seconds

assert compile_seconds() == 0.0
assert "numba" not in sys.modules  # so that loading it is counted
X = np.random.default_rng(0).standard_normal((30_000, 20)).astype(np.float32)
problem = Problem.of(X, np.arange(30_000) % 10, 1e-3)
begin = time.perf_counter()
history = run(problem, LBFGS(preconditioner="gram"), max_iter=3, tol=0.0, verbose=True).history
print(compile_seconds(), time.perf_counter() - begin, history["seconds"][-1])
"""

FITS = """
import itertools
import numpy as np
import scipy.sparse as sp
from admm_softmax import ADMM, LBFGS, NewtonCG, Problem, SoftmaxRegression, penalties, run, warm_up
from admm_softmax.design import HalfDesign
from admm_softmax.kernels.compiled import loading

warm_up()
warm = set(loading._loaded)
print(len(warm))
X, y = np.random.default_rng(0).standard_normal((30_000, 20)), np.arange(30_000) % 10
thin = sp.csr_array(np.where(X > 1.5, X, 0.0))
floats = [form.astype(f"float{bits}") for form in (X, thin) for bits in (32, 64)]
solvers = LBFGS(preconditioner="gram"), NewtonCG(), ADMM()
for rows, solver in itertools.product([X.astype(np.float16), *floats], solvers):
    run(Problem.of(rows, y, 1e-3), solver, max_iter=2, tol=0.0)
bits = HalfDesign((floats[0].view(np.uint32) >> 16).astype(np.uint16), half="bfloat16")
run(Problem.of(bits, y, 1e-3), ADMM(), max_iter=2, tol=0.0)
for l1_ratio in (1.0, 0.5):
    SoftmaxRegression(l1_ratio=l1_ratio, max_iter=3, tol=1e-12).fit(X[:300], y[:300])
SoftmaxRegression(penalty=penalties.GroupLasso(), max_iter=3).fit(X[:300], y[:300])
for name in sorted(set(loading._loaded) - warm):
    print(name)
"""


def fit(cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", FIT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    said = done.stderr.count("compiling for this machine")
    return [*map(float, done.stdout.split()[-3:]), said, done.stderr]


def test_compiling_is_not_on_the_clock(tmp_path):
    compiling, wall, clock, said, words = fit(tmp_path)
    assert compiling > 0.0  # a fresh cache
    assert clock <= wall - compiling
    assert said == 1
    assert f"kept in {tmp_path}" in words
    compiling, _, _, said, _ = fit(tmp_path)
    assert compiling == 0.0  # all of it was kept
    assert said == 0


def test_what_is_warmed_up_is_not_compiled_again():
    # In a process of its own, where nothing is loaded yet; code that is kept may be used.
    done = subprocess.run([sys.executable, "-c", FITS], capture_output=True, text=True, check=True)
    n_warm, *later = done.stdout.splitlines()
    assert int(n_warm) > 20
    assert later == []
    assert "compiling for" not in done.stderr  # nobody asked, and nobody looks


def test_compiling_is_announced_once_and_on_request(monkeypatch):
    said = io.StringIO()  # which is no terminal
    monkeypatch.setattr(sys, "stderr", said)
    compile_time = compile_clock.CompileTime()
    with compile_time.counting():
        assert said.getvalue() == ""
    with compile_clock.announcing(True):
        for _ in range(2):
            with compile_time.counting():
                assert said.getvalue().count("compiling for this machine") == 1


def test_time_counts_once_and_loading_the_compiler_cannot_be_interrupted(monkeypatch):
    now = iter([1.0, 5.0])
    monkeypatch.setattr(compile_clock.time, "perf_counter", lambda: next(now))
    clock = compile_clock.CompileTime()
    with clock.counting(compiles=False):
        assert not clock.running
        with clock.counting():
            assert clock.running
        assert not clock.running
    assert clock.seconds == 4.0


@pytest.mark.parametrize("verbose", [True, False])
def test_a_verbose_path_announces_compiling(verbose, monkeypatch):
    asked = []

    def fit(self, problems, starts, name="fit"):
        asked.append(compile_clock.announces())
        return original(self, problems, starts, name)

    original = Fitter.fit
    monkeypatch.setattr(Fitter, "fit", fit)
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # which is no terminal
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 3
    softmax_path(X, y, [0.1], verbose=verbose)
    SoftmaxRegressionCV([0.1], cv=2, verbose=verbose).fit(X, y)
    assert set(asked) == {verbose}


def test_where_code_cannot_be_kept_a_setting_is_named():
    assert "NUMBA_CACHE_DIR" in compile_clock.announcement(None)


def variants():
    """How many variants of compiled functions there are in this process, loaded or compiled."""
    return len(loading._loaded)


def test_read_only_rows_and_long_indices_need_no_variant_of_their_own():
    X = np.random.default_rng(0).standard_normal((20_000, 12))
    y = np.arange(20_000) % 10
    settings = {"max_iter": 2, "tol": 0.0}
    thin = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    for rows in (X, thin):
        run(Problem.of(rows, y, 1e-3), LBFGS(preconditioner="gram"), **settings)
    before = variants()
    assert before > 0
    X.flags.writeable = False
    long = thin.copy()
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    for array in (thin.data, thin.indices, thin.indptr):
        array.flags.writeable = False
    for rows in (X, thin, long):
        run(Problem.of(rows, y, 1e-3), LBFGS(preconditioner="gram"), **settings)
    assert variants() == before


def test_a_time_limit_does_not_count_compiling(monkeypatch):
    seconds = iter([0.0, 9.0])  # compiled so far, before and after a step
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(loop, "compile_seconds", lambda: next(seconds))
    monkeypatch.setattr(loop.time, "perf_counter", lambda: next(clock))
    assert loop._timed_next(iter(["iterate"])) == ("iterate", 1.0)
    assert np.isfinite(compile_seconds())
