"""Checkpoints: what is written when, what is refused, and what happens when writing fails."""

import os
import re
import resource
import shutil
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import make_scorer

from admm_softmax import (
    ADMM,
    LBFGS,
    SGD,
    Chain,
    Problem,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    operators,
    run,
    softmax_path,
    sweep_rho_alpha,
)
from admm_softmax._version import __version__
from admm_softmax.design import DenseDesign, PartitionedDesign
from admm_softmax.solvers import identity, state
from admm_softmax.solvers.base import measured_at
from admm_softmax.solvers.least_squares import Cholesky
from admm_softmax.solvers.row_space import RowSpace
from admm_softmax.storage import bundles, checkpoints
from tests.problems import make

X, Y = make(60, 5, 3)


def problem(alpha=1e-3, **settings):
    return Problem.of(X, Y, alpha, **settings)


def interrupt_at(number):
    """A callback that presses Ctrl-C at the given iterate."""
    seen = []

    def callback(iterate):
        seen.append(iterate)
        if len(seen) == number:
            raise KeyboardInterrupt

    return callback


def same(a, b):
    np.testing.assert_array_equal(a.W, b.W)
    assert a.status == b.status
    assert (a.n_iter, a.kept_iteration) == (b.n_iter, b.kept_iteration)
    for column in set(b.history.columns) - {"seconds", "passes"}:
        np.testing.assert_array_equal(a.history[column], b.history[column])
    assert a.history.inner_residuals == b.history.inner_residuals


@pytest.fixture
def writes(monkeypatch):
    """The names of the files that are written, in order."""
    names = []
    write = bundles.write

    def noted(path, content):
        names.append(path.stem)
        write(path, content)

    monkeypatch.setattr(bundles, "write", noted)
    return names


# ---- going on ----


@pytest.mark.parametrize("kind", ["dense", "partitioned"])
def test_an_interrupted_run_goes_on(tmp_path, kind):
    if kind == "dense":
        data = problem()
    else:  # rows that are not arrays: one handle per part
        data = Problem.of(PartitionedDesign([DenseDesign(X[:7]), DenseDesign(X[7:])]), Y, 1e-3)
    solver, validation = ADMM(relaxation=1.7), Problem.of(X[:20], Y[:20])
    settings = {"max_iter": 12, "tol": 1e-9, "validation": validation}
    whole = run(data, solver, **settings)
    half = run(data, solver, checkpoint=tmp_path, callbacks=interrupt_at(5), **settings)
    assert (half.status, half.n_iter) == ("interrupted", 4)  # and the start
    result = run(data, solver, checkpoint=tmp_path, **settings)
    same(result, whole)
    # The time and the reads of both processes.
    assert (np.diff(result.history["seconds"]) > 0).all()
    assert result.history["seconds"][4] == half.history["seconds"][4]
    assert (np.diff(result.history["passes"]) > 0).all()


def test_admm_in_single_precision_goes_on_to_rounding(tmp_path):
    # A factor in single precision refines its solutions from one W-step to the next; that is
    # not kept, and begins anew.
    data = Problem.of(X.astype(np.float32), Y, 1e-1)
    solver = ADMM(relaxation=1.7, least_squares=Cholesky("single"))
    whole = run(data, solver, max_iter=12, tol=0.0)
    run(data, solver, max_iter=12, tol=0.0, checkpoint=tmp_path, callbacks=interrupt_at(5))
    result = run(data, solver, max_iter=12, tol=0.0, checkpoint=tmp_path)
    np.testing.assert_allclose(result.W, whole.W, atol=2e-6)


def test_a_run_that_has_ended_returns_at_once(tmp_path):
    data = problem()
    first = run(data, LBFGS(), checkpoint=tmp_path)
    assert first.status == "converged"
    reads, seen = data.design.reads, []
    again = run(data, LBFGS(), checkpoint=tmp_path, callbacks=seen.append)
    same(again, first)
    assert data.design.reads == reads
    assert not seen
    np.testing.assert_array_equal(again.history["seconds"], first.history["seconds"])
    (file,) = tmp_path.glob("*.npz")
    assert bundles.read(file)["content"]["state"] is None


