"""Probes of indicator matrices: one C for all labels, chosen by mean average precision."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from admm_softmax import MultiOutputSoftmaxRegression, probe
from admm_softmax.probes import ProbeResult
from tests.peers import two_class_regression

CS = [1e-3, 1e-1, 10.0]


def parts(T=4):
    rng = np.random.default_rng(0)
    X, B = rng.standard_normal((700, 10)), rng.standard_normal((10, T))
    Y = (X @ B + 2 * rng.logistic(size=(700, T)) > 1).astype(int)
    return (X[:400], Y[:400]), (X[400:500], Y[400:500]), (X[500:], Y[500:])


def test_the_choice_and_the_figures_are_those_of_single_fits():
    train, val, test = parts()
    found = probe(train, val, test, Cs=CS, samples=50, tol=1e-6)
    scores = []
    for C in CS:
        fits = [two_class_regression(train[0], y, C) for y in train[1].T]
        P = np.stack([clf.predict_proba(val[0])[:, 1] for clf in fits], axis=1)
        scores.append(average_precision_score(val[1], P))
    np.testing.assert_allclose(found.val_scores, scores, atol=1e-3)
    assert scores[list(CS).index(found.C)] >= max(scores) - 2e-3
    assert found.metric == "map"
    assert isinstance(found.estimator, MultiOutputSoftmaxRegression)
    both = [np.concatenate(pair) for pair in zip(train, val, strict=True)]
    final = MultiOutputSoftmaxRegression(C=found.C, tol=1e-6).fit(*both)
    P = np.stack([p[:, 1] for p in final.predict_proba(test[0])], axis=1)
    value, low, high = found.test["map"]
    assert value == pytest.approx(average_precision_score(test[1], P), abs=1e-3)
    assert low < value < high
    assert set(found.test) == {"map", "auroc"}
    assert ProbeResult.from_json(found.to_json()).to_json() == found.to_json()


def test_rows_of_length_one_and_a_share_to_validate():
    train, _, test = parts()
    found = probe(train, test=test, Cs=CS, normalize="l2", samples=0, refit=False, metric="auroc")
    assert (found.n_train, found.n_val) == (360, 40)
    assert 0.5 < found.test["auroc"].value < 1


def test_what_is_wrong_is_named():
    train, val, _ = parts()
    with pytest.raises(ValueError, match="normalize='standardize' needs one label per row"):
        probe(train, val, Cs=CS, normalize="standardize")
    with pytest.raises(ValueError, match="shots needs one label per row"):
        probe(train, val, Cs=CS, shots=(1,))
    with pytest.raises(ValueError, match=r"one of \['auroc', 'map'\] for a matrix"):
        probe(train, val, Cs=CS, metric="accuracy")
    with pytest.raises(ValueError, match="must hold 0 and 1 alone"):
        probe((train[0], 2 * train[1]), val, Cs=CS)
    with pytest.raises(ValueError, match="must have 4 labels per row"):
        probe(train, (val[0], val[1][:, :3]), Cs=CS)
    with pytest.raises(ValueError, match="solver is no setting"):
        probe(train, val, Cs=CS, solver="admm")
