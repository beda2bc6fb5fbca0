"""The scores of SoftmaxRegressionCV: scorings, weights, soft labels, scores that are undefined."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import balanced_accuracy_score, log_loss, make_scorer
from sklearn.model_selection import StratifiedKFold

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV
from tests.estimators.cross_validation_data import ALPHAS, data


def test_validation_rows_instead_of_folds():
    X, y = data()
    train, val = np.arange(150), np.arange(150, 240)
    clf = SoftmaxRegressionCV(ALPHAS).fit(X[train], y[train], X_val=X[val], y_val=y[val])
    assert clf.scores_.shape == (1, 5)
    for alpha, score in zip(clf.alphas_, clf.scores_[0], strict=True):
        alone = SoftmaxRegression(alpha, tol=1e-7).fit(X[train], y[train])
        assert score == pytest.approx(-log_loss(y[val], alone.predict_proba(X[val])), abs=1e-3)
    np.testing.assert_array_equal(clf.coef_, clf.coefs_paths_[0, clf.scores_[0].argmax(), :, :-1])
    weights = np.r_[np.ones(45), np.zeros(45)]
    half = SoftmaxRegressionCV(ALPHAS).fit(
        X[train], y[train], X_val=X[val], y_val=y[val], sample_weight_val=weights
    )
    other = SoftmaxRegressionCV(ALPHAS).fit(
        X[train], y[train], X_val=X[val[:45]], y_val=y[val[:45]]
    )
    np.testing.assert_allclose(half.scores_, other.scores_, rtol=1e-10)


@pytest.mark.parametrize(
    "scoring", ["balanced_accuracy", "accuracy", None, make_scorer(balanced_accuracy_score)]
)
def test_scorings(scoring):
    X, y = data()
    folds = list(StratifiedKFold(3).split(X, y))
    clf = SoftmaxRegressionCV(ALPHAS, cv=folds, scoring=scoring, tol=1e-7).fit(X, y)
    for f, (train, test) in enumerate(folds):
        alone = SoftmaxRegression(0.1779, tol=1e-7).fit(X[train], y[train])
        assert alone.alpha == pytest.approx(clf.alphas_[1], rel=1e-3)
        predicted = alone.predict(X[test])
        if scoring in ("accuracy", None):
            expected = (predicted == y[test]).mean()
        else:
            expected = balanced_accuracy_score(y[test], predicted)
        assert clf.scores_[f, 1] == pytest.approx(expected, abs=1e-9)
    if scoring in ("accuracy", None):
        assert clf.score(X, y) == (clf.predict(X) == y).mean()
    with_rows = SoftmaxRegressionCV(ALPHAS, scoring=scoring)
    with_rows.fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:])
    assert with_rows.scores_.shape == (1, 5)


def test_weights_count_in_fits_and_scores():
    X, y = data()
    twice = np.r_[np.arange(240), np.arange(80)]
    folds = [(np.arange(120), np.arange(120, 240))]
    repeated = [(np.r_[np.arange(120), 240 + np.arange(80)], np.arange(120, 240))]
    weights = np.ones(240)
    weights[:80] = 2.0
    for scoring in ("neg_log_loss", "balanced_accuracy"):
        settings = {"alphas": ALPHAS, "scoring": scoring, "tol": 1e-8}
        weighted = SoftmaxRegressionCV(cv=folds, **settings).fit(X, y, weights)
        plain = SoftmaxRegressionCV(cv=repeated, **settings).fit(X[twice], y[twice])
        np.testing.assert_allclose(weighted.scores_, plain.scores_, atol=1e-5)
        np.testing.assert_allclose(weighted.coef_, plain.coef_, atol=1e-4)
    held_out = weights.copy()
    held_out[120:160] = 0.0
    without = SoftmaxRegressionCV(ALPHAS, cv=folds, tol=1e-8).fit(X, y, held_out)
    other = [(np.arange(120), np.arange(160, 240))]
    expected = SoftmaxRegressionCV(ALPHAS, cv=other, tol=1e-8).fit(X, y, weights)
    np.testing.assert_allclose(without.scores_, expected.scores_, atol=1e-6)


@pytest.mark.parametrize("soft", [False, True])
def test_class_weights_count_in_fits_and_not_in_scores(soft):
    X, y = data("soft" if soft else "dense")
    class_weight = {0: 1.0, 1: 3.0, 2: 0.5}
    folds = list(StratifiedKFold(3).split(X, y.argmax(axis=1) if soft else y))
    clf = SoftmaxRegressionCV([0.01], cv=folds, class_weight=class_weight, tol=1e-8).fit(X, y)
    train, test = folds[0]
    alone = SoftmaxRegression(0.01, class_weight=class_weight, tol=1e-8).fit(X[train], y[train])
    C = y[test] if soft else np.eye(3)[y[test]]
    expected = (C * alone.predict_log_proba(X[test])).sum(axis=1).mean()
    assert clf.scores_[0, 0] == pytest.approx(expected, abs=1e-5)


def test_soft_labels_are_scored_softly():
    X, y = data("soft")
    clf = SoftmaxRegressionCV([0.01], cv=3).fit(X, y)
    expected = (y * clf.predict_log_proba(X)).sum(axis=1).mean()
    assert clf.score(X, y) == pytest.approx(expected)
    assert clf.score(X, y.argmax(axis=1)) != pytest.approx(expected)


def test_an_undefined_score_does_not_win():
    X, y = data()

    def scorer(estimator, X, y):
        size = float(np.abs(estimator.coef_).max())
        return np.nan if size > 0.5 else size

    clf = SoftmaxRegressionCV(ALPHAS, cv=3, scoring=scorer).fit(X, y)
    assert np.isnan(clf.scores_).any()
    assert np.isfinite(clf.scores_.mean(axis=0)[list(clf.alphas_).index(clf.alpha_)])
    with pytest.warns(UndefinedMetricWarning, match="every score is undefined"):
        clf = SoftmaxRegressionCV([0.1, 1.0], cv=3, scoring=lambda *_: np.nan).fit(X, y)
    assert clf.alpha_ == 0.1


def test_frames_to_validate_on_and_scalar_weights_with_any_scoring():
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    clf = SoftmaxRegressionCV(ALPHAS, scoring="f1_macro")
    clf.fit(frame[:150], y[:150], X_val=frame[150:], y_val=y[150:])
    bare = SoftmaxRegressionCV(ALPHAS, scoring="f1_macro")
    bare.fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:])
    np.testing.assert_array_equal(clf.scores_, bare.scores_)
    weighted = SoftmaxRegressionCV(ALPHAS, cv=3, scoring="f1_macro").fit(X, y, 2.0)
    assert weighted.scores_.shape == (3, 5)


def test_a_class_without_weight_does_not_stop_the_scores():
    X, y = load_iris(return_X_y=True)
    pairs = [(np.arange(50, 150), np.arange(50))]
    clf = SoftmaxRegressionCV([0.1], cv=pairs, class_weight={0: 0, 1: 1, 2: 1}).fit(X, y)
    assert np.isfinite(clf.scores_).all()
