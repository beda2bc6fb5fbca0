"""Line and branch coverage of src against what is promised; `make test` prints it.

    python -m tests.trust.coverage_report [LINES BRANCHES]

Reads the file that `pytest --cov` wrote, prints both figures and the files with most lines that
never ran, and fails below the given percentages. Where torch is not installed, what needs it is
left out by name: `make test-torch` runs that.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

#: How many of the files are listed.
LISTED = 8
#: What cannot run without torch: a folder, and files.
NEEDS_TORCH = ("design/torch/", "exchange/torch.py", "features/alexnet.py")


def read() -> dict:
    """What coverage knows, from its own JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(path)]
        subprocess.run(command, check=True)
        return json.loads(path.read_text(encoding="utf-8"))


def share(files: list[dict], what: str, of: str) -> tuple[float, int]:
    """Per cent of lines or branches that ran, and how many there are."""
    count = sum(facts[of] for facts in files)
    return 100 * sum(facts[what] for facts in files) / count, count


def main(least_lines: float = 95.0, least_branches: float = 90.0) -> int:
    """Print, and return 1 if there is too little."""
    files = {name: facts["summary"] for name, facts in read()["files"].items()}
    if find_spec("torch") is None:
        files = {name: f for name, f in files.items() if not any(n in name for n in NEEDS_TORCH)}
        print(f"coverage without {', '.join(NEEDS_TORCH)}: torch is not installed")
    lines, n_lines = share([*files.values()], "covered_lines", "num_statements")
    branches, n_branches = share([*files.values()], "covered_branches", "num_branches")
    print(f"coverage of src: {lines:.1f} % of {n_lines} lines, ", end="")
    print(f"{branches:.1f} % of {n_branches} branches; most is missing in")
    for name in sorted(files, key=lambda name: -files[name]["missing_lines"])[:LISTED]:
        print(f"  {files[name]['missing_lines']:4d} lines of {name}")
    if lines < least_lines or branches < least_branches:
        print(f"less than {least_lines:g} % of lines or {least_branches:g} % of branches")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