def test_limits_may_grow(tmp_path):
    whole = run(problem(), LBFGS(), tol=1e-8)
    short = run(problem(), LBFGS(), tol=1e-8, max_iter=4, checkpoint=tmp_path)
    assert (short.status, short.n_iter) == ("iteration_limit", 4)
    same(run(problem(), LBFGS(), tol=1e-8, max_iter=4, checkpoint=tmp_path), short)
    assert run(problem(), LBFGS(), tol=1e-8, max_iter=2, checkpoint=tmp_path).n_iter == 4
    same(run(problem(), LBFGS(), tol=1e-8, checkpoint=tmp_path), whole)


def test_the_time_already_spent_counts(tmp_path):
    settings = {"tol": 0.0, "time_limit": 1e-9}
    first = run(problem(), SGD(), checkpoint=tmp_path, **settings)
    assert (first.status, first.n_iter) == ("time_limit", 0)
    assert len(run(problem(), SGD(), checkpoint=tmp_path, **settings).history) == 1
    longer = run(problem(), SGD(), checkpoint=tmp_path, tol=0.0, time_limit=1e3, max_iter=3)
    assert (longer.status, longer.n_iter) == ("iteration_limit", 3)


def test_other_ends_are_kept_as_well(tmp_path):
    stopped = run(problem(), LBFGS(), checkpoint=tmp_path / "a", callbacks=lambda iterate: True)
    assert stopped.status == "stopped"
    same(run(problem(), LBFGS(), checkpoint=tmp_path / "a"), stopped)
    diverged = run(problem(), Explodes(), checkpoint=tmp_path / "b")
    assert (diverged.status, diverged.n_iter) == ("diverged", 1)
    same(run(problem(), Explodes(), checkpoint=tmp_path / "b"), diverged)


@dataclass(frozen=True)
class Explodes:
    """One good iterate, then one that is not finite."""

    def iterates(self, data, W0):
        good = measured_at(data.at(np.zeros(data.shape)))
        yield good
        yield replace(good, objective=np.nan)


@dataclass(frozen=True)
class Stateless:
    """Gradient steps of a fixed length; W is all there is to know."""

    def iterates(self, data, W0):
        point = data.at(np.zeros(data.shape) if W0 is None else W0)
        while True:
            yield measured_at(point)
            point = data.at(point.W - 0.5 * point.gradient)


def test_a_solver_without_state_goes_on_from_w(tmp_path):
    whole = run(problem(0.1), Stateless(), tol=1e-6, max_iter=5000)
    run(problem(0.1), Stateless(), tol=1e-6, checkpoint=tmp_path, callbacks=interrupt_at(7))
    same(run(problem(0.1), Stateless(), tol=1e-6, max_iter=5000, checkpoint=tmp_path), whole)


@pytest.mark.parametrize(
    "solver",
    [
        ADMM(start="smart"),
        SGD(batch_size=20),
        Chain(ADMM(start="smart"), Stateless(), after=2),
        Chain(Stateless(), Chain(SGD(batch_size=20), LBFGS(), after=1), after=2),
        Chain(RowSpace(Stateless()), RowSpace(LBFGS()), after=1),
    ],
    ids=["ADMM", "SGD", "ADMM, stateless", "three", "row space"],
)
@pytest.mark.parametrize("number", range(1, 7))
def test_steps_are_counted_wherever_a_run_was_interrupted(tmp_path, solver, number):
    # Also at the start, and where one solver hands over to the next.
    W0 = np.random.default_rng(0).standard_normal((9, 3))
    wide = Problem.of(X.reshape(-1, 10)[:6, :8], Y[:6], 1e-1, n_classes=3)
    settings = {"W0": W0, "max_iter": 8, "tol": 0.0}
    whole = run(wide, solver, **settings)
    half = run(wide, solver, checkpoint=tmp_path, callbacks=interrupt_at(number), **settings)
    assert half.status == "interrupted"
    result = run(wide, solver, checkpoint=tmp_path, **settings)
    np.testing.assert_array_equal(result.history["iteration"], whole.history["iteration"])
    assert (result.n_iter, result.kept_iteration) == (whole.n_iter, whole.kept_iteration)
    np.testing.assert_allclose(result.W, whole.W, rtol=1e-9, atol=1e-12)


