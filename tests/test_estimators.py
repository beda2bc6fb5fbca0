"""SoftmaxRegression is a scikit-learn classifier, and a drop-in for LogisticRegression."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from admm_softmax import ADMM, Problem, SoftmaxRegression, operators
from admm_softmax.estimators.coefficients import from_coef
from tests.peers import run_peer
from tests.problems import make, minimum, one_hot


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
@pytest.mark.parametrize("penalize_intercept", [False, True])
def test_operator_and_reference_meet_an_independent_minimiser(K, penalize_intercept):
    X, y = make(80, 8, K)
    L = operators.laplacian((2, 4), 0.5)
    rng = np.random.default_rng(1)
    coef, intercept = rng.standard_normal((K, 8)), rng.standard_normal(K)
    clf = SoftmaxRegression(
        0.05,
        operator=L,
        reference=(coef, intercept),
        penalize_intercept=penalize_intercept,
        **TIGHT,
    ).fit(X, y)
    problem = Problem.of(
        X,
        y,
        0.05,
        operator=L,
        reference=np.vstack([coef.T, intercept]),
        penalize_intercept=penalize_intercept,
    )
    W, _ = minimum(problem, X)
    expected = softmax(np.column_stack([X, np.ones(80)]) @ W, axis=1)
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-5)


def test_every_shape_of_a_reference():
    X, y = make(60, 5, 3)
    coef, intercept = np.random.default_rng(0).standard_normal((3, 5)), np.zeros(3)
    forms = [coef, (coef, intercept), (coef, 0.0), coef.T, np.vstack([coef.T, intercept])]
    fits = [SoftmaxRegression(0.1, reference=form).fit(X, y).coef_ for form in forms]
    for other in fits[1:]:
        np.testing.assert_allclose(other, fits[0], rtol=1e-12)
    assert not np.allclose(fits[0], SoftmaxRegression(0.1).fit(X, y).coef_, atol=1e-2)
    two = (y > 0).astype(int)
    row = np.random.default_rng(1).standard_normal((1, 5))
    a = SoftmaxRegression(0.1, reference=row).fit(X, two)
    b = SoftmaxRegression(0.1, reference=np.vstack([-row / 2, row / 2])).fit(X, two)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-10)
    bare = SoftmaxRegression(0.1, reference=coef, fit_intercept=False).fit(X, y)
    np.testing.assert_array_equal(bare.intercept_, 0.0)


def test_a_strong_penalty_returns_the_reference():
    X, y = make(60, 5, 3)
    coef = np.random.default_rng(0).standard_normal((3, 5))
    clf = SoftmaxRegression(1e6, reference=coef, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(clf.coef_, coef, atol=1e-5)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 7, 11]),
        np.array(["ant", "bee", "cat"]),
        np.array(["ant", "bee", "cat"], dtype=object),
        np.array([-1.0, 0.0, 2.0]),
        np.array([False, True, True]),
    ],
    ids=["ints", "strings", "objects", "floats", "bools"],
)
def test_labels_of_any_kind(labels):
    X, codes = make(90, 5, 3)
    y = labels[codes]
    clf = SoftmaxRegression(0.1).fit(X, y, X_val=X, y_val=y)
    np.testing.assert_array_equal(clf.classes_, np.unique(labels))
    assert set(clf.predict(X)) <= set(labels.tolist())
    assert clf.score(X, y) > 0.5


def test_soft_labels():
    X, C = make(90, 5, 3, soft=True)
    clf = SoftmaxRegression(0.1).fit(X, C, X_val=X[:9], y_val=C[:9])
    np.testing.assert_array_equal(clf.classes_, [0, 1, 2])
    assert clf.predict(X).dtype.kind == "i"
    for frame in (pd.DataFrame(C), pl.DataFrame(C)):
        again = SoftmaxRegression(0.1).fit(X, frame)
        np.testing.assert_allclose(again.coef_, SoftmaxRegression(0.1).fit(X, C).coef_)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 2.0, 2: 0.25}])
def test_class_weights_mean_the_same_for_one_hot_rows(class_weight):
    X, y = make(90, 5, 3)
    hard = SoftmaxRegression(0.1, class_weight=class_weight).fit(X, y)
    soft = SoftmaxRegression(0.1, class_weight=class_weight).fit(X, one_hot(y, 3))
    np.testing.assert_allclose(hard.coef_, soft.coef_, rtol=1e-8)
    assert not np.allclose(hard.coef_, SoftmaxRegression(0.1).fit(X, y).coef_, rtol=1e-3)


def test_integer_weights_equal_repeated_rows():
    X, y = make(90, 5, 3)
    s = np.random.default_rng(0).integers(0, 3, 90)
    weighted = SoftmaxRegression(0.05).fit(X, y, sample_weight=s)
    repeated = SoftmaxRegression(0.05).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    "form",
    [
        sp.csr_array,
        sp.csr_matrix,
        sp.csc_array,
        sp.csc_matrix,
        np.asfortranarray,
        lambda X: pd.DataFrame(X, columns=list("abcde")),
        lambda X: pl.DataFrame(X, schema=list("abcde")),
        lambda X: X.tolist(),
    ],
    ids=[
        "csr_array",
        "csr_matrix",
        "csc_array",
        "csc_matrix",
        "fortran",
        "pandas",
        "polars",
        "lists",
    ],
)
def test_every_container_gives_the_same_fit(form):
    X, y = make(90, 5, 3)
    expected = SoftmaxRegression(0.05).fit(X, y)
    clf = SoftmaxRegression(0.05).fit(form(X), y)
    np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(clf.predict_proba(form(X)), expected.predict_proba(X), rtol=1e-8)
    # The names that scikit-learn itself sees: an older one does not know every frame.
    scaler = StandardScaler(with_mean=False).fit(form(X))
    names = getattr(scaler, "feature_names_in_", None)
    np.testing.assert_array_equal(getattr(clf, "feature_names_in_", None), names)


def test_sparse_input_is_never_densified(monkeypatch):
    X, y = make(90, 5, 3)
    S = sp.csr_matrix(X)
    monkeypatch.setattr(type(sp.csr_array(S)), "todense", None)
    monkeypatch.setattr("admm_softmax.solvers.least_squares.auto.LARGEST_FACTOR", 1)
    monkeypatch.setattr(type(sp.csr_array(S)), "toarray", None)
    SoftmaxRegression(0.1).fit(S, y)


def test_float32_stays_float32():
    X, y = make(90, 5, 3, dtype=np.float32)
    clf = SoftmaxRegression(0.05).fit(X, y)
    assert clf.coef_.dtype == clf.intercept_.dtype == np.float32
    assert clf.predict_proba(X).dtype == np.float32
    double = SoftmaxRegression(0.05).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(clf.coef_, double.coef_, atol=1e-5)


def test_probabilities():
    X, y = make(90, 5, 3)
    clf = SoftmaxRegression(0.05).fit(X, y)
    P = clf.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.log(P), clf.predict_log_proba(X), rtol=1e-10)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[P.argmax(axis=1)])
    far = clf.predict_log_proba(X[:1] * 1e5)
    assert np.isfinite(far).all()


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


def test_validation_keeps_the_best_iterate():
    X, y = make(60, 20, 3, noise=3.0)
    X_val, y_val = make(200, 20, 3, noise=3.0)
    solver = ADMM(rho=1e-3)
    settings = {"solver": solver, "max_iter": 60, "tol": 1e-12}
    with pytest.warns(ConvergenceWarning):
        best = SoftmaxRegression(1e-6, **settings).fit(X, y, X_val=X_val, y_val=y_val)
    with pytest.warns(ConvergenceWarning):
        last = SoftmaxRegression(1e-6, keep="last", **settings).fit(X, y, X_val=X_val, y_val=y_val)
    losses = best.history_["val_loss"]
    assert losses.argmin() < len(losses) - 1

    def loss(clf):
        return -clf.predict_log_proba(X_val)[np.arange(200), y_val].mean()

    assert loss(best) == pytest.approx(losses.min(), rel=1e-8)
    assert loss(last) == pytest.approx(losses[-1], rel=1e-8)
    with pytest.warns(ConvergenceWarning):
        accurate = SoftmaxRegression(1e-6, monitor="accuracy", **settings).fit(
            X, y, X_val=X_val, y_val=y_val
        )
    assert accurate.score(X_val, y_val) == pytest.approx(
        accurate.history_["val_accuracy"].max(), abs=1e-12
    )


def test_validation_weights_count():
    X, y = make(60, 5, 3)
    s = np.r_[np.ones(20), np.zeros(20)]
    half = SoftmaxRegression(0.1).fit(X, y, X_val=X[:20], y_val=y[:20])
    whole = SoftmaxRegression(0.1).fit(X, y, X_val=X[:40], y_val=y[:40], sample_weight_val=s)
    np.testing.assert_allclose(half.history_["val_loss"], whole.history_["val_loss"], rtol=1e-12)


def test_warm_start_continues():
    X, y = make(200, 6, 4)
    cold = SoftmaxRegression(0.01).fit(X, y)
    warm = SoftmaxRegression(0.01, warm_start=True).fit(X, y)
    first = warm.n_iter_
    warm.fit(X, y)
    assert first == cold.n_iter_
    assert warm.n_iter_ <= 2
    warm.fit(X[:, :4], y)
    np.testing.assert_allclose(
        warm.coef_, SoftmaxRegression(0.01).fit(X[:, :4], y).coef_, rtol=1e-12
    )
    assert cold.fit(X, y).n_iter_ == first


@pytest.mark.parametrize("solver", ["auto", "admm", "newton-cg"])
def test_coef_init_is_where_it_starts(solver):
    X, y = make(200, 6, 4)
    done = SoftmaxRegression(0.01, tol=1e-8, max_iter=3000).fit(X, y)
    again = SoftmaxRegression(0.01, solver=solver)
    for form in ((done.coef_, done.intercept_), np.vstack([done.coef_.T, done.intercept_])):
        assert again.fit(X, y, coef_init=form).n_iter_ == 0
    with pytest.raises(ValueError, match="coef_init must be finite, got NaN"):
        again.fit(X, y, coef_init=np.full((4, 6), np.nan))
    with pytest.raises(ValueError, match="coef_init must have one of the shapes"):
        again.fit(X, y, coef_init=np.zeros((2, 2)))


def test_two_classes_start_from_one_vector():
    X, y = make(200, 6, 2)
    done = SoftmaxRegression(0.01, tol=1e-8).fit(X, y)
    again = SoftmaxRegression(0.01).fit(X, y, coef_init=(done.coef_, done.intercept_))
    assert again.n_iter_ == 0


def test_callbacks_time_limit_and_status():
    X, y = make(90, 5, 3)
    seen = []

    def stop(iterate):
        seen.append(iterate.W.copy())
        return len(seen) == 3

    clf = SoftmaxRegression(0.05, callbacks=[stop], tol=0).fit(X, y)
    assert (clf.status_, clf.n_iter_) == ("stopped", 2)
    np.testing.assert_allclose(clf.coef_, seen[-1][:-1].T)
    with pytest.warns(ConvergenceWarning, match=r"time_limit after 0 iterations.*time_limit"):
        clf = SoftmaxRegression(0.05, time_limit=1e-9).fit(X, y)
    assert clf.status_ == "time_limit"
    assert SoftmaxRegression(0.05).fit(X, y).status_ == "converged"


def test_ctrl_c_leaves_a_fitted_model():
    X, y = make(90, 5, 3)

    def interrupt(iterate):
        if iterate.passes > 4:
            raise KeyboardInterrupt

    clf = SoftmaxRegression(0.05, callbacks=[interrupt], tol=0).fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.score(X, y) > 0.5


def test_the_iteration_limit_warns_once_with_a_remedy():
    X, y = make(90, 5, 3)
    with pytest.warns(ConvergenceWarning) as caught:
        SoftmaxRegression(0.05, max_iter=2).fit(X, y)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "iteration_limit after 2 iterations" in message
    assert "tol = 1.00e-04" in message
    assert "Increase max_iter" in message
    assert caught[0].filename == __file__


def test_a_model_that_is_the_start_says_so():
    X, y = make(200, 5, 3)
    with pytest.warns(ConvergenceWarning, match="The model is the start itself"):
        SoftmaxRegression(0.05, solver="lbfgs", max_iter=0).fit(X, y)
    unscaled = -100 * X  # as if a pipeline had scaled X and not X_val
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SoftmaxRegression(0.05).fit(X, y, X_val=unscaled, y_val=y)
    start, far = (str(warning.message) for warning in caught)
    assert "did better on the validation rows than the start, which is kept" in start
    assert "X_val lies far from X" in far
    assert {warning.filename for warning in caught} == {__file__}
    fitted = SoftmaxRegression(0.05, tol=1e-8).fit(X, y)
    again = SoftmaxRegression(0.05, tol=1e-4)  # converged at once: nothing to warn about
    again.fit(X, y, coef_init=(fitted.coef_, fitted.intercept_))
    assert again.n_iter_ == 0


def test_one_step_at_a_time_gets_there():
    X, y = make(200, 5, 3)
    clf = SoftmaxRegression(0.05, solver="lbfgs", max_iter=1, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(60):
            clf.fit(X, y)
    assert clf.status_ == "converged"


def test_verbose_shows_progress(capsys):
    X, y = make(90, 5, 3)
    SoftmaxRegression(0.05, verbose=True).fit(X, y)
    assert "converged after" in capsys.readouterr().err


@pytest.mark.usefixtures("threads_at_any_size")
def test_threads_do_not_change_the_fit(monkeypatch):
    X, y = make(900, 5, 3)
    monkeypatch.setattr("admm_softmax.design.dense.DenseDesign.block_rows", lambda self: 100)
    one, two = (SoftmaxRegression(0.05, n_threads=t).fit(X, y) for t in (1, 2))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-10)
    same = SoftmaxRegression(0.05, n_threads=2).fit(X, y)
    np.testing.assert_array_equal(two.coef_, same.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_random_state_seeds_the_solver():
    X, y = make(900, 12, 3)
    settings = {"solver": "sgd", "max_iter": 20}
    fits = [
        SoftmaxRegression(0.05, random_state=s, **settings).fit(X, y).coef_
        for s in (0, 0, 1, None, None)
    ]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[3], fits[4])
    assert not np.array_equal(fits[0], fits[2])
    np.testing.assert_allclose(fits[0], fits[2], atol=5e-2)


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


X, Y = make(30, 4, 3)
BAD = {
    "alpha": ({"alpha": -1.0}, {}, "alpha must be a finite number ≥ 0, got -1.0"),
    "both": ({"alpha": 1.0, "C": 1.0}, {}, "give alpha or C, not both: got alpha=1.0 and C=1.0"),
    "C": ({"C": 0.0}, {}, "C must be positive, got 0.0"),
    "NaN": ({}, {"X": np.where(np.eye(30, 4) > 0, np.nan, X)}, "Input X contains NaN"),
    "infinity": ({}, {"X": np.where(np.eye(30, 4) > 0, np.inf, X)}, "Input X contains infinity"),
    "one class": ({}, {"y": np.full(30, "a")}, "at least two classes, got one class only: 'a'"),
    "NaN in y": ({}, {"y": np.where(Y == 0, np.nan, Y)}, "Input y contains NaN"),
    "length of y": ({}, {"y": Y[:20]}, "y has 20 entries for 30 rows of X"),
    "rows of soft y": ({}, {"y": np.full((20, 2), 0.5)}, "y has 20 rows for 30 rows of X"),
    "continuous y": ({}, {"y": X[:, 0]}, "Unknown label type: continuous"),
    "one soft class": ({}, {"y": one_hot(0 * Y, 3)}, "at least two classes, got one class only: 0"),
    "NaN in X_val": ({}, {"X_val": X + np.nan, "y_val": Y}, "X_val: Input X contains NaN"),
    "length of y_val": (
        {},
        {"X_val": X, "y_val": Y[:9]},
        "y_val has 9 entries for 30 rows of X_val",
    ),
    "soft y_val off": (
        {},
        {"X_val": X, "y_val": one_hot(Y, 3) * 2},
        "row of soft labels y_val must",
    ),
    "class weight": (
        {"class_weight": {0: -1.0}},
        {},
        r"class_weight must be finite and ≥ 0.*\[-1.0",
    ),
    "huge weights": (
        {},
        {"sample_weight": np.full(30, 1e307)},
        "sample_weight must have a finite sum",
    ),
    "huge X": ({}, {"X": X * 1e200}, "X is too large: the squares of its entries overflow"),
    "off the simplex": ({}, {"y": np.full((30, 3), 0.5)}, "sum to 1, got 1.5 in row 0"),
    "negative weight": (
        {},
        {"sample_weight": np.r_[-1.0, np.ones(29)]},
        "sample_weight must be ≥ 0, got -1.0 at position 0",
    ),
    "zero weights": ({}, {"sample_weight": np.zeros(30)}, "positive sum, got 0: all 30 entries"),
    "few weights": ({}, {"sample_weight": np.ones(9)}, "sample_weight has 9 entries for 30 rows"),
    "unseen": (
        {},
        {"X_val": X, "y_val": Y + 5},
        r"y_val holds labels never seen.*\[5, 6, 7\]",
    ),
    "soft y_val": ({}, {"X_val": X, "y_val": np.full((30, 2), 0.5)}, "y_val has 2 columns for 3"),
    "only X_val": ({}, {"X_val": X}, "X_val and y_val go together: y_val is None"),
    "only y_val": ({}, {"y_val": Y}, "X_val and y_val go together: X_val is None"),
    "only weights": ({}, {"sample_weight_val": [1.0]}, "sample_weight_val needs X_val and y_val"),
    "weights of validation": (
        {},
        {"X_val": X, "y_val": Y, "sample_weight_val": np.ones(4)},
        "sample_weight_val has 4 entries for 30 rows",
    ),
    "columns of X_val": (
        {},
        {"X_val": X[:, :2], "y_val": Y},
        "X has 2 features, but .* 4",
    ),
    "operator": ({"operator": sp.eye_array(7)}, {}, "operator must have 4 columns.*got 7"),
    "reference": ({"reference": np.zeros((2, 4))}, {}, r"reference must have one of the shapes .*"),
    "reference pair": (
        {"reference": (np.zeros((3, 4)), np.zeros(2))},
        {},
        r"must have the shapes \(3, 4\) and \(3,\), got \(3, 4\) and \(2,\)",
    ),
    "reference triple": ({"reference": (1, 2, 3)}, {}, r"must be \(coef, intercept\), got 3"),
    "solver": ({"solver": "adam"}, {}, "solver must be one of .* got 'adam'"),
    "max_iter": ({"max_iter": -1}, {}, "max_iter must be a whole number ≥ 0, got -1"),
    "tol": ({"tol": -1}, {}, "tol must be a number ≥ 0, got -1"),
    "time_limit": ({"time_limit": -1}, {}, "time_limit must be positive or None, got -1"),
    "keep": ({"keep": "all"}, {}, "keep must be 'best' or 'last', got 'all'"),
    "monitor": ({"monitor": "f1"}, {}, "monitor must be 'loss' or 'accuracy', got 'f1'"),
    "n_threads": ({"n_threads": 0}, {}, "n_threads must be at least 1 or None, got 0"),
    "class_weight": (
        {"class_weight": "even"},
        {"y": one_hot(Y, 3)},
        "class_weight must be a dict, 'balanced' or None, got 'even'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_the_parameter_the_rule_and_the_value(case):
    settings, arguments, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        SoftmaxRegression(**settings).fit(**{"X": X, "y": Y, **arguments})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": "strong"}, "alpha must be a finite number ≥ 0, got 'strong' of type str"),
        ({"C": "1"}, "C must be positive, got '1' of type str"),
        ({"n_threads": "2"}, "n_threads must be at least 1 or None, got '2'"),
        ({"solver": ADMM}, "solver must be a name or an object with an iterates"),
    ],
)
def test_settings_of_the_wrong_type(settings, message):
    with pytest.raises(TypeError, match=message):
        SoftmaxRegression(**settings).fit(X, Y)


def test_a_fit_that_fails_leaves_the_last_one_whole():
    clf = SoftmaxRegression(0.1).fit(X, Y)
    before = clf.predict(X)
    with pytest.raises(ValueError, match="never seen"):
        clf.fit(X, np.array(list("abc"))[Y], X_val=X, y_val=["z"] * 30)
    np.testing.assert_array_equal(clf.predict(X), before)


def test_a_class_may_weigh_nothing():
    hard = SoftmaxRegression(0.1, class_weight={0: 0.0}).fit(X, Y)
    soft = SoftmaxRegression(0.1, class_weight={0: 0.0}).fit(X, one_hot(Y, 3))
    np.testing.assert_allclose(hard.coef_, soft.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]", object])
def test_soft_labels_in_nullable_frames(dtype):
    C = one_hot(Y, 3)
    clf = SoftmaxRegression(0.1).fit(X, pd.DataFrame(C).astype(dtype))
    np.testing.assert_allclose(clf.coef_, SoftmaxRegression(0.1).fit(X, C).coef_)


def test_score_of_soft_labels_counts_the_most_probable_class():
    X, C = make(90, 5, 3, soft=True)
    clf = SoftmaxRegression(0.1).fit(X, C)
    assert clf.score(X, C) == clf.score(X, C.argmax(axis=1))


def test_a_linear_operator_is_an_operator():
    L = operators.gradient(4)
    expected = SoftmaxRegression(0.1, operator=L).fit(X, Y).coef_
    got = SoftmaxRegression(0.1, operator=aslinearoperator(L)).fit(X, Y).coef_
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_infinite_c_is_no_penalty():
    X, y = make(200, 3, 3, noise=2.0)
    clf = SoftmaxRegression(C=np.inf, tol=1e-6).fit(X, y)
    plain = SoftmaxRegression(alpha=0.0, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, plain.coef_)


def test_a_solver_of_the_wrong_type():
    with pytest.raises(TypeError, match="solver must be a name or an object with an iterates"):
        SoftmaxRegression(solver=3).fit(X, Y)


def test_prediction_checks_its_input():
    with pytest.raises(NotFittedError):
        SoftmaxRegression().predict_proba(X)
    with pytest.raises(NotFittedError):
        SoftmaxRegression().to_sklearn()
    clf = SoftmaxRegression(0.1).fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features, but SoftmaxRegression is expecting 4"):
        clf.predict(X[:, :3])
