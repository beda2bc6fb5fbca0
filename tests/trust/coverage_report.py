"""Line and branch coverage of src against what is promised; `make test COVERAGE=1` prints it.

    python -m tests.trust.coverage_report [LINES BRANCHES [FILE_OF_TORCH]]

Reads the file that `pytest --cov` wrote, prints both figures and the files with most lines that
never ran, and fails below the given percentages. Where torch is not installed, what needs it is
left out by name. `make test-torch` gives the file of its own run: then what needs torch must reach
the percentages in that run alone and, if the other has left its file, all of src in both.
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
#: What `make test COVERAGE=1` writes.
DATA = Path(".coverage")
#: What cannot run without torch: a folder, and files.
NEEDS_TORCH = ("design/torch/", "exchange/torch.py", "features/alexnet.py")

Files = dict[str, dict[str, int]]


def coverage(*arguments: str | Path) -> None:
    """Run the command `coverage`."""
    subprocess.run([sys.executable, "-m", "coverage", *map(str, arguments)], check=True)


def read(*data: Path) -> Files:
    """What coverage knows of each file, from one run or from several together."""
    with tempfile.TemporaryDirectory() as folder:
        found, both = Path(folder) / "coverage.json", Path(folder) / "both"
        coverage("combine", "--quiet", "--keep", f"--data-file={both}", *data)
        coverage("json", "--quiet", f"--data-file={both}", "-o", found)
        content = json.loads(found.read_text(encoding="utf-8"))
    return {name: facts["summary"] for name, facts in content["files"].items()}


def needs_torch(name: str) -> bool:
    """Whether a file cannot run without torch."""
    return any(part in name for part in NEEDS_TORCH)


def is_fresh(data: Path) -> bool:
    """Whether there are data, and no file of src has changed since."""
    newest = max(path.stat().st_mtime for path in Path("src").rglob("*.py"))
    return data.exists() and data.stat().st_mtime >= newest


def share(files: Files, what: str, of: str) -> tuple[float, int]:
    """Per cent of lines or branches that ran, and how many there are."""
    count = sum(facts[of] for facts in files.values())
    return 100 * sum(facts[what] for facts in files.values()) / max(count, 1), count


def is_enough(what: str, files: Files, least_lines: float, least_branches: float) -> bool:
    """Print the figures of some files, and whether they are what is wanted."""
    lines, n_lines = share(files, "covered_lines", "num_statements")
    branches, n_branches = share(files, "covered_branches", "num_branches")
    print(f"coverage of {what}: {lines:.1f} % of {n_lines} lines, ", end="")
    print(f"{branches:.1f} % of {n_branches} branches; most is missing in")
    for name in sorted(files, key=lambda name: -files[name]["missing_lines"])[:LISTED]:
        print(f"  {files[name]['missing_lines']:4d} lines of {name}")
    enough = lines >= least_lines and branches >= least_branches and n_lines > 0
    if not enough:
        print(f"less than {least_lines:g} % of lines or {least_branches:g} % of branches")
    return enough


def main(least_lines: str = "95", least_branches: str = "90", torch: str | None = None) -> int:
    """Print, and return 1 if there is too little."""
    least = float(least_lines), float(least_branches)
    if torch is None:
        files, what = read(DATA), "src"
        if find_spec("torch") is None:
            files = {name: facts for name, facts in files.items() if not needs_torch(name)}
            what = f"src without {', '.join(NEEDS_TORCH)} (torch is not installed)"
        return int(not is_enough(what, files, *least))
    alone = {name: facts for name, facts in read(Path(torch)).items() if needs_torch(name)}
    enough = is_enough("what needs torch", alone, *least)
    if is_fresh(DATA):
        enough = is_enough("src, with torch", read(DATA, Path(torch)), *least) and enough
    else:
        print("coverage of src, with torch: run make test before, which leaves its part")
    return int(not enough)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