def test_a_smaller_limit_ends_a_run_that_was_beyond_it(tmp_path):
    run(problem(), LBFGS(), tol=0.0, checkpoint=tmp_path, callbacks=interrupt_at(6))
    seen = []
    settings = {"tol": 0.0, "checkpoint": tmp_path, "callbacks": seen.append}
    beyond = run(problem(), LBFGS(), max_iter=3, **settings)
    assert (beyond.status, beyond.n_iter, seen) == ("iteration_limit", 5, [])


@pytest.mark.parametrize("solver", [ADMM(), ADMM(relaxation=1.7).then(LBFGS(5, "gram"), after=9)])
def test_rows_too_large_to_store_are_made_anew(tmp_path, monkeypatch, solver):
    monkeypatch.setattr(state, "LARGEST_ROWS", 100)
    settings = {"tol": 1e-8, "max_iter": 5000, "checkpoint": tmp_path}
    run(problem(), solver, callbacks=interrupt_at(6), **settings)
    (file,) = tmp_path.glob("*.npz")
    assert file.stat().st_size < 20_000
    stored = bundles.read(file)["content"]["state"]
    assert stored.get("inner", stored)["Z"] is None
    result = run(problem(), solver, **settings)
    assert result.status == "converged"
    np.testing.assert_allclose(result.W, run(problem(), LBFGS(), tol=1e-9).W, atol=1e-5)


# ---- when ----


def test_writes_are_as_far_apart_as_asked_for(tmp_path, writes, monkeypatch):
    first = run(problem(), LBFGS(), checkpoint=tmp_path / "a", checkpoint_every=0)
    assert len(writes) == len(first.history)
    writes.clear()
    run(problem(), LBFGS(), checkpoint=tmp_path / "b", checkpoint_every=1e6)
    assert len(writes) == 1
    writes.clear()
    now = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])

    def tick(iterate):
        now[0] += 1.0

    run(problem(), LBFGS(), checkpoint=tmp_path / "c", checkpoint_every=3, callbacks=tick)
    assert len(writes) == first.n_iter // 3 + 1


# ---- what is refused ----

CHANGES = {
    "alpha was 0.001, is 0.01 now": {"alpha": 1e-2},
    "tol was 0.0001, is 0.001 now": {"tol": 1e-3},
    "keep was best, is last now": {"keep": "last"},
    "solver was LBFGS(": {"solver": ADMM()},
    "X: other values than before": {"X": X + 1e-9 * (np.arange(60) == 30)[:, None]},
    "y: other values than before": {"y": (Y + (np.arange(60) == 30)) % 3},
    "rows was 60, is 59 now": {"X": X[:59], "y": Y[:59]},
    "classes was 3, is 2 now": {"y": Y % 2},
    "dtype was float64, is float32 now": {"X": X.astype(np.float32)},
    "sample_weight: other values": {"sample_weight": np.arange(60.0)},
    "operator: other values": {"operator": operators.gradient(5)},
    "reference was not given, is given now": {"reference": np.ones((6, 3))},
    "intercept was True, is False now": {"fit_intercept": False},
    "start was not given, is given now": {"coef_init": np.ones((6, 3))},
    "validation rows was not given, is 9 now": {"X_val": X[:9], "y_val": Y[:9]},
}
OF_FIT = ("sample_weight", "coef_init", "X_val", "y_val")


