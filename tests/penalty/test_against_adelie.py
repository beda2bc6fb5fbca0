"""The group lasso, solved by adelie: its solutions are stored, as it needs a NumPy of its own."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

from admm_softmax import SoftmaxRegression, penalties, softmax_path

STORED = json.loads((Path(__file__).parent / "adelie.json").read_text())["fits"]


def data():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("solver", ["auto", "admm"])
@pytest.mark.parametrize("theirs", STORED, ids=lambda fit: f"alpha={fit['alpha']}")
def test_one_fit(theirs, solver):
    clf = SoftmaxRegression(
        alpha=theirs["alpha"], penalty=penalties.GroupLasso(), solver=solver, tol=1e-7
    ).fit(*data())
    assert clf.history_["objective"][-1] == pytest.approx(theirs["objective"], abs=1e-9)
    np.testing.assert_array_equal(clf.coef_ != 0, np.array(theirs["coef"]) != 0)
    np.testing.assert_allclose(clf.coef_, theirs["coef"], atol=1e-3)


def test_a_path():
    alphas = [fit["alpha"] for fit in STORED]
    path = softmax_path(*data(), alphas, penalty=penalties.GroupLasso(), tol=1e-7)
    for coef, theirs in zip(path.coefs, STORED, strict=True):
        np.testing.assert_array_equal(coef != 0, np.array(theirs["coef"]) != 0)
        np.testing.assert_allclose(coef, theirs["coef"], atol=1e-3)
