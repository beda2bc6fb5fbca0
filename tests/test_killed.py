"""kill -9 at random moments: the same call goes on and ends with the same answer."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Kills per case; 33 in all.
KILLS = {
    "lbfgs": 3,
    "admm": 3,
    "chain": 5,
    "newton-cg": 2,
    "newton": 2,
    "hessian-lbfgs": 2,
    "sgd": 2,
    "row-space": 3,
    "estimator": 3,
    "path": 4,
    "cross-validation": 4,
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks")
def test_fits_that_are_killed_end_with_the_same_answer(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.killed",
            tmp_path / "runs",
            *(f"{case}={kills}" for case, kills in KILLS.items()),
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {case: len(kills) for case, kills in found.items()} == KILLS
    kills = [kill for case in found.values() for kill in case]
    # Some are killed before their first write; most are not.
    assert sum(kill["had"] for kill in kills) > len(kills) / 2
    assert not any(kill["left"] for kill in kills)
    for case, kills in found.items():
        if case == "cross-validation":
            # Fits that have ended no longer share reads with the others: other last digits.
            assert all(kill["off"] < 1e-6 for kill in kills), case
        else:
            assert all(kill["same"] for kill in kills), case
