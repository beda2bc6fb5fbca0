"""Ctrl-C at any moment: what is finished is kept, and nothing is left half done."""

import os
import signal
import subprocess
import sys
import time
import warnings
from statistics import median

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from admm_softmax import (
    Problem,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    _interrupts,
    run,
    softmax_path,
    sweep_rho_alpha,
)
from admm_softmax._interrupts import check_interrupt, deferred_interrupt, held_interrupt
from admm_softmax.path import warm_starts
from admm_softmax.path.fitter import Fitter
from admm_softmax.path.grid import _Work
from admm_softmax.solvers import LBFGS
from tests.problems import make

pytestmark = pytest.mark.usefixtures("ctrl_c")

X, Y = make(60, 4, 3)
ALPHAS = [1.0, 0.3, 0.1, 0.03]
TRIES = 50  # for each of four


class Interrupter:
    """Presses Ctrl-C once, at a random moment between the beginning and the end of a call."""

    def __init__(self, call, seed):
        self.call, self.random = call, np.random.default_rng(seed)
        call()  # what is loaded once is loaded
        self.seconds = median(self._seconds_of_a_call() for _ in range(3))
        self.fired, self.count = False, 0

    def _seconds_of_a_call(self):
        begin = time.perf_counter()
        self.call()
        return time.perf_counter() - begin

    def rounds(self, count):
        """So many rounds; and up to ten times as many, until Ctrl-C came in a quarter of `count`.

        How long a call takes is only known from calls before it, which other programs may slow.
        """
        for done in range(10 * count):
            if done >= count and self.count > count / 4:
                break
            yield
        assert self.count > count / 4

    def _fire(self, number, frame):
        if _interrupts._current is not None:  # else the call has ended, or not begun
            self.fired = True
            signal.raise_signal(signal.SIGINT)

    def __call__(self):
        """What the call returned, or None where it raised KeyboardInterrupt."""
        self.fired = False
        before = signal.signal(signal.SIGALRM, self._fire)
        begin = time.perf_counter()
        try:
            signal.setitimer(signal.ITIMER_REAL, self.random.uniform(1e-5, self.seconds))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.call()
        except KeyboardInterrupt:
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            self.count += self.fired
            if not self.fired:  # a whole call, and the newest measurement of one
                self.seconds = time.perf_counter() - begin
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            assert _interrupts._current is None


def blas():
    return [library["num_threads"] for library in threadpool_info()]


@pytest.fixture
def finished(monkeypatch):
    """The penalties whose fits were finished, as the path sees them."""
    seen = []
    original = Fitter.fit

    def fit(self, problems, starts, name):
        results = original(self, problems, starts, name)
        if all(result.status != "interrupted" for result in results):
            seen.append(problems[0].penalty.alpha)
        return results

    monkeypatch.setattr(Fitter, "fit", fit)
    return seen


def test_a_path_keeps_every_finished_fit(finished):
    before = blas()
    press = Interrupter(lambda: softmax_path(X, Y, ALPHAS, X_val=X, y_val=Y), seed=0)
    for _ in press.rounds(TRIES):
        finished.clear()
        path = press()
        if path is None:
            assert not finished
        else:
            assert path.alphas.tolist()[: len(finished)] == finished
            assert len(path.results) == len(path.val_loss) == len(path.coefs) == len(path.alphas)
    assert blas() == before


def test_a_cross_validation_keeps_every_finished_penalty(finished):
    before = blas()
    model = SoftmaxRegressionCV(ALPHAS, cv=3)
    press = Interrupter(lambda: model.fit(X, Y), seed=1)
    for _ in press.rounds(TRIES):
        finished.clear()
        for name in [name for name in vars(model) if name.endswith("_")]:
            delattr(model, name)
        press()
        done = [alpha for alpha in finished if alpha in ALPHAS]
        if not hasattr(model, "coef_"):
            assert not done
        else:
            # The last of `finished` may be the refit, under a penalty of the path.
            assert model.alphas_.tolist()[: len(set(done))] == sorted(set(done), reverse=True)
            assert model.scores_.shape == (3, len(model.alphas_))
            assert model.predict(X).shape == (60,)
    assert blas() == before


