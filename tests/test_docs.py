"""The Python blocks of the README and the guide run, in order, as a reader would run them."""

import doctest
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

from admm_softmax import SoftmaxRegression
from tests.problems import make

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/guide.md", "docs/penalties.md", "docs/probes.md", "docs/deploying.md"],
)
def test_examples_run(page, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    if page == "docs/deploying.md":
        pytest.importorskip("skops", reason="model folders need skops")
    monkeypatch.chdir(tmp_path)
    # 9 × 28 × 28 features, as in the pages.
    X, y = make(60, 7056, 3)
    X = X / np.sqrt(7056)
    names = {"y": y, "y_val": y, "y_test": y, "codes": y}
    names["old"] = SoftmaxRegression(0.1).fit(X, y)
    if page == "docs/guide.md":
        from admm_softmax import Problem

        names["problem"] = Problem.of(X, y, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for block in blocks:
            # A sweep decomposes a matrix of all columns, and a probe fits a hundred times.
            costly = re.search(r"\b(sweep_rho_alpha|probe)\(", block)
            rows = X[:, :50] if costly else X
            names.update(dict.fromkeys(("X", "X_val", "X_test"), rows))
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
