"""SIGINT and SIGTERM at random moments: the same call goes on, and ends with the same answer."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trust.effort import effort
from tests.trust.signalled import CASES, NO_MODEL

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="the script waits for signals")
def test_a_signal_at_any_moment_loses_nothing(tmp_path):
    tries = effort(1, 25)
    done = subprocess.run(
        [sys.executable, "-m", "tests.trust.signalled", tmp_path / "runs", str(tries)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert len(found) == 2 * tries * len(CASES)
    for one in found:
        # A model, no model yet, or the end: never an error, and nothing half done afterwards.
        endings = (0, NO_MODEL, -2) if one["signal"] == signal.SIGINT else (0, -15)
        assert one["ended"] in endings, one
        assert one["off"] < 1e-6, one
        assert not one["left"], one
    assert any(one["ended"] == -15 for one in found)
