"""A checkpoint of another call is refused, with what differs."""

import re

import numpy as np
import pytest

from admm_softmax import ADMM, LBFGS, SGD, Problem, SoftmaxRegression, operators, run
from admm_softmax._version import __version__
from admm_softmax.design import DenseDesign, PartitionedDesign
from admm_softmax.solvers import identity
from admm_softmax.storage import checkpoints
from tests.checkpoints.small_runs import X, Y, problem, same

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
    monkeypatch.setattr(checkpoints, "CHECKPOINT_FORMAT", 99)
    with pytest.raises(ValueError, match="format was 2, is 99 now"):
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