@pytest.mark.parametrize("kept", [True, False], ids=["in a directory", "in memory"])
def test_a_sweep_keeps_every_finished_cell(kept, tmp_path, monkeypatch):
    finished = []
    original = _Work._solved

    def solved(self, *arguments):
        cell = original(self, *arguments)
        finished.append((cell.rho, cell.alpha))
        return cell

    monkeypatch.setattr(_Work, "_solved", solved)
    train = Problem.of(X, Y)
    folders = iter(tmp_path / str(i) for i in range(10**6))
    grid = {"rhos": [0.01, 0.1], "alphas": [0.01, 0.1, 1.0], "validation": train, "max_iter": 5}
    folder = None

    def call():
        nonlocal folder
        folder = next(folders) if kept else None
        return sweep_rho_alpha(train, **grid, directory=folder)

    press = Interrupter(call, seed=2)
    for _ in press.rounds(TRIES // 2):
        finished.clear()
        sweep = press()
        if kept and sweep is None and finished:
            lines = (folder / "cells.jsonl").read_text().splitlines()
            assert len(lines) == 1 + len(finished)
        elif sweep is None:
            assert not finished
        else:
            assert set(finished) <= set(sweep.cells)
            assert sweep.table("objective").shape == (2, 3)


def test_a_fit_is_a_model_or_a_keyboard_interrupt():
    before = blas()
    model = SoftmaxRegression(0.01, solver="lbfgs", tol=1e-9)
    press = Interrupter(lambda: model.fit(X, Y), seed=3)
    for _ in press.rounds(TRIES):
        fitted = sorted(name for name in vars(model) if name.endswith("_"))
        model.__dict__.update(history_=None)
        press()
        assert sorted(name for name in vars(model) if name.endswith("_")) == fitted
        if model.history_ is not None:
            assert len(model.history_) > model.n_iter_
    assert blas() == before


def test_ctrl_c_in_the_last_fit_to_all_rows_leaves_the_mean_of_the_folds(monkeypatch):
    original = Fitter.fit

    def fit(self, problems, starts, name):
        if len(problems) == 1:
            raise KeyboardInterrupt
        return original(self, problems, starts, name)

    monkeypatch.setattr(Fitter, "fit", fit)
    with pytest.warns(match="was interrupted"):
        model = SoftmaxRegressionCV(ALPHAS, cv=3).fit(X, Y)
    best = ALPHAS.index(model.alpha_)
    mean = model.coefs_paths_[:, best].mean(axis=0)
    np.testing.assert_allclose(model.coef_, mean[:, :-1], atol=1e-12)


def test_a_press_is_held_until_it_is_safe_and_raised_once():
    with held_interrupt() as hold:
        signal.raise_signal(signal.SIGINT)
        assert hold.pressed
        with deferred_interrupt():
            check_interrupt()
        with held_interrupt() as inner:
            assert inner is hold
        with pytest.raises(KeyboardInterrupt):
            check_interrupt()
        check_interrupt()
    with held_interrupt() as hold:
        assert not hold.pressed
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)  # the second acts at once


def test_a_press_after_the_last_look_is_not_forgotten(monkeypatch):
    def press(*arguments, **settings):
        signal.raise_signal(signal.SIGINT)
        return False

    monkeypatch.setattr(warm_starts, "has_turned", press)
    problem = Problem.of(X, Y, 0.1)
    result = run(problem, LBFGS(), callbacks=press, max_iter=0)
    assert result.status == "interrupted"
    monkeypatch.setattr(SoftmaxRegression, "_troubles", lambda *_: press() or [])
    model = SoftmaxRegression(0.1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.status_ == "converged"


def test_where_another_handler_is_in_charge_it_stays():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with held_interrupt():
            signal.raise_signal(signal.SIGINT)
        assert seen == [1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_in_a_call_back_of_llvm_is_not_lost(monkeypatch):
    """What is raised there is printed and forgotten."""
    monkeypatch.setattr(_interrupts, "_acts_at_once_while", [lambda: True])

    def _raw_object_cache_notify():
        signal.raise_signal(signal.SIGINT)

    with held_interrupt() as hold:
        _raw_object_cache_notify()
        assert hold.pressed
        with pytest.raises(KeyboardInterrupt):
            check_interrupt()
        with pytest.raises(KeyboardInterrupt):  # anywhere else it acts at once
            signal.raise_signal(signal.SIGINT)


COMPILING = """
import os, signal, threading
from contextlib import contextmanager
import numpy as np
from admm_softmax import LBFGS, Problem, run
from admm_softmax.kernels import compile_clock
from admm_softmax.kernels.compiled import loading

compiles, counting = threading.Event(), compile_clock.compile_time.counting

@contextmanager
def noted(**settings):
    with counting(**settings):
        if compile_clock.is_compiling():
            compiles.set()
        yield

def press():
    compiles.wait()
    press.loaded = len(loading._loaded)
    os.kill(os.getpid(), signal.SIGINT)

compile_clock.compile_time.counting = noted
X = np.random.default_rng(0).standard_normal((30_000, 20)).astype(np.float32)
problem = Problem.of(X, np.arange(30_000) % 10, 1e-3)
signal.signal(signal.SIGINT, signal.default_int_handler)  # the shell may have it ignored
threading.Thread(target=press, daemon=True).start()
try:
    run(problem, LBFGS())
except KeyboardInterrupt:
    # At the end of compiling all are loaded together.
    print("interrupted", len(loading._loaded) - press.loaded, flush=True)
    os._exit(0)  # what LLVM leaves behind half done is not the question here
"""


def test_ctrl_c_during_compilation_acts_at_once(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", COMPILING]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["interrupted", "0"], done.stderr
