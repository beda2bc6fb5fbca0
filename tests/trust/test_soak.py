"""A process that fits for a long time has the memory, threads and descriptors of its beginning."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trust.effort import effort

ROOT = Path(__file__).parents[2]
#: Bytes that a process may grow by: allocators keep some of what was freed. A leak of one small
#: fit's rows (13 kB) in each of 900 fits would be more.
GROWTH = 8 << 20

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")


def test_many_fits_in_one_process_leave_nothing_behind():
    fits = effort(60, 1000)
    command = [sys.executable, "-m", "tests.trust.soak", str(fits)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    first, middle, last = json.loads(done.stdout)
    assert last["threads"] <= first["threads"]
    assert last["tasks"] <= first["tasks"]
    assert last["descriptors"] <= first["descriptors"]
    assert last["memory"] - middle["memory"] < GROWTH
