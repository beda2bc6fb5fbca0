"""Line and branch coverage of src against what is promised; `make test` prints it.

    python -m tests.trust.coverage_report [LINES BRANCHES]

Reads the file that `pytest --cov` wrote, prints both figures and the files with most lines that
never ran, and fails below the given percentages.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

#: How many of the files are listed.
LISTED = 8


def read() -> dict:
    """What coverage knows, from its own JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(path)]
        subprocess.run(command, check=True)
        return json.loads(path.read_text(encoding="utf-8"))


def main(least_lines: float = 95.0, least_branches: float = 90.0) -> int:
    """Print, and return 1 if there is too little."""
    found = read()
    totals = found["totals"]
    lines = 100 * totals["covered_lines"] / totals["num_statements"]
    branches = 100 * totals["covered_branches"] / totals["num_branches"]
    print(f"coverage of src: {lines:.1f} % of {totals['num_statements']} lines, ", end="")
    print(f"{branches:.1f} % of {totals['num_branches']} branches; most is missing in")
    by_missing = sorted(found["files"].items(), key=lambda f: -f[1]["summary"]["missing_lines"])
    for name, facts in by_missing[:LISTED]:
        print(f"  {facts['summary']['missing_lines']:4d} lines of {name}")
    if lines < least_lines or branches < least_branches:
        print(f"less than {least_lines:g} % of lines or {least_branches:g} % of branches")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
