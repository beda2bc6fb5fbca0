"""SoftmaxRegression is a scikit-learn classifier, and a drop-in for LogisticRegression."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from admm_softmax import ADMM, Problem, SoftmaxRegression, operators
from admm_softmax.estimators.coefficients import from_coef
from tests.peers import run_peer
from tests.problems import make, one_hot


@parametrize_with_checks([SoftmaxRegression(), SoftmaxRegression(alpha=0.1, solver=ADMM(rho=0.1))])
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def iris(K=3):
    X, y = load_iris(return_X_y=True)
    return X[y < K], y[y < K]


TIGHT = {"tol": 1e-7, "max_iter": 20_000}


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5}])
def test_c_means_what_it_means_in_scikit_learn(K, C, fit_intercept, class_weight):
    X, y = iris(K)
    X, y = X[10:], y[10:]
    s = np.random.default_rng(0).uniform(0, 2, len(y))
    settings = {"C": C, "fit_intercept": fit_intercept, "class_weight": class_weight}
    ours = SoftmaxRegression(**settings, **TIGHT).fit(X, y, sample_weight=s)
    theirs = LogisticRegression(**settings, solver="newton-cg", tol=1e-10, max_iter=1000)
    fit_peer(theirs, ours, X, y, s)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert ours.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    assert ours.intercept_.shape == theirs.intercept_.shape
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_the_defaults_are_scikit_learns():
    X, y = load_digits(return_X_y=True)
    X, y = X[::3] / 16, y[::3]
    ours = SoftmaxRegression(tol=1e-7).fit(X, y)
    theirs = fit_peer(LogisticRegression(tol=1e-8, max_iter=5000), ours, X, y, tol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


CASES = {
    "dense": {},
    "sparse": {"sparse": True},
    "weighted": {"weighted": True},
    "soft": {"soft": True},
    "two classes": {"K": 2},
    "two soft classes": {"K": 2, "soft": True},
    "wide": {"n": 40, "d": 100},
}


@pytest.mark.parametrize("case", CASES)
def test_meets_scikit_learns_optimum(case):
    settings = {"n": 120, "d": 7, "K": 4, **CASES[case]}
    soft, sparse, weighted = (settings.pop(k, False) for k in ("soft", "sparse", "weighted"))
    X, y = make(**settings, soft=soft)
    K, n = settings["K"], len(X)
    s = np.random.default_rng(0).uniform(0.1, 2, n) if weighted else np.ones(n)
    alpha = 0.02
    ours = SoftmaxRegression(alpha, solver="admm", **TIGHT)
    ours.fit(sp.csr_array(X) if sparse else X, y, sample_weight=s if weighted else None)
    # Soft labels are hard labels with weights: every class once per row.
    X_hard = np.repeat(X, K, axis=0)
    y_hard, s_hard = np.tile(np.arange(K), n), (one_hot(y, K) * s[:, None]).ravel()
    C = (2 if K == 2 else 1) / (s.sum() * alpha)
    theirs = LogisticRegression(C=C, solver="newton-cg", tol=1e-12, max_iter=1000)
    fit_peer(theirs, SoftmaxRegression(alpha), X_hard, y_hard, s_hard)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    problem = Problem.of(X, y, alpha, sample_weight=s)
    objectives = [
        problem.objective(_as_W(model.coef_, model.intercept_)) for model in (ours, theirs)
    ]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-8)


def _as_W(coef, intercept):
    return from_coef(coef, intercept, 2 if len(coef) == 1 else len(coef), True)


def fit_peer(peer, ours, X, y, sample_weight=None, tol=1e-6):
    """A LogisticRegression with the settings of ours, fitted until our gradient is that small."""
    X, targets = ours._checked(X, y, sample_weight)
    alpha = ours._penalty_strength(len(targets.classes), targets.weights.sum())
    problem = ours._problem(X, targets, alpha)

    def gradient(fitted):
        K = len(targets.classes)
        W = from_coef(fitted.coef_, fitted.intercept_, K, ours.fit_intercept)
        return problem.at(W).gradient

    return run_peer(lambda: peer.fit(X, y, sample_weight=sample_weight), gradient, tol)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("settings", [{"C": 2.0}, {"alpha": 0.01}, {"alpha": 0.0}])
def test_to_sklearn(K, settings):
    X, y = make(90, 3, K)
    names = pd.DataFrame(X, columns=["a", "b", "c"])
    clf = SoftmaxRegression(**settings, max_iter=5000).fit(names, y)
    twin = clf.to_sklearn()
    assert isinstance(twin, LogisticRegression)
    np.testing.assert_allclose(twin.predict_proba(names), clf.predict_proba(names), rtol=1e-10)
    np.testing.assert_array_equal(twin.predict(names), clf.predict(names))
    if "C" in settings:
        assert pytest.approx(2.0) == twin.C
    twin.coef_[:] = 0
    assert np.abs(clf.coef_).max() > 0


def test_works_in_pipelines_searches_pickles_and_clones():
    X, y = iris()
    pipe = make_pipeline(StandardScaler(), SoftmaxRegression(solver=ADMM(rho=0.1)))
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.9
    search = GridSearchCV(SoftmaxRegression(max_iter=3000), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    clf = SoftmaxRegression(0.1, operator=operators.gradient((2, 2))).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert len(again.history_) == clf.n_iter_ + 1
    assert clone(clf).alpha == 0.1


def test_infinite_c_is_no_penalty():
    X, y = make(200, 3, 3, noise=2.0)
    clf = SoftmaxRegression(C=np.inf, tol=1e-6).fit(X, y)
    plain = SoftmaxRegression(alpha=0.0, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, plain.coef_)
