"""Checkpoints of fits on files: going on after kill -9, and what is refused."""

import os
import re

import numpy as np
import pytest

from admm_softmax import (
    ADMM,
    LBFGS,
    SGD,
    Problem,
    RowBlocks,
    SoftmaxRegression,
    run,
)
from admm_softmax.solvers import identity, state
from tests.checkpoints.going_on import (
    assert_goes_on_without_a_folder,
    assert_killed_fits_end_alike,
    assert_paths_and_folds_go_on,
)
from tests.checkpoints.small_runs import interrupt_at
from tests.problems import make

#: Kills per case.
KILLS = {"files-lbfgs": 3, "files-admm": 3, "files-sgd": 2, "files-path": 2, "files-cv": 2}


@pytest.fixture
def rows(tmp_path, small_blocks):
    """Shards with 301 rows, and their labels."""
    X, y = make(301, 5, 3)
    (tmp_path / "data").mkdir()
    for i, part in enumerate(np.split(X, [100, 180])):
        np.save(tmp_path / "data" / f"x-{i}.npy", part)
    return tmp_path / "data" / "x-*.npy", y


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks")
def test_fits_on_files_that_are_killed_end_with_the_same_answer(tmp_path):
    # Fits that have ended no longer share reads with the others: other last digits.
    assert_killed_fits_end_alike(tmp_path, KILLS, rounded="files-cv")


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("state_dtype", [np.float64, np.float32])
def test_row_state_goes_on_wherever_it_is_kept(rows, tmp_path, in_files, state_dtype):
    def problem():
        folder = tmp_path / "state" if in_files else None
        X = RowBlocks(rows[0], state_dtype=state_dtype, state_dir=folder, memory_limit="1MB")
        return Problem.of(X, rows[1], 1e-3)

    solver, settings = ADMM(relaxation=1.7), {"max_iter": 9, "tol": 0.0}
    whole = run(problem(), solver, **settings)
    half = run(problem(), solver, checkpoint=tmp_path / "c", callbacks=interrupt_at(5), **settings)
    assert (half.status, half.n_iter) == ("interrupted", 4)
    result = run(problem(), solver, checkpoint=tmp_path / "c", **settings)
    np.testing.assert_array_equal(result.W, whole.W)
    np.testing.assert_array_equal(result.history["objective"], whole.history["objective"])


def test_row_state_that_is_too_large_to_store_is_made_anew(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(state, "LARGEST_ROWS", 100)
    problem = Problem.of(RowBlocks(rows[0]), rows[1], 0.1)
    solver, settings = ADMM(relaxation=1.7, gradient_every=1), {"max_iter": 300, "tol": 1e-7}
    whole = run(problem, solver, **settings)
    run(problem, solver, checkpoint=tmp_path / "c", callbacks=interrupt_at(5), **settings)
    result = run(problem, solver, checkpoint=tmp_path / "c", **settings)
    assert result.status == "converged"
    np.testing.assert_allclose(result.W, whole.W, atol=1e-5)


def test_how_rows_are_held_may_change(rows, tmp_path):
    # The limit and the cut into shards change neither the rows nor the sums.
    solver, settings = LBFGS(preconditioner="gram"), {"tol": 1e-8, "checkpoint": tmp_path / "c"}
    whole = run(Problem.of(RowBlocks(rows[0]), rows[1], 1e-3), solver, tol=1e-8)
    half = Problem.of(RowBlocks(rows[0], memory_limit="1MB"), rows[1], 1e-3)
    run(half, solver, callbacks=interrupt_at(4), **settings)
    X = np.concatenate([np.load(path) for path in sorted(rows[0].parent.glob("x-*.npy"))])
    np.save(tmp_path / "x.npy", X)
    result = run(Problem.of(RowBlocks(tmp_path / "x.npy"), rows[1], 1e-3), solver, **settings)
    np.testing.assert_array_equal(result.W, whole.W)


def test_other_files_labels_settings_and_versions_are_refused(rows, tmp_path, monkeypatch):
    X, y = rows

    def fit(X, y, **settings):
        return SoftmaxRegression(
            **{"alpha": 0.1, "checkpoint": tmp_path / "c", "max_iter": 500, **settings}
        ).fit(X, y)

    fit(X, y)
    with pytest.raises(ValueError, match="y: other values than before"):
        fit(X, np.roll(y, 1))
    with pytest.raises(ValueError, match=re.escape("alpha was 0.1, is 0.2 now")):
        fit(X, y, alpha=0.2)
    with pytest.raises(ValueError, match="dtype was float64, is float32 now"):
        fit(RowBlocks(X, dtype=np.float32), y)
    with pytest.raises(ValueError, match=r"X: other values than before"):
        fit(RowBlocks(X, transform=lambda block: block + 1.0), y)
    with monkeypatch.context() as patch:
        patch.setattr(identity, "__version__", "9.9")
        with pytest.raises(ValueError, match=re.escape("version was ") + ".*, is 9.9 now"):
            fit(X, y)
    file = sorted(X.parent.glob("x-*.npy"))[1]
    changed = np.load(file)
    changed[40, 2] += 1e-6
    np.save(file, changed)
    with pytest.raises(ValueError, match="X: other values than before"):
        fit(X, y)
    np.save(file, changed[1:])
    with pytest.raises(ValueError, match=r"rows was 301, is 300 now"):
        fit(X, y[1:])


def test_paths_and_cross_validation_go_on(rows, tmp_path):
    X, y = rows
    assert_paths_and_folds_go_on(X, y, RowBlocks(X), tmp_path)


# Old versions of NumPy leave the file that they could not write to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("solver", [LBFGS(), ADMM(), SGD(batch_size=50)])
def test_a_full_disk_or_no_folder_warns_and_the_fit_goes_on(rows, tmp_path, solver):
    problem = Problem.of(RowBlocks(rows[0]), rows[1], 0.1)
    assert_goes_on_without_a_folder(problem, solver, tmp_path)
