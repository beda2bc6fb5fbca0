"""Files that pages, scripts and settings name by their path are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEAKING = [
    *(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"),  # of files that were
    *ROOT.glob("docs/**/*.md"),
    *(ROOT / name for name in ("Makefile", "pyproject.toml")),
    *(ROOT / "tests" / name for name in ("machines.py", "trust/mutants.py")),
]
#: Tests and their folders, and scripts and pages elsewhere; other folders are made by commands.
NAMED = re.compile(
    r"(?<![\w/.])(tests/[\w/.-]*\w|(?:src|benchmarks|docs|examples)/[\w/.-]+\.(?:py|md))\b"
)


@pytest.mark.parametrize("page", SPEAKING, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_named_by_path_exist(page):
    named = set(NAMED.findall(page.read_text(encoding="utf-8")))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
