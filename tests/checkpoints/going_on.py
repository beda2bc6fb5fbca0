"""What checkpoints promise wherever rows are: in memory, in files, on a cluster."""

import json
import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

from admm_softmax import SoftmaxRegressionCV, run, softmax_path

ROOT = Path(__file__).parents[2]


def assert_killed_fits_end_alike(folder, kills, rounded):
    """Cases of `tests.killed`, killed so often each; `rounded` may differ in the last digits."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.killed",
            folder / "runs",
            *(f"{case}={count}" for case, count in kills.items()),
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {case: len(ends) for case, ends in found.items()} == kills
    ends = [end for case in found.values() for end in case]
    # Some are killed before their first write; most are not.
    assert sum(end["had"] for end in ends) > len(ends) / 2
    assert not any(end["left"] for end in ends)
    for case, ends in found.items():
        if case == rounded:
            assert all(end["off"] < 1e-6 for end in ends), case
        else:
            assert all(end["same"] for end in ends), case


def assert_paths_and_folds_go_on(X, y, X_val, folder):
    """Fits that have ended are taken from the folder; one whose file is gone is run again."""
    settings = {"X_val": X_val, "y_val": y, "checkpoint": folder / "p", "tol": 1e-8}
    first = softmax_path(X, y, [0.1, 0.01], **settings)
    (folder / "p" / "alpha-001-000.npz").unlink()
    again = softmax_path(X, y, [0.1, 0.01], **settings)
    np.testing.assert_array_equal(again.coefs, first.coefs)
    np.testing.assert_array_equal(again.val_loss, first.val_loss)
    cv = {"alphas": [0.1, 0.01], "cv": 3, "checkpoint": folder / "cv", "tol": 1e-8}
    first = SoftmaxRegressionCV(**cv).fit(X, y)
    for file in (folder / "cv").glob("refit*.npz"):
        file.unlink()
    again = SoftmaxRegressionCV(**cv).fit(X, y)
    np.testing.assert_allclose(again.coef_, first.coef_, atol=1e-9)
    np.testing.assert_array_equal(again.scores_, first.scores_)


def assert_goes_on_without_a_folder(problem, solver, folder):
    """No folder, or a full disk: one warning, and the answer without checkpoints."""
    expected = run(problem, solver, max_iter=6).W
    (folder / "file").write_text("")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for place, limit in ((folder / "file" / "c", before[0]), (folder / "c", 500)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
            try:
                result = run(problem, solver, max_iter=6, checkpoint=place, checkpoint_every=0)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert [w.category for w in caught] == [RuntimeWarning]
        assert "going on without" in str(caught[0].message)
        np.testing.assert_array_equal(result.W, expected)
