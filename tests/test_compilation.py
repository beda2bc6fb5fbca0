"""Compiling ahead, and a clock that leaves compiling out."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest

from admm_softmax import SoftmaxRegressionCV, softmax_path
from admm_softmax.kernels import compile_clock
from admm_softmax.kernels.compile_clock import compile_seconds
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
import numpy as np
import scipy.sparse as sp
from admm_softmax import (
    ADMM, LBFGS, NewtonCG, Problem, SoftmaxRegression, SoftmaxRegressionCV, penalties, run, warm_up
)
from admm_softmax.design import DenseDesign, HalfDesign
from admm_softmax.kernels.compiled import loading
from admm_softmax.kernels.thresholds import COMPILED_FROM_PRODUCTS, repays_panels

warm_up()
warm = set(loading._loaded)
print(len(warm))

def fit(rows, labels, *solvers):
    problem = Problem.of(rows, labels, 1e-3)
    assert problem.design.compiles(problem.n_classes)
    for solver in solvers:
        run(problem, solver, max_iter=2, tol=0.0)

def in_bits(single):
    return HalfDesign((single.view(np.uint32) >> 16).astype(np.uint16), half="bfloat16")

random = np.random.default_rng(0)
solvers = LBFGS(preconditioner="gram"), NewtonCG(), ADMM()
# By panels, hard labels and soft ones, many classes.
X, y = random.standard_normal((30_000, 20)), np.arange(30_000) % 10
thin = sp.csr_array(np.where(X > 1.5, X, 0.0))
floats = [form.astype(f"float{bits}") for form in (X, thin) for bits in (32, 64)]
soft = random.dirichlet(np.ones(10), 30_000)
for rows in (X.astype(np.float16), in_bits(floats[0]), *floats):
    fit(rows, y, *solvers)
    fit(rows, soft, LBFGS(), NewtonCG(), ADMM())
    fit(rows, np.arange(30_000) % 40, LBFGS(), ADMM())
# By tiles: few rows, but so many columns that the products alone are enough.
n = 5_000
wide = random.standard_normal((n, COMPILED_FROM_PRODUCTS // (3 * n) + 1), np.float32)
assert not repays_panels(wide.shape[1], 3)
for rows in (wide.astype(np.float16), in_bits(wide), wide, wide.astype(np.float64)):
    fit(rows, np.arange(n) % 3, LBFGS(), NewtonCG())
    fit(rows, random.dirichlet(np.ones(3), n), LBFGS())
fit(wide.astype(np.float64)[:, :300].repeat(10, axis=0), np.arange(10 * n) % 3, ADMM())
# Rows that products cannot read where they lie.
unaligned = np.zeros(X.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(X.shape)
unaligned[:] = X
fit(unaligned, y, *solvers)
# Row state in single precision.
fit(DenseDesign(floats[0], state_dtype=np.float32), y, ADMM(), NewtonCG())
SoftmaxRegression(max_iter=3, tol=1e-12).fit(X, y).predict(X)
SoftmaxRegressionCV([0.1, 0.01], cv=3, max_iter=3, tol=1e-12).fit(floats[0], y)
for l1_ratio in (1.0, 0.5):
    SoftmaxRegression(l1_ratio=l1_ratio, max_iter=3, tol=1e-12).fit(X[:300], y[:300])
SoftmaxRegression(penalty=penalties.GroupLasso(), max_iter=3).fit(X[:300], y[:300])
for name in sorted(set(loading._loaded) - warm):
    print(name)
"""

#: Prints seconds compiled over a time limit, iterations within it, how many functions there are,
#: and those that other forms of the same rows add.
VARIANTS = """
import numpy as np
import scipy.sparse as sp
from admm_softmax import LBFGS, Problem, run
from admm_softmax.kernels.compile_clock import compile_seconds
from admm_softmax.kernels.compiled import loading

X, y = np.random.default_rng(0).standard_normal((20_000, 12)), np.arange(20_000) % 10
thin = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))

def fit(rows, time_limit=None):
    before, solver = compile_seconds(), LBFGS(preconditioner="gram")
    problem = Problem.of(rows, y, 1e-3)
    result = run(problem, solver, max_iter=3, tol=0.0, time_limit=time_limit)
    return compile_seconds() - before, result.n_iter

seconds, _ = fit(X.astype(np.float32))
limit = seconds / 3  # the other precision takes about as long to compile
seconds, n_iter = fit(X, limit)
print(seconds / limit, n_iter)
for dtype in (np.float32, np.float64):
    fit(thin.astype(dtype))
before = set(loading._loaded)
print(len(before))
for dtype in (np.float32, np.float64):
    read_only, short, long = X.astype(dtype), thin.astype(dtype), thin.astype(dtype)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    for array in (read_only, short.data, short.indices, short.indptr):
        array.flags.writeable = False
    for rows in (read_only, np.asfortranarray(read_only), short, long):
        fit(rows)
for name in sorted(set(loading._loaded) - before):
    print(name)
"""


def run_alone(code, **settings):
    """Run code in a process of its own, where nothing is loaded yet; returns what it printed."""
    environment = {**os.environ, **settings}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def fit(cache):
    printed, words = run_alone(FIT, NUMBA_CACHE_DIR=str(cache))
    said = words.count("compiling for this machine")
    return [*map(float, printed.split()[-3:]), said, words]


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
    printed, words = run_alone(FITS)  # code that is kept may be used
    n_warm, *later = printed.splitlines()
    assert int(n_warm) > 20
    assert later == []
    assert "compiling for" not in words  # nobody asked, and nobody looks


class Terminal(io.StringIO):
    def isatty(self):
        return True


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


def test_compiling_is_announced_at_a_terminal_without_a_request(monkeypatch):
    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    compile_time = compile_clock.CompileTime()
    for _ in range(2):
        with compile_time.counting():
            assert said.getvalue().count("compiling for this machine") == 1
    monkeypatch.setattr(sys, "stderr", None)  # as in programs without a console
    assert not compile_clock.announces()


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


def test_forms_of_the_same_rows_need_no_variant_and_a_time_limit_leaves_compiling_out(tmp_path):
    printed, _ = run_alone(VARIANTS, NUMBA_CACHE_DIR=str(tmp_path))
    first, n_before, *added = printed.splitlines()
    compiled_over_limit, n_iter = map(float, first.split())
    assert compiled_over_limit > 1
    assert n_iter > 1
    assert int(n_before) > 10
    assert added == []


def test_a_time_limit_does_not_count_compiling(monkeypatch):
    seconds = iter([0.0, 9.0])  # compiled so far, before and after a step
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(loop, "compile_seconds", lambda: next(seconds))
    monkeypatch.setattr(loop.time, "perf_counter", lambda: next(clock))
    assert loop._timed_next(iter(["iterate"])) == ("iterate", 1.0)
    assert np.isfinite(compile_seconds())
