"""Estimators under penalties with kinks: scikit-learn's answers, standardising, choosing."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from admm_softmax import Problem, SoftmaxRegression, SoftmaxRegressionCV, penalties
from admm_softmax.contracts import check_design
from admm_softmax.design import DenseDesign, ScaledDesign, SparseDesign
from tests.peers import run_peer
from tests.problems import make

#: Before scikit-learn 1.8 l1_ratio says nothing by itself.
MIXED = (
    {} if parse_version(sklearn.__version__) >= parse_version("1.8") else {"penalty": "elasticnet"}
)


@parametrize_with_checks(
    [
        SoftmaxRegression(alpha=0.05, l1_ratio=0.5, standardize=True),
        SoftmaxRegression(C=1.0, l1_ratio=1.0),
        SoftmaxRegression(alpha=0.05, penalty=penalties.GroupLasso()),
        SoftmaxRegression(alpha=0.05, penalty=penalties.Bounds()),
        SoftmaxRegression(alpha=0.05, penalty=penalties.NuclearNorm()),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.filterwarnings("ignore:The least populated class")
@parametrize_with_checks(
    [SoftmaxRegressionCV(alphas=3, cv=2, l1_ratios=[0.5, 1.0], choose="one_standard_error")]
)
def test_scikit_learn_conventions_of_cross_validation(estimator, check):
    check(estimator)


def data(K, kind="dense"):
    X, y = (load_breast_cancer if K == 2 else load_iris)(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if kind == "sparse":
        X = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    weights = None if kind == "dense" else np.random.default_rng(0).random(len(y))
    return X, y, weights


@pytest.mark.parametrize(
    ("K", "C", "l1_ratio", "kind"),
    [
        (3, 0.1, 1.0, "dense"),
        (3, 1.0, 0.5, "sparse"),
        (3, 1.0, 0.5, "weights"),
        (2, 0.05, 1.0, "weights"),
        (2, 0.05, 1.0, "sparse"),
        (2, 0.1, 0.3, "dense"),
    ],
)
def test_C_and_l1_ratio_give_the_answer_of_scikit_learn(K, C, l1_ratio, kind):
    X, y, weights = data(K, kind)
    ours = SoftmaxRegression(C=C, l1_ratio=l1_ratio, tol=1e-8).fit(X, y, weights)
    peer = LogisticRegression(
        C=C, l1_ratio=l1_ratio, solver="saga", tol=1e-10, max_iter=100_000, **MIXED
    )
    alpha = ours._alpha
    penalty = penalties.ElasticNet(ours._ratio)
    problem = Problem.of(X, y, alpha, penalty=penalty, sample_weight=weights)

    def optimality(found):
        W = np.vstack([found.coef_.T, found.intercept_])
        if K == 2:
            W = np.concatenate([-W / 2, W / 2], axis=1)
        return problem.at(W).optimality

    found = run_peer(lambda: peer.fit(X, y, weights), optimality, 1e-5)
    np.testing.assert_allclose(ours.coef_, found.coef_, atol=2e-4)
    # saga stops where single entries may still be on either side of zero.
    assert np.mean((ours.coef_ != 0) == (found.coef_ != 0)) >= 0.9
    np.testing.assert_allclose(ours.predict_proba(X), found.predict_proba(X), atol=1e-4)
    assert ours.n_nonzero_ == np.count_nonzero(ours.coef_)
    twin = ours.to_sklearn()
    assert pytest.approx(C) == twin.C
    assert twin.l1_ratio == pytest.approx(l1_ratio)


def test_selected_features_have_names():
    X, y, _ = data(3)
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c", "d"])
    clf = SoftmaxRegression(alpha=0.2, penalty=penalties.GroupLasso()).fit(frame, y)
    assert clf.status_ == "converged"
    assert clf.history_["gap"][-1] < 0.05
    kept = np.abs(clf.coef_).max(axis=0) > 0
    assert 0 < kept.sum() < 4
    assert list(clf.selected_features_) == list(frame.columns[kept])
    assert list(clf.fit(X, y).selected_features_) == [f"x{j}" for j in np.flatnonzero(kept)]
    with pytest.raises(NotFittedError):
        _ = SoftmaxRegression().n_nonzero_


@pytest.mark.parametrize("stored", ["dense", "sparse"])
@pytest.mark.parametrize(
    "settings",
    [
        {"l1_ratio": 1.0},
        {},
        {"penalty": penalties.GroupLasso([[0, 1, 2], [3, 4, 5]])},
        {"reference": 0.1 * np.ones((7, 3))},
    ],
)
def test_standardize_is_a_fit_to_standardised_columns(settings, stored):
    rng = np.random.default_rng(0)
    X, y = make(120, 6, 3)
    X = np.where(np.abs(X) > 0.3, X, 0.0) * np.logspace(-2, 2, 6)
    w = rng.random(120)
    mean = w @ X / w.sum()
    deviations = np.sqrt(w @ (X - mean) ** 2 / w.sum())
    own, plain = dict(settings), dict(settings)
    if "reference" in settings:
        plain["reference"] = settings["reference"] * np.append(deviations, 1.0)[:, None]
    X_in = sp.csr_array(X) if stored == "sparse" else X
    a = SoftmaxRegression(alpha=0.01, tol=1e-9, standardize=True, **own).fit(X_in, y, w)
    b = SoftmaxRegression(alpha=0.01, tol=1e-9, **plain).fit((X - mean) / deviations, y, w)
    np.testing.assert_allclose(a.coef_ * deviations, b.coef_, atol=1e-5)
    np.testing.assert_allclose(
        a.predict_proba(X), b.predict_proba((X - mean) / deviations), atol=1e-5
    )
    again = SoftmaxRegression(alpha=0.01, tol=1e-6, standardize=True, **own)
    again.fit(X_in, y, w, coef_init=(a.coef_, a.intercept_))
    assert again.n_iter_ <= 2


def test_standardize_with_validation_rows_and_folds():
    X, y = make(160, 6, 3)
    X = X * np.logspace(-2, 2, 6)
    settings = {"standardize": True, "l1_ratio": 1.0, "alphas": 5}
    cv = SoftmaxRegressionCV(cv=3, scoring="balanced_accuracy", **settings).fit(X, y)
    assert cv.scores_.shape == (3, 5)
    assert cv.scores_.max() > 0.5
    held_out = SoftmaxRegressionCV(**settings).fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    assert held_out.score(X[1::2], y[1::2]) == pytest.approx(held_out.scores_.max())


def test_designs_in_other_units_keep_the_contract():
    def scaled(kind, X, intercept):
        scale = 2.0 ** np.arange(X.shape[1])
        stored = X / scale
        base = kind(sp.csr_array(stored) if kind is SparseDesign else stored, intercept=intercept)
        return ScaledDesign(base, np.append(scale, 1.0) if intercept else scale)

    check_design(lambda X, intercept: scaled(DenseDesign, X, intercept))
    check_design(lambda X, intercept: scaled(SparseDesign, X, intercept))


def test_cross_validation_over_ratios():
    X, y = make(150, 8, 3)
    cv = SoftmaxRegressionCV(alphas=6, l1_ratios=[0.3, 1.0], cv=3).fit(X, y)
    assert cv.scores_.shape == (3, 2, 6)
    assert cv.alphas_.shape == cv.Cs_.shape == (2, 6)
    assert cv.coefs_paths_.shape == (3, 2, 6, 3, 9)
    mean = cv.scores_.mean(axis=0)
    r, a = np.unravel_index(mean.argmax(), mean.shape)
    assert cv.l1_ratio_ == [0.3, 1.0][r]
    assert cv.alpha_ == cv.alphas_[r, a]
    alone = SoftmaxRegression(alpha=cv.alpha_, l1_ratio=cv.l1_ratio_).fit(X, y)
    np.testing.assert_allclose(cv.coef_, alone.coef_, atol=5e-3)
    assert (cv.coefs_paths_[:, :, 0, :, :-1] == 0).mean() > 0.9  # the largest alpha
    cv.plot()


def test_one_standard_error_chooses_the_stronger_penalty():
    X, y = make(150, 8, 3)
    best = SoftmaxRegressionCV(alphas=12, l1_ratio=1.0, cv=4).fit(X, y)
    strong = SoftmaxRegressionCV(alphas=12, l1_ratio=1.0, cv=4, choose="one_standard_error")
    strong.fit(X, y)
    mean = best.scores_.mean(axis=0)
    i = mean.argmax()
    error = best.scores_[:, i].std(ddof=1) / 2.0
    assert strong.alpha_ == best.alphas_[np.flatnonzero(mean >= mean[i] - error)[0]]
    assert strong.alpha_ > best.alpha_
    assert strong.n_nonzero_ <= best.n_nonzero_


def test_Cs_beside_l1_ratio_are_those_of_scikit_learn():
    X, y, _ = data(2)
    cv = SoftmaxRegressionCV(Cs=[0.01, 0.1], l1_ratio=0.5, cv=2, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(cv.Cs_, [0.01, 0.1])
    single = SoftmaxRegression(C=cv.C_, l1_ratio=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(cv.coef_, single.coef_, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"l1_ratio": 1.5}, "l1_ratio must be a number from 0 to 1, got 1.5"),
        ({"l1_ratio": -1}, "l1_ratio must be a number from 0 to 1, got -1"),
        ({"l1_ratio": 0.5, "penalty": penalties.Lasso()}, "give penalty or l1_ratio, not both"),
        ({"penalty": penalties.GroupLasso([[0, 1]])}, "groups must hold each of 4 features once"),
        ({"l1_ratio": 1.0, "solver": "lbfgs"}, "solver='lbfgs' needs a smooth penalty, and Elas"),
        ({"l1_ratio": 1.0, "solver": "sgd"}, "is not smooth: use 'auto' or 'admm'"),
    ],
)
def test_bad_settings_are_one_sentence(settings, words):
    X, y, _ = data(3)
    with pytest.raises(ValueError, match=words):
        SoftmaxRegression(**{"alpha": 0.1, **settings}).fit(X, y)


def test_bad_settings_of_cross_validation():
    X, y, _ = data(3)
    with pytest.raises(ValueError, match="choose must be 'best' or"):
        SoftmaxRegressionCV(alphas=2, choose="worst").fit(X, y)
    with pytest.raises(ValueError, match="needs at least two folds, got 1"):
        SoftmaxRegressionCV(alphas=2, choose="one_standard_error").fit(
            X[::2], y[::2], X_val=X[1::2], y_val=y[1::2]
        )
    with pytest.raises(ValueError, match="l1_ratios must hold at least one number"):
        SoftmaxRegressionCV(alphas=2, l1_ratios=[]).fit(X, y)


def test_tikhonov_by_name_is_the_usual_penalty():
    X, y, _ = data(3)
    usual, named = (
        SoftmaxRegression(alpha=0.1, penalty=penalty).fit(X, y)
        for penalty in (None, penalties.Tikhonov())
    )
    np.testing.assert_array_equal(named.coef_, usual.coef_)
    with pytest.raises(ValueError, match="give operator=… instead"):
        SoftmaxRegression(penalty=penalties.Tikhonov(L=np.eye(4))).fit(X, y)
    with pytest.raises(ValueError, match="Tikhonov needs features first"):
        _ = penalties.Tikhonov().quadratic


@pytest.mark.parametrize(
    "penalty",
    [
        penalties.Lasso(),
        penalties.ElasticNet(0.5),
        penalties.GroupLasso(),
        penalties.SparseGroupLasso([0, 0, 1, 1]),
        penalties.NuclearNorm(),
        penalties.Bounds(),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"standardize": True}])
def test_every_iteration_has_a_certificate(penalty, settings):
    X, y, _ = data(3)
    clf = SoftmaxRegression(alpha=0.05, penalty=penalty, **settings).fit(X, y)
    assert "gap" in clf.history_
    assert "duality" not in clf.history_
    assert len(clf.history_["gap"]) == len(clf.history_["objective"]) > 2
    assert np.isfinite(clf.history_["gap"]).all()
    assert clf.history_["gap"][-1] < 0.05


def test_admm_by_name_takes_every_penalty():
    X, y, _ = data(3)
    for penalty in (penalties.Lasso(), penalties.NuclearNorm()):
        auto, admm = (
            SoftmaxRegression(alpha=0.05, penalty=penalty, solver=solver, tol=1e-6).fit(X, y)
            for solver in ("auto", "admm")
        )
        np.testing.assert_allclose(admm.coef_, auto.coef_, atol=1e-3)
