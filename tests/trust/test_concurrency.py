"""Fits in threads and processes: no deadlock, the same results, threads counted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trust.concurrent import CASES
from tests.trust.effort import DEEP

ROOT = Path(__file__).parents[2]
#: Seconds after which a script hangs: a hundred times what it takes, for a loaded machine.
HANGS = 600
QUICK = {"counted"}


@pytest.mark.parametrize("case", CASES)
def test_fits_at_once_are_the_fits_alone(case):
    if not DEEP and case not in QUICK:
        pytest.skip("only with TRUST=1")
    if "fork" in case and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    if case == "dask":
        pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.trust.concurrent", case],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-1:] == ["same"], done.stdout + done.stderr[-2000:]
