"""The Python blocks of the README and the guide run, in order, as a reader would run them."""

import doctest
import inspect
import re
import runpy
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

import admm_softmax
from admm_softmax import SoftmaxRegression, contracts, datasets, features, operators, penalties
from tests.problems import make

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/start.md",
        "docs/guide.md",
        "docs/diagnostics.md",
        "docs/penalties.md",
        "docs/probes.md",
        "docs/deploying.md",
    ],
)
def test_examples_run(page, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    if page in ("docs/deploying.md", "docs/start.md"):
        pytest.importorskip("skops", reason="model folders need skops")
    monkeypatch.chdir(tmp_path)
    # 9 × 28 × 28 features, as in the pages.
    X, y = make(60, 7056, 3)
    X = X / np.sqrt(7056)
    narrow = X[:, :50]
    names = {"y": y, "y_val": y, "y_test": y, "codes": y, "X": X, "X_val": X, "X_test": X}
    names["old"] = SoftmaxRegression(0.1).fit(X, y)
    if page == "docs/guide.md":
        from admm_softmax import Problem

        names["problem"] = Problem.of(X, y, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for block in blocks:
            # A sweep decomposes a matrix of all columns, and a probe fits a hundred times.
            costly = re.search(r"\b(sweep_rho_alpha|probe)\(", block)
            for name in ("X", "X_val", "X_test"):
                if names[name] is X or names[name] is narrow:  # not what a page has set itself
                    names[name] = narrow if costly else X
            exec(compile(block, page, "exec"), names)


def test_the_examples_of_a_page_give_what_it_says():
    page = ROOT / "docs" / "coming-from-logistic-regression.md"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = doctest.testfile(
            str(page), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8"
        )
    assert found.attempted > 20
    assert found.failed == 0


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", [LogisticRegression, LogisticRegressionCV])
def test_every_parameter_and_attribute_of_the_peers_is_on_the_page(kind):
    page = (ROOT / "docs" / "coming-from-logistic-regression.md").read_text(encoding="utf-8")
    # A class has one part of the page, whose tables name what it has in their first columns.
    alone, cv, _ = re.split(r"^## (?:LogisticRegressionCV|Validation rows.*)$", page, flags=re.M)
    part = cv if kind is LogisticRegressionCV else alone
    first = [row.split("|")[1] for row in part.splitlines() if row.startswith("|")]
    named = set(re.findall(r"`([A-Za-z0-9_]+)", " ".join(first)))
    X, y = make(60, 3, 3)
    fitted = kind().fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    attributes = {name for name in vars(fitted) if name.endswith("_") and name[0] != "_"}
    assert attributes > {"coef_", "n_iter_"}
    gone = {"multi_class"}  # of scikit-learn before 1.8
    assert set(kind().get_params()) - gone | attributes <= named


def test_links_of_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_public_name_is_in_the_reference_with_an_example():
    listed = re.findall(r"^   (\w+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.M)
    expected = []
    for room in (admm_softmax, penalties, operators, features, datasets, contracts):
        names = getattr(room, "__all__", None) or [
            name
            for name, value in vars(room).items()
            if inspect.isfunction(value) and not name.startswith("_")
        ]
        for name in names:
            value = getattr(room, name)
            if callable(value):  # modules are chapters, and NAMES is a tuple
                expected.append(name)
                assert ">>>" in (inspect.getdoc(value) or ""), f"{name} has no example"
    assert sorted(set(listed)) == sorted(set(expected))


def rooms_imported_by(room):
    """The rooms of the library that the files of one import."""
    place = ROOT / "src" / "admm_softmax" / room
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    lines = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return set(re.findall(r"^ *(?:from|import) admm_softmax\.(\w+)", lines, re.M))


def test_the_drawing_of_the_house_is_true():
    script = runpy.run_path(str(ROOT / "docs" / "pictures" / "draw_house.py"))
    for name, picture in {"house": "wide", "house-narrow": "narrow"}.items():
        drawn = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
        assert script[picture]() == drawn
    above = set()
    for _, rooms in script["FLOORS"]:
        here = {name for names, _ in rooms for name in names.split(", ")}
        for room in here:
            assert find_spec(f"admm_softmax.{room}"), room
            assert not rooms_imported_by(room) & above, room
        above |= here


def test_broken_links_of_the_site_are_found(tmp_path):
    broken = runpy.run_path(str(ROOT / "docs" / "_site" / "check_links.py"))["broken"]
    links = ["b.html", "b.html#here", "b.html#gone", "c.html", "#top", "https://example.org/x"]
    page = "".join(f'<a href="{link}">x</a>' for link in links)
    (tmp_path / "a.html").write_text(f'<p id="top">{page}</p>')
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    assert broken(tmp_path) == (["a.html: b.html#gone", "a.html: c.html"], 2, 1)
