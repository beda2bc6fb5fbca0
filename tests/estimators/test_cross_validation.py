"""SoftmaxRegressionCV: folds are fits on their rows, choices are those of the scores."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GroupKFold, LeaveOneOut, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from admm_softmax import ADMM, SGD, Problem, SoftmaxRegression, SoftmaxRegressionCV
from admm_softmax.design import DenseDesign
from tests.estimators.cross_validation_data import ALPHAS, data
from tests.peers import run_peer
from tests.problems import make


@pytest.mark.filterwarnings("ignore:The least populated class")
@parametrize_with_checks([SoftmaxRegressionCV(alphas=3, cv=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "two classes", "soft", "wide"])
def test_folds_are_fits_on_their_rows(kind):
    X, y = data(kind)
    tol = 1e-5 if kind == "float32" else 1e-7
    folds = StratifiedKFold(4)
    clf = SoftmaxRegressionCV(ALPHAS, cv=folds, tol=tol).fit(X, y)
    labels = y if y.ndim == 1 else y.argmax(axis=1)
    for f, (train, test) in enumerate(folds.split(X, labels)):
        for a, alpha in enumerate(clf.alphas_):
            alone = SoftmaxRegression(alpha, tol=tol).fit(X[train], y[train])
            got = clf.coefs_paths_[f, a][:, :-1]
            np.testing.assert_allclose(got, alone.coef_, atol=max(50 * tol / alpha, 1e-5))
            log_p = alone.predict_log_proba(X[test])
            C = y[test] if y.ndim == 2 else np.eye(len(clf.classes_))[
                np.searchsorted(clf.classes_, y[test])
            ]  # fmt: skip
            expected = (C * log_p).sum(axis=1).mean()
            assert clf.scores_[f, a] == pytest.approx(expected, abs=20 * tol / alpha)
    best = clf.scores_.mean(axis=0).argmax()
    assert clf.alpha_ == clf.alphas_[best]
    whole = SoftmaxRegression(clf.alpha_, tol=tol).fit(X, y)
    np.testing.assert_allclose(clf.coef_, whole.coef_, atol=max(50 * tol / clf.alpha_, 1e-5))
    assert clf.status_ == "converged"


def test_attributes_have_their_shapes():
    X, y = data()
    clf = SoftmaxRegressionCV(4, cv=3).fit(X, y)
    assert clf.alphas_.shape == clf.Cs_.shape == (4,)
    assert (np.diff(clf.alphas_) < 0).all()
    assert clf.scores_.shape == (3, 4)
    assert clf.n_iter_.shape == (1, 3, 4)  # as in scikit-learn
    assert clf.coefs_paths_.shape == (3, 4, 3, 9)
    np.testing.assert_allclose(clf.Cs_, 1 / (240 * clf.alphas_))
    assert pytest.approx(1 / (240 * clf.alpha_)) == clf.C_
    bare = SoftmaxRegressionCV(2, cv=3, fit_intercept=False).fit(X, y)
    assert bare.coefs_paths_.shape == (3, 2, 3, 8)
    two = SoftmaxRegressionCV(2, cv=3).fit(X, y > 0)
    assert two.coefs_paths_.shape == (3, 2, 1, 9)
    np.testing.assert_allclose(two.Cs_, 2 / (240 * two.alphas_))


@pytest.mark.parametrize("kind", [3, 2])
def test_agrees_with_scikit_learns(kind):
    X, y = load_wine(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), np.minimum(y, kind - 1)
    folds = list(StratifiedKFold(3).split(X, y))
    Cs = np.array([0.01, 0.1, 1.0])
    peer = LogisticRegressionCV(
        Cs=Cs, cv=folds, scoring="neg_log_loss", solver="newton-cg", tol=1e-10, max_iter=1000
    )

    def gradient_at(W, rows, C):
        W = np.concatenate([-W / 2, W / 2], axis=1) if kind == 2 else W
        alpha = (2 if kind == 2 else 1) / (len(rows) * C)
        return Problem.of(X[rows], y[rows], alpha).at(W).gradient

    def gradients(found):
        """Of the fits to the folds, which the scores are of, and of the last to all rows."""
        W = np.vstack([found.coef_.T, found.intercept_])
        yield gradient_at(W, np.arange(len(y)), np.ravel(found.C_)[0])
        paths = found.coefs_paths_
        if isinstance(paths, dict):  # by class, before they became one array
            paths = np.stack(list(paths.values()), axis=-2)
        for (train, _), fits in zip(folds, paths, strict=True):
            for C, fit in zip(Cs, fits.reshape(len(Cs), -1, len(W)), strict=True):
                yield gradient_at(fit.T, train, C)

    # Its warnings are also of the change between its two forms of attributes.
    peer = run_peer(lambda: peer.fit(X, y), lambda found: np.stack(list(gradients(found))), 1e-7)
    score = run_peer(lambda: peer.score(X, y), lambda _: np.zeros(1), 0.0)
    scores = peer.scores_
    if isinstance(scores, dict):  # by class, all alike, before they became one array
        scores = next(iter(scores.values()))
    ours = SoftmaxRegressionCV(Cs=Cs, cv=folds, tol=1e-8).fit(X, y)
    for f in range(3):
        # α is 0.008 at least: a gradient of 1e-7 is a distance of some 1e-5.
        np.testing.assert_allclose(ours.scores_[f], np.ravel(scores[f]), rtol=1e-4)
    assert pytest.approx(np.ravel(peer.C_)[0]) == ours.C_
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_array_equal(ours.Cs_, Cs)
    assert ours.score(X, y) == pytest.approx(score, rel=1e-4)


def test_without_a_refit_the_folds_are_averaged():
    X, y = data()
    clf = SoftmaxRegressionCV(ALPHAS, cv=3, refit=False).fit(X, y)
    best = list(clf.alphas_).index(clf.alpha_)
    np.testing.assert_allclose(clf.coef_, clf.coefs_paths_[:, best, :, :-1].mean(axis=0))
    np.testing.assert_allclose(clf.intercept_, clf.coefs_paths_[:, best, :, -1].mean(axis=0))
    assert clf.history_ is None


def test_patience_leaves_weak_penalties_untried():
    X, y = make(60, 40, 3, noise=3.0)
    alphas = np.logspace(2, -5, 15)
    whole = SoftmaxRegressionCV(alphas, cv=3).fit(X, y)
    turn = whole.scores_.mean(axis=0).argmax()
    clf = SoftmaxRegressionCV(alphas, cv=3, patience=2).fit(X, y)
    assert len(clf.alphas_) == turn + 3 < 15
    assert clf.scores_.shape == (3, turn + 3)
    assert clf.alpha_ == whole.alpha_
    np.testing.assert_array_equal(clf.coef_, whole.coef_)


def test_the_gram_matrix_is_formed_once_for_all_folds(monkeypatch):
    X, y = make(500, 20, 3)
    rows = []
    original = DenseDesign.gram

    def counted(self, weights, dtype=np.float64):
        rows.append(self.count(weights))
        return original(self, weights, dtype)

    monkeypatch.setattr(DenseDesign, "gram", counted)
    SoftmaxRegressionCV(np.logspace(0, -4, 6), cv=5, tol=1e-6).fit(X, y)
    assert rows == [500]
    rows.clear()
    # ADMM's W-steps want the folds' own matrices: down-dated, still each row once.
    solver = ADMM(rho="auto", relaxation=1.7, start="smart")
    SoftmaxRegressionCV([1e-1, 1e-2], cv=5, solver=solver, tol=1e-5).fit(X, y)
    assert sum(rows) == 500


def test_folds_share_reads(monkeypatch):
    X, y = make(500, 20, 3)
    reads = []
    original = DenseDesign.fold_many

    def counted(self, requests):
        reads.append(len(requests))
        return original(self, requests)

    monkeypatch.setattr(DenseDesign, "fold_many", counted)
    SoftmaxRegressionCV(ALPHAS, cv=5, tol=1e-6).fit(X, y)
    assert np.mean(reads) > 3


@pytest.mark.parametrize("solver", ["admm", "newton-cg", "lbfgs"])
def test_every_solver_takes_folds(solver):
    X, y = data()
    expected = SoftmaxRegressionCV(ALPHAS[:3], cv=3, tol=1e-7).fit(X, y)
    clf = SoftmaxRegressionCV(ALPHAS[:3], cv=3, solver=solver, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(clf.scores_, expected.scores_, atol=1e-5)


def test_groups_and_overlapping_folds():
    X, y = data()
    groups = np.arange(240) // 24
    clf = SoftmaxRegressionCV(2, cv=GroupKFold(5)).fit(X, y, groups=groups)
    assert clf.scores_.shape == (5, 2)
    overlapping = ShuffleSplit(3, test_size=0.2, random_state=0)
    assert SoftmaxRegressionCV(2, cv=overlapping, solver="admm").fit(X, y).scores_.shape == (3, 2)


def test_a_fold_that_lacks_a_class():
    X, y = data()
    order = np.argsort(y, kind="stable")
    pairs = [(order[: np.count_nonzero(y < 2)], order[np.count_nonzero(y < 2) :])]
    clf = SoftmaxRegressionCV([0.1, 0.01], cv=pairs).fit(X, y)
    assert np.isfinite(clf.scores_).all()
    assert (clf.scores_ < -1).all()


def test_it_is_an_estimator_like_any_other(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    clf = make_pipeline(StandardScaler().set_output(transform="pandas"), SoftmaxRegressionCV(3))
    clf.fit(X, y.map({0: "setosa", 1: "versicolor", 2: "virginica"}))
    assert set(clf.predict(X)) == {"setosa", "versicolor", "virginica"}
    model = clf[-1]
    assert list(model.feature_names_in_) == list(X.columns)
    twin = pickle.loads(pickle.dumps(model))
    Z = clf[0].transform(X)
    np.testing.assert_array_equal(twin.predict_proba(Z), model.predict_proba(Z))
    np.testing.assert_allclose(model.to_sklearn().predict_proba(Z), model.predict_proba(Z))
    assert pytest.approx(model.C_) == model.to_sklearn().C
    assert clone(model).get_params() == model.get_params()
    assert isinstance(model.score(Z, pd.Series(clf.predict(X))), float)


@pytest.mark.usefixtures("threads_at_any_size")
def test_the_same_bits_twice_and_the_same_answer_for_any_number_of_threads():
    X, y = data()
    one, two, again = (
        SoftmaxRegressionCV(ALPHAS, cv=3, tol=1e-7, n_threads=t).fit(X, y) for t in (1, 2, 2)
    )
    np.testing.assert_array_equal(two.coefs_paths_, again.coefs_paths_)
    np.testing.assert_array_equal(two.coef_, again.coef_)
    # Factorisations in other numbers of threads may differ in the last digits.
    np.testing.assert_allclose(one.coefs_paths_, two.coefs_paths_, atol=1e-4)


def test_a_picture():
    X, y = data()
    clf = SoftmaxRegressionCV(5, cv=3).fit(X, y)
    figure = clf.plot()
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == ["Negative log loss", "Norm of each class's coefficients"]
    assert len(figure.axes[0].lines) == 3 + 1 + 1 + 1  # folds, their key, the mean, the choice


def test_fits_that_did_not_converge_are_reported_once():
    X, y = data()
    with pytest.warns(match="SoftmaxRegressionCV: 7 of 7 fits did not reach tol = 1.00e-12") as w:
        SoftmaxRegressionCV([0.1, 0.01], cv=3, tol=1e-12, max_iter=3).fit(X, y)
    assert len(w) == 1


def test_progress(capsys, monkeypatch):
    monkeypatch.setattr("admm_softmax.progress.SECONDS_BETWEEN_LINES", 0.0)
    X, y = data()
    SoftmaxRegressionCV([0.1, 0.01], cv=3, verbose=True).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("path 3 of 6: alpha 1.00e-01, score -")
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alphas": [1.0, -1.0]}, r"alphas\[1\] must be positive, got -1.0"),
        ({"alphas": 0}, "alphas must be a number ≥ 1 or a list, got 0"),
        ({"Cs": [1.0, 0.0]}, r"Cs\[1\] must be positive, got 0.0"),
        ({"patience": 0}, "patience must be at least 1 or None, got 0"),
        ({"scoring": "nothing"}, "'nothing' is not a valid scoring value|nothing"),
        ({"solver": "magic"}, "solver must be one of"),
    ],
)
def test_bad_settings(settings, message):
    X, y = data()
    with warnings.catch_warnings(), pytest.raises(ValueError, match=message):
        SoftmaxRegressionCV(**settings).fit(X, y)


def test_a_failed_fit_leaves_the_last_one_whole():
    X, y = data()
    clf = SoftmaxRegressionCV([0.1], cv=3).fit(X, y)
    before = clf.coef_.copy()
    clf.set_params(alphas=[-1.0])
    with pytest.raises(ValueError, match="positive"):
        clf.fit(X, y)
    np.testing.assert_array_equal(clf.coef_, before)


def test_many_folds():
    X, y = make(70, 3, 3)
    clf = SoftmaxRegressionCV([0.1], cv=LeaveOneOut(), scoring="accuracy").fit(X, y)
    assert clf.scores_.shape == (70, 1)


def test_sgd_sees_only_the_rows_of_its_fold():
    X, y = make(600, 5, 3)
    pairs = [(np.arange(150), np.arange(150, 600))]
    settings = {"solver": SGD(0.5, batch_size=10), "max_iter": 20, "tol": 0.0}
    with pytest.warns(match="did not reach"):
        clf = SoftmaxRegressionCV([1e-2], cv=pairs, refit=False, **settings).fit(X, y)
    with pytest.warns(match="tol"):
        alone = SoftmaxRegression(1e-2, **settings).fit(X[:150], y[:150])
    np.testing.assert_allclose(clf.coef_, alone.coef_, rtol=1e-9)
