"""The Python blocks of the README and the guide run, in order, as a reader would run them."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from admm_softmax import SoftmaxRegression
from tests.problems import make

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_examples_run(page, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)
    # 9 × 28 × 28 features, as in the pages.
    X, y = make(60, 7056, 3)
    X = X / np.sqrt(7056)
    names = {"X": X, "y": y, "X_val": X, "y_val": y, "X_test": X, "y_test": y, "codes": y}
    names["old"] = SoftmaxRegression(0.1).fit(X, y)
    if page == "docs/guide.md":
        from admm_softmax import Problem

        names["problem"] = Problem.of(X, y, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for block in blocks:
            exec(compile(block, page, "exec"), names)


def test_links_of_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
