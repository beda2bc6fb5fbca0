"""Files and functions of the library and of its scripts stay small enough to read at once."""

import ast
from pathlib import Path

import pytest

import admm_softmax

ROOT = Path(admm_softmax.__file__).parent
HERE = Path(__file__).parents[1]
#: Folders of scripts beside the library, where the repository is there.
SCRIPTS = ("benchmarks", "docs", "examples")
LONGEST_FILE = 400
#: Lines of a function without its docstring.
LONGEST_FUNCTION = 60
FILES = sorted([*ROOT.rglob("*.py"), *(p for s in SCRIPTS for p in (HERE / s).rglob("*.py"))])


def name_of(path):
    return path.relative_to(ROOT if path.is_relative_to(ROOT) else HERE).as_posix()


def lines_of(node):
    return node.end_lineno - node.lineno + 1


def function_lines(function):
    described = ast.get_docstring(function, clean=False) is not None
    return lines_of(function) - (lines_of(function.body[0]) if described else 0)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_and_no_function_is_too_long(path):
    text = path.read_text(encoding="utf-8")
    count = len(text.splitlines())
    assert count <= LONGEST_FILE, f"{path.name} has {count} lines"
    long = {
        f"{node.name} in line {node.lineno}": function_lines(node)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and function_lines(node) > LONGEST_FUNCTION
    }
    assert not long, f"functions of {path.name} with more than {LONGEST_FUNCTION} lines: {long}"


def test_a_docstring_does_not_count():
    (function,) = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n    return 1\n').body
    assert (lines_of(function), function_lines(function)) == (6, 2)
