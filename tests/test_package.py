"""The package as a whole: names, imports, command line."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import admm_softmax
from admm_softmax import estimators, path
from admm_softmax.cli import main
from admm_softmax.experiments import digits
from tests.pages import assert_self_contained


def test_every_public_name_is_there():
    for name in admm_softmax.__all__:
        assert getattr(admm_softmax, name) is not None
    assert set(admm_softmax.__all__) <= set(dir(admm_softmax))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        admm_softmax.nonsense  # noqa: B018


def test_every_name_of_a_lazy_package_is_there():
    for package in (estimators, path):
        for name in package.__all__:
            assert getattr(package, name) is not None
        assert set(package.__all__) <= set(dir(package))
        with pytest.raises(AttributeError, match=f"'{package.__name__}' has no attribute 'none'"):
            package.none  # noqa: B018


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
    assert not {"numba", "sklearn", "matplotlib", "pandas", "rich"} & modules
    modules -= loaded("import scipy.linalg, scipy.sparse")  # in 1.15 with solvers and graphs
    assert not {"scipy.optimize", "scipy.special", "scipy.stats"} & modules
    assert not {"scipy.sparse.csgraph", "scipy.sparse.linalg"} & modules


@pytest.mark.parametrize("then", ["", "; SoftmaxRegression(0.1).fit(X, y).predict(X)"])
def test_one_estimator_loads_what_a_small_fit_needs(then):
    data = "import numpy as np; X, y = np.eye(6), np.arange(6) % 3"
    base = loaded(f"{data}; import sklearn.base")  # has pandas and scipy.stats, in some versions
    modules = loaded(f"{data}; from admm_softmax import SoftmaxRegression{then}") - base
    assert not {"numba", "matplotlib", "pandas", "rich", "scipy.optimize", "scipy.stats"} & modules
    for package in ("callback", "linear_model", "metrics", "model_selection", "preprocessing"):
        assert f"sklearn.{package}" not in modules
    for name in ("cross_validation", "multioutput", "paths"):
        assert f"admm_softmax.estimators.{name}" not in modules


def test_the_demo_prints_a_table_and_writes_a_page(tmp_path, capsys):
    folder = tmp_path / ("a long name " * 10)  # more than a line of the terminal
    assert main(["demo", "--out", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert f"Plots and report: {folder / 'report.html'}" in printed.splitlines()
    for solver in digits.PEERS:
        assert f"│ {solver} " in printed
    assert printed.count(" BLAS thread") == len(digits.PEERS)  # a line for each
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 4
    assert_self_contained(page)
    assert "the better of one BLAS thread and one per core" in page
    assert re.findall("<h2>(.*?)</h2>", page) == [
        "How does it compare with scikit-learn?",
        "How did the fit go?",
        "What does the model look at?",
        "What does it get wrong?",
    ]
    assert "1077 handwritten digits to train on, 270 to validate on, 450 to test on" in page
    assert "training on 1,077 digits" in printed
    for name in ("history", "coefficients", "predictions", "confusion"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("slow", [1, 4])
def test_a_peer_gets_the_threads_that_suit_it(slow, monkeypatch):
    monkeypatch.setattr(digits, "cpu_count", lambda: 4)
    tried, clock = [], [0.0]

    def fit(threads):
        tried.append(threads)
        clock[0] += 0.01 + 0.05 * (threads == slow)

    monkeypatch.setattr(digits.time, "perf_counter", lambda: clock[0])

    assert digits.best_threads(fit) == 5 - slow
    assert tried == [4, 1, 4, 4, 1, 1, 4]
    for name, turns in (("PATIENCE", [1, 4, 4, 1]), ("LONG_TURN", [1, 4])):
        monkeypatch.setattr(digits, name, 0.0)
        tried.clear()
        assert digits.best_threads(fit, is_warm=True) == 5 - slow
        assert tried == turns


@pytest.mark.parametrize("fast", [1, 4])
def test_a_cold_fit_does_not_choose_the_threads(fast, monkeypatch):
    monkeypatch.setattr(digits, "cpu_count", lambda: 4)
    seconds, clock = iter([60.0]), [0.0]

    def fit(threads):
        clock[0] += next(seconds, 0.0) + (20.0 if threads == fast else 25.0)

    monkeypatch.setattr(digits.time, "perf_counter", lambda: clock[0])
    assert digits.best_threads(fit) == fast


def test_with_one_core_there_is_nothing_to_choose(monkeypatch):
    monkeypatch.setattr(digits, "cpu_count", lambda: 1)
    assert digits.best_threads(lambda _: None) == 1


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == admm_softmax.__version__


def test_letters_in_a_picture_are_no_address():
    assert_self_contained('<img src="data:image/png;base64,ab/httpQ+=">')
    with pytest.raises(AssertionError, match="elsewhere"):
        assert_self_contained('<img src="https://elsewhere/a.png">')


def test_the_version_is_the_same_everywhere():
    root = Path(__file__).parent.parent
    version = admm_softmax.__version__
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)$", changes, re.M)
    assert newest is not None
    cited = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert newest[1] == version
    assert f"\nversion: {version}\n" in cited
    assert f"\ndate-released: {newest[2]}\n" in cited


def test_classifiers_name_the_pythons_that_are_allowed():
    project = tomllib.loads(
        (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    minors = [
        int(line.rsplit(".", 1)[1])
        for line in project["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    assert project["requires-python"] == f">=3.{min(minors)}"
    assert minors == list(range(min(minors), max(minors) + 1))


def test_every_extra_is_described():
    root = Path(__file__).parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (root / "docs" / "start.md").read_text(encoding="utf-8")
    for extra in set(project["optional-dependencies"]) - {"bench", "dev", "docs"}:
        assert f"| `{extra}` |" in page
