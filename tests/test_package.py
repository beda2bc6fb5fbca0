"""The package as a whole: names, imports, command line."""

import subprocess
import sys

import pytest

import admm_softmax
from admm_softmax.cli import main


def test_every_public_name_is_there():
    for name in admm_softmax.__all__:
        assert getattr(admm_softmax, name) is not None
    assert set(admm_softmax.__all__) <= set(dir(admm_softmax))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        admm_softmax.nonsense  # noqa: B018


def loaded(statement):
    code = f"{statement}; import sys; print(' '.join(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(out.stdout.split())


def test_import_loads_nothing_heavy():
    modules = loaded("import admm_softmax")
    assert not {"numba", "sklearn", "scipy", "matplotlib", "pandas", "rich"} & modules


def test_the_functional_core_needs_neither_scikit_learn_nor_numba():
    modules = loaded(
        "import numpy as np; from admm_softmax import ADMM, Problem, run;"
        "run(Problem.of(np.eye(3), [0, 1, 2], 0.1), ADMM())"
    )
    assert not {"numba", "sklearn", "matplotlib", "rich"} & modules


def test_estimators_do_not_load_numba_for_small_problems():
    modules = loaded(
        "from sklearn.datasets import load_iris; from admm_softmax import SoftmaxRegression;"
        "SoftmaxRegression(0.1).fit(*load_iris(return_X_y=True))"
    )
    assert not {"numba", "matplotlib"} & modules


def test_the_demo_prints_a_table_and_writes_a_page(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    printed = capsys.readouterr().out
    assert "scikit-learn, lbfgs" in printed
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 4
    assert "http" not in page
    for name in ("history", "weights", "predictions", "confusion"):
        assert (tmp_path / "demo" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.strip() == admm_softmax.__version__