@pytest.mark.parametrize("words", CHANGES)
def test_another_call_is_refused_with_what_differs(tmp_path, words):
    settings = {"alpha": 1e-3, "solver": LBFGS(5), "checkpoint": tmp_path}
    SoftmaxRegression(**settings).fit(X, Y)
    change = dict(CHANGES[words])
    data = change.pop("X", X), change.pop("y", Y)
    more = {name: change.pop(name) for name in OF_FIT if name in change}
    with pytest.raises(ValueError, match="belongs to another call") as caught:
        SoftmaxRegression(**{**settings, **change}).fit(*data, **more)
    assert words in str(caught.value)
    SoftmaxRegression(**settings).fit(X.copy(), Y.copy())


def test_another_version_is_refused(tmp_path, monkeypatch):
    run(problem(), LBFGS(), checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(identity, "__version__", "0.9")
        with pytest.raises(ValueError, match=rf"version was {re.escape(__version__)}, is 0\.9 now"):
            run(problem(), LBFGS(), checkpoint=tmp_path)
    monkeypatch.setattr(checkpoints, "CHECKPOINT_FORMAT", 2)
    with pytest.raises(ValueError, match="format was 1, is 2 now"):
        run(problem(), LBFGS(), checkpoint=tmp_path)


def test_functions_in_settings_are_the_same_in_another_process(tmp_path):
    slower = SGD(schedule=lambda epoch: 1 / (1 + epoch))
    again = SGD(schedule=lambda epoch: 1 / (1 + epoch))
    assert repr(slower) != repr(again)
    first = run(problem(), slower, max_iter=3, checkpoint=tmp_path)
    same(run(problem(), again, max_iter=3, checkpoint=tmp_path), first)


@pytest.mark.parametrize("kind", ["dense", "partitioned"])
def test_large_data_are_known_by_some_of_their_rows(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(identity, "MOST_ENTRIES", 10)
    monkeypatch.setattr(identity, "RUNS", 4)
    monkeypatch.setattr(identity, "RUN_ROWS", 5)

    def data(X, y=Y):
        parts = [DenseDesign(X[:7]), DenseDesign(X[7:])]
        return Problem.of(X if kind == "dense" else PartitionedDesign(parts), y, 1e-3)

    run(data(X), LBFGS(), checkpoint=tmp_path)
    for row in (0, 59):
        other = X.copy()
        other[row] += 1e-9
        with pytest.raises(ValueError, match="X: other values than before"):
            run(data(other), LBFGS(), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="y: other values than before"):
        run(data(X, (Y + (np.arange(60) == 59)) % 3), LBFGS(), checkpoint=tmp_path)
    reads = (used := data(X)).design.reads
    run(used, LBFGS(), checkpoint=tmp_path)
    assert used.design.reads - reads < 1


def test_bad_settings_are_named(tmp_path):
    with pytest.raises(TypeError, match="checkpoint must be the path of a folder or None, got 3"):
        run(problem(), LBFGS(), checkpoint=3)
    with pytest.raises(ValueError, match="checkpoint_every must be a number ≥ 0, got -1"):
        SoftmaxRegression(checkpoint=tmp_path, checkpoint_every=-1).fit(X, Y)


# ---- what goes wrong ----


@pytest.mark.parametrize("how", ["truncated", "empty", "text", "incomplete"])
def test_a_damaged_file_is_warned_about_and_replaced(tmp_path, how):
    first = run(problem(), LBFGS(), checkpoint=tmp_path)
    (file,) = tmp_path.glob("*.npz")
    whole = file.read_bytes()
    if how == "incomplete":
        stored = bundles.read(file)
        del stored["content"]["best"]
        bundles.write(file, stored)
    else:
        file.write_bytes({"truncated": whole[:-200], "empty": b"", "text": b"PK, or not"}[how])
    with pytest.warns(RuntimeWarning, match=r"fit\.npz is damaged .*; starting afresh"):
        same(run(problem(), LBFGS(), checkpoint=tmp_path), first)
    same(run(problem(), LBFGS(), checkpoint=tmp_path), first)


def test_a_folder_that_cannot_be_made_is_warned_about_once(tmp_path):
    (tmp_path / "file").write_text("")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run(problem(), LBFGS(), checkpoint=tmp_path / "file" / "x", checkpoint_every=0)
    assert [w.category for w in caught] == [RuntimeWarning]
    assert "cannot write to the checkpoint folder" in str(caught[0].message)
    same(result, run(problem(), LBFGS()))


# Old versions of NumPy leave the file that they could not write to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_full_disk_is_warned_about_once(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
        try:
            result = run(problem(), LBFGS(), checkpoint=tmp_path, checkpoint_every=0)
            path = softmax_path(X, Y, [0.1, 0.01], checkpoint=tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    messages = [str(w.message) for w in caught]
    assert len(messages) == 2  # one per call
    assert all("cannot write the checkpoint" in m and "going on" in m for m in messages)
    same(result, run(problem(), LBFGS()))
    assert len(path.results) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lock"]


def test_a_folder_has_one_user_at_a_time(tmp_path):
    def second(iterate):
        with pytest.raises(ValueError, match="is in use by another call"):
            run(problem(), LBFGS(), checkpoint=tmp_path)
        code = f"from tests.test_checkpoints import *; run(problem(), LBFGS(), checkpoint={str(tmp_path)!r})"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[1],
        )
        assert "is in use by another call" in done.stderr
        return True

    assert run(problem(), LBFGS(), checkpoint=tmp_path, callbacks=second).status == "stopped"
    run(problem(), LBFGS(), checkpoint=tmp_path)


def test_files_that_a_killed_process_has_left_are_removed(tmp_path):
    part = tmp_path / (".fit.npz." + 32 * "a")
    part.write_bytes(b"half")
    (tmp_path / ".keep").write_text("the user's")
    run(problem(), LBFGS(), checkpoint=tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".keep", "fit.npz", "lock"]


# ---- estimators ----


def test_parameters_follow_scikit_learn(tmp_path):
    clf = SoftmaxRegression(checkpoint=tmp_path, checkpoint_every=5)
    assert clone(clf).get_params()["checkpoint"] == tmp_path
    assert clone(clf).get_params()["checkpoint_every"] == 5
    assert SoftmaxRegressionCV().get_params()["checkpoint"] is None
    clf.fit(X, Y)
    twin = clone(clf).set_params(checkpoint=str(tmp_path)).fit(X, Y)
    np.testing.assert_array_equal(twin.coef_, clf.coef_)
    assert twin.status_ == "converged"
    assert twin.history_.reason == clf.history_.reason


def test_fits_of_a_path_that_have_ended_are_not_run_again(tmp_path, writes):
    settings = {"X_val": X[:20], "y_val": Y[:20], "checkpoint": tmp_path, "solver": "lbfgs"}
    first = softmax_path(X, Y, [0.1, 0.01, 0.001], **settings)
    assert {"alpha-000-000", "alpha-002-000", "scores-000", "scores-002"} <= set(writes)
    for name in ("alpha-002-000", "scores-002"):
        (tmp_path / f"{name}.npz").unlink()
    writes.clear()
    second = softmax_path(X, Y, [0.1, 0.01, 0.001], **settings)
    assert set(writes) == {"alpha-002-000", "scores-002"}
    np.testing.assert_array_equal(second.coefs, first.coefs)
    np.testing.assert_array_equal(second.val_loss, first.val_loss)
    with pytest.raises(
        ValueError, match=r"alphas was \[0.1, 0.01, 0.001\], is \[0.1, 0.02, 0.001\] now"
    ):
        softmax_path(X, Y, [0.1, 0.02, 0.001], **settings)


def test_cross_validation_goes_on(tmp_path, writes):
    cv = SoftmaxRegressionCV([0.1, 0.01, 0.001], cv=3, checkpoint=tmp_path, tol=1e-8)
    first = clone(cv).fit(X, Y)
    assert sum(name.startswith("alpha") for name in set(writes)) == 9
    assert sum(name.startswith("refit") for name in set(writes)) == 1
    writes.clear()
    again = clone(cv).fit(X, Y)
    assert not writes
    for name in ("coef_", "intercept_", "scores_", "coefs_paths_", "n_iter_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    with pytest.raises(ValueError, match="folds: other values than before"):
        clone(cv).set_params(cv=4).fit(X, Y)
    with pytest.raises(ValueError, match=re.escape("scoring was 'neg_log_loss', is 'accuracy'")):
        clone(cv).set_params(scoring="accuracy").fit(X, Y)


def test_penalties_in_other_units_are_other_fits(tmp_path):
    # C weighs the sum over a fold's own rows: the same numbers are other penalties there.
    Cs = [0.5, 2.0]
    SoftmaxRegressionCV(Cs=Cs, cv=3, checkpoint=tmp_path).fit(X, Y)
    twin = SoftmaxRegressionCV([1 / (len(X) * C) for C in Cs], cv=3, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="scales was"):
        twin.fit(X, Y)


def test_the_fit_to_training_and_validation_rows_is_kept_too(tmp_path, writes):
    cv = SoftmaxRegressionCV([0.1, 0.01], refit="all", checkpoint=tmp_path)
    first = clone(cv).fit(X, Y, X_val=X[:20], y_val=Y[:20])
    assert sum(name.startswith("both") for name in set(writes)) == 1
    writes.clear()
    again = clone(cv).fit(X, Y, X_val=X[:20], y_val=Y[:20])
    assert not writes
    np.testing.assert_array_equal(again.coef_, first.coef_)
    with pytest.raises(ValueError, match="class_weight was None, is 'balanced' now"):
        clone(cv).set_params(class_weight="balanced").fit(X, Y, X_val=X[:20], y_val=Y[:20])


@pytest.mark.parametrize("others", [np.arange(60.0), [f"row {i}" for i in range(60)]])
def test_scores_with_other_metadata_are_other_scores(tmp_path, others):
    with config_context(enable_metadata_routing=True):
        asking = make_scorer(lambda y, predicted, extra: 1.0).set_score_request(extra=True)
        cv = SoftmaxRegressionCV([0.1], cv=3, checkpoint=tmp_path, scoring=asking)
        cv.fit(X, Y, extra=others)
        cv.fit(X, Y, extra=others)
        with pytest.raises(ValueError, match="extra of scores: other values than before"):
            cv.fit(X, Y, extra=others[::-1])


@pytest.mark.usefixtures("ctrl_c")
def test_scores_of_interrupted_fits_are_not_kept(tmp_path, monkeypatch):
    whole = SoftmaxRegressionCV([0.1, 0.01], cv=3, tol=1e-8).fit(X, Y)
    calls, fold_many = [], DenseDesign.fold_many

    def pressed(self, requests):
        calls.append(len(requests))
        if len(calls) == 12:
            os.kill(os.getpid(), 2)
        return fold_many(self, requests)

    cv = SoftmaxRegressionCV([0.1, 0.01], cv=3, tol=1e-8, checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(DenseDesign, "fold_many", pressed)
        with warnings.catch_warnings(), suppress(KeyboardInterrupt):
            warnings.simplefilter("ignore")
            clone(cv).fit(X, Y)
    assert len(calls) >= 12
    result = clone(cv).fit(X, Y)
    np.testing.assert_allclose(result.scores_, whole.scores_, rtol=1e-6)
    np.testing.assert_allclose(result.coef_, whole.coef_, atol=1e-5)


def test_a_sweep_has_one_user_at_a_time(tmp_path):
    settings = {"validation": Problem.of(X[:20], Y[:20]), "max_iter": 2}

    def second(iterate):
        with pytest.raises(ValueError, match="is in use by another call"):
            sweep_rho_alpha(problem(), [0.1], [0.1], directory=tmp_path, **settings)
        return True

    run(problem(), LBFGS(), checkpoint=tmp_path, callbacks=second)
    shutil.rmtree(tmp_path)
    assert sweep_rho_alpha(problem(), [0.1], [0.1], directory=tmp_path, **settings).best
