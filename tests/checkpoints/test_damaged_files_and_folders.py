"""Damaged checkpoints, folders that are full, in use or cannot be made, and files left behind."""

import os
import resource
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from admm_softmax import LBFGS, Problem, run, softmax_path, sweep_rho_alpha
from admm_softmax.storage import bundles
from tests.checkpoints.small_runs import X, Y, problem, same


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
        code = (
            "from admm_softmax import LBFGS, run; from tests.checkpoints.small_runs import problem; "
            f"run(problem(), LBFGS(), checkpoint={str(tmp_path)!r})"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[2],
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


def test_a_sweep_has_one_user_at_a_time(tmp_path):
    settings = {"validation": Problem.of(X[:20], Y[:20]), "max_iter": 2}

    def second(iterate):
        with pytest.raises(ValueError, match="is in use by another call"):
            sweep_rho_alpha(problem(), [0.1], [0.1], directory=tmp_path, **settings)
        return True

    run(problem(), LBFGS(), checkpoint=tmp_path, callbacks=second)
    shutil.rmtree(tmp_path)
    assert sweep_rho_alpha(problem(), [0.1], [0.1], directory=tmp_path, **settings).best
