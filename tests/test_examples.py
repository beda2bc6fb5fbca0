"""The examples run."""

import ast
import runpy
from pathlib import Path

import pytest

import admm_softmax

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("name", ["linear_probe", "many_targets"])
def test_an_example_runs(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert {"linear_probe": "test accuracy", "many_targets": "500 fits"}[name] in printed


@pytest.mark.parametrize("path", sorted((EXAMPLES / "gallery").glob("*.py")), ids=lambda p: p.stem)
def test_a_script_of_the_gallery_uses_public_names(path):
    """`make docs` runs the scripts, and fails if one does; here they are only read."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, line = (ast.get_docstring(tree) or "").split("\n")[:2]
    assert len(line) == len(title), "the title is underlined"
    rooms = {"admm_softmax": admm_softmax}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in rooms:
            assert {name.name for name in node.names} <= set(rooms[node.module].__all__)
        elif isinstance(node, ast.ImportFrom):
            assert not node.module.startswith("admm_softmax"), "import from admm_softmax itself"


def test_the_gallery_has_enough():
    assert len(list((EXAMPLES / "gallery").glob("plot_*.py"))) >= 8
