"""Files and functions stay small enough to read at once: the library, tests and scripts."""

import ast
from pathlib import Path

import pytest

import admm_softmax

ROOT = Path(admm_softmax.__file__).parent
HERE = Path(__file__).parents[1]
#: Folders beside the library, where the repository is there.
BESIDE = ("tests", "benchmarks", "docs", "examples")
LONGEST_FILE = 400
#: Lines of a function, its docstring among them.
LONGEST_FUNCTION = 60
FILES = sorted([*ROOT.rglob("*.py"), *(p for s in BESIDE for p in (HERE / s).rglob("*.py"))])


def name_of(path):
    return path.relative_to(ROOT if path.is_relative_to(ROOT) else HERE).as_posix()


def too_long(text):
    """Functions of a file with more lines than they may have."""
    lines = {
        f"{node.name} in line {node.lineno}": node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return {name: count for name, count in lines.items() if count > LONGEST_FUNCTION}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_and_no_function_is_too_long(path):
    text = path.read_text(encoding="utf-8")
    count = len(text.splitlines())
    assert count <= LONGEST_FILE, f"{path.name} has {count} lines"
    assert not (long := too_long(text)), f"longer than {LONGEST_FUNCTION} lines: {long}"


def test_a_docstring_counts():
    text = 'class C:\n    def f():\n        """One.\n' + 57 * "\n" + '        """\n'
    assert too_long(text) == {}
    assert too_long(text + "        return 1\n") == {"f in line 2": 61}
