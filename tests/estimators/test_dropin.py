"""What a user of LogisticRegression and LogisticRegressionCV expects, point by point."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from admm_softmax import ADMM, SoftmaxRegression, SoftmaxRegressionCV
from tests.peers import fitted
from tests.problems import make

IRIS = load_iris(return_X_y=True)


# ---- folds that lack a class ----


IS_NEW = parse_version(sklearn.__version__) >= parse_version("1.8")


@pytest.mark.parametrize("scoring", ["neg_brier_score", "d2_log_loss_score", "top_k_accuracy"])
def test_scores_of_folds_that_lack_a_class(scoring):
    if scoring == "d2_log_loss_score" and not IS_NEW:
        pytest.skip("scikit-learn before 1.8 scores it without the labels")
    X, y = IRIS
    settings = {"Cs": [0.1, 1.0], "scoring": scoring, "cv": KFold(3)}
    ours = SoftmaxRegressionCV(**settings, tol=1e-7).fit(X, y)
    assert ours.scores_.shape == (3, 2)
    assert np.isfinite(ours.scores_).all()
    if scoring == "top_k_accuracy":  # of the two most probable classes; a class unseen comes last
        assert (ours.scores_ == 0.0).all()


def test_an_undefined_score_is_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning) as caught:
        clf = SoftmaxRegressionCV(Cs=[0.1, 1.0], scoring="roc_auc_ovr", cv=KFold(3)).fit(*IRIS)
    assert np.isnan(clf.scores_).all()
    assert clf.C_ == 0.1
    assert "every score is undefined" in str(caught[-1].message)


def test_a_fold_undefined_under_every_penalty_is_left_out():
    X, y = IRIS
    order = np.argsort(y, kind="stable")
    folds = [(order[:100], order[100:]), *StratifiedKFold(2).split(X, y)]
    with pytest.warns(UndefinedMetricWarning):
        clf = SoftmaxRegressionCV(Cs=[1e-3, 10.0], scoring="roc_auc_ovr", cv=folds).fit(X, y)
    assert np.isnan(clf.scores_[0]).all()
    assert clf.Cs_[clf.scores_[1:].mean(axis=0).argmax()] == clf.C_


# ---- Cs ----


def test_cs_are_the_numbers_given_in_their_order_with_duplicates():
    X, y = make(120, 4, 3)
    given = [3.0, 0.1, 0.7, 3.0]
    clf = SoftmaxRegressionCV(Cs=given, cv=3).fit(X, y)
    assert clf.Cs_.tolist() == given
    assert clf.C_ in given
    assert clf.scores_.shape == (3, 4)
    assert clf.coefs_paths_.shape[:2] == (3, 4)
    np.testing.assert_array_equal(clf.scores_[:, 0], clf.scores_[:, 3])
    alphas = [0.1, 1.0, 0.01]
    other = SoftmaxRegressionCV(alphas, cv=3).fit(X, y)
    assert other.alphas_.tolist() == alphas
    falling = SoftmaxRegressionCV([1.0, 0.1, 0.01], cv=3).fit(X, y)
    np.testing.assert_array_equal(other.scores_[:, [1, 0, 2]], falling.scores_)
    other.plot()


def test_a_number_of_cs_is_scikit_learns_grid():
    X, y = make(60, 3, 3)
    clf = SoftmaxRegressionCV(Cs=10, cv=2).fit(X, y)
    np.testing.assert_array_equal(clf.Cs_, np.logspace(-4, 4, 10))


@pytest.mark.parametrize("classes", [2, 3])
def test_cs_mean_the_same_in_folds_as_in_a_grid_search(classes):
    X, y = load_wine(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), np.minimum(y, classes - 1)
    weights = np.random.default_rng(0).random(len(y)) + 0.5
    Cs, folds = [0.003, 0.03, 0.3, 3.0], list(StratifiedKFold(4).split(X, y))
    ours = SoftmaxRegressionCV(Cs=Cs, cv=folds, tol=1e-8).fit(X, y, sample_weight=weights)
    for f, (train, _) in enumerate(folds):
        for c, C in enumerate(Cs):
            alone = SoftmaxRegression(C=C, tol=1e-8).fit(X[train], y[train], weights[train])
            got = ours.coefs_paths_[f, c][:, :-1]
            np.testing.assert_allclose(got, alone.coef_, atol=1e-4)
    plain = SoftmaxRegressionCV(Cs=Cs, cv=folds, scoring="accuracy").fit(X, y)
    search = GridSearchCV(SoftmaxRegression(), {"C": Cs}, cv=folds).fit(X, y)
    assert search.best_params_["C"] == plain.C_
    np.testing.assert_allclose(plain.scores_.mean(axis=0), search.cv_results_["mean_test_score"])


@pytest.mark.parametrize("solver", ["auto", "admm", "newton-cg"])
def test_no_penalty_among_the_cs(solver):
    X, y = make(300, 4, 3, noise=2.0)
    clf = SoftmaxRegressionCV(Cs=[1, np.inf, 0.1], cv=3, solver=solver, tol=1e-7).fit(X, y)
    assert clf.Cs_.tolist() == [1.0, np.inf, 0.1]
    free = SoftmaxRegression(alpha=0.0, tol=1e-7).fit(X, y)
    if np.inf == clf.C_:
        np.testing.assert_allclose(clf.coef_, free.coef_, atol=1e-3)
    only = SoftmaxRegressionCV(Cs=[np.inf], cv=3, solver=solver, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(only.coef_, free.coef_, atol=1e-3)
    assert only.to_sklearn().C == only.C_ == np.inf
    clf.plot()


# ---- metadata routing ----


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_weights_reach_the_scorer_where_it_asks(routing):
    X, y = make(120, 4, 3, noise=2.0)
    weights = np.random.default_rng(0).random(120)
    seen = []

    def metric(y_true, y_pred, sample_weight=None):
        seen.append(sample_weight)
        return float(np.average(y_true == y_pred, weights=sample_weight))

    for asks in (True, False):
        seen.clear()
        scorer = make_scorer(metric).set_score_request(sample_weight=asks)
        clf = SoftmaxRegressionCV([0.1], cv=3, scoring=scorer).fit(X, y, sample_weight=weights)
        assert {part is not None for part in seen} == {asks}
        clf.score(X, y, sample_weight=weights)
        assert (seen[-1] is not None) == asks
    if not IS_NEW:
        return
    # Routing decides about loss and accuracy, which passes yield, too.
    settings = {"alphas": [0.1], "cv": list(StratifiedKFold(3).split(X, y))}
    with pytest.raises(ValueError, match="sample_weight"):  # as scikit-learn's: say which
        SoftmaxRegressionCV(**settings, scoring="accuracy").fit(X, y, sample_weight=weights)
    named = get_scorer("accuracy").set_score_request(sample_weight=False)
    plain = SoftmaxRegressionCV(**settings, scoring=named).fit(X, y, sample_weight=weights)
    assert {round(40 * x, 9) % 1 for x in plain.scores_.ravel()} == {0.0}  # whole rows


def test_groups_reach_the_splitter_through_a_router(routing):
    X, y = make(120, 4, 3)
    groups = np.arange(120) // 10
    clf = SoftmaxRegressionCV([0.1], cv=GroupKFold(4), scoring="accuracy")
    clf.fit(X, y, groups=groups)
    assert clf.scores_.shape == (4, 1)
    clf.get_metadata_routing()


def test_without_routing_unknown_metadata_are_refused():
    X, y = make(60, 4, 3)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        SoftmaxRegressionCV([0.1], cv=3).fit(X, y, colour=groups_of(60))
    clf = SoftmaxRegressionCV([0.1], cv=GroupKFold(3)).fit(X, y, groups=groups_of(60))
    assert clf.scores_.shape == (3, 1)


def groups_of(n):
    return np.arange(n) // 5


def test_metadata_are_refused_before_a_model_is_asked_for():
    X, y = make(20, 4, 3)
    with pytest.raises(ValueError, match="is only supported if enable_metadata_routing=True"):
        SoftmaxRegressionCV().score(X, y, colour=1.0)


# ---- steps ----


@pytest.mark.parametrize("solver", ["auto", "admm", "lbfgs", "newton-cg", "sgd"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_step_per_fit_leads_to_a_model(solver):
    X, y = StandardScaler().fit_transform(IRIS[0]), IRIS[1]
    start = SoftmaxRegression(max_iter=0, solver=solver).fit(X, y)
    assert not start.coef_.any()
    assert start.n_iter_.tolist() == [0]
    clf = SoftmaxRegression(warm_start=True, max_iter=1, solver=solver)
    taken = [clf.fit(X, y).n_iter_[0] for _ in range(50)]
    assert taken[0] == 1  # where a fit begins at a solution, none is needed
    assert clf.score(X, y) > 0.8  # of the start: a third


# ---- attributes and methods ----


def test_n_iter_has_scikit_learns_shapes():
    X, y = make(90, 4, 3)
    peer = fitted(LogisticRegression(), X, y)
    ours = SoftmaxRegression().fit(X, y)
    assert ours.n_iter_.shape == peer.n_iter_.shape == (1,)
    assert ours.n_iter_.dtype.kind == "i"
    assert SoftmaxRegressionCV([0.1, 0.01], cv=4).fit(X, y).n_iter_.shape == (1, 4, 2)


@pytest.mark.parametrize("estimator", [SoftmaxRegression(), SoftmaxRegressionCV(2, cv=2)])
def test_sparsify_and_densify(estimator):
    X, y = make(90, 6, 3)
    clf = clone(estimator).fit(X, y)
    expected = clf.predict_proba(X)
    assert sp.issparse(clf.sparsify().coef_)
    np.testing.assert_allclose(clf.predict_proba(X), expected)
    np.testing.assert_allclose(clf.predict_proba(sp.csr_array(X)), expected)
    from admm_softmax.design import as_design

    np.testing.assert_allclose(clf.predict_proba(as_design(X)), expected)
    np.testing.assert_allclose(clf.to_sklearn().predict_proba(X), expected)
    assert isinstance(clf.densify().coef_, np.ndarray)
    np.testing.assert_allclose(clf.predict_proba(X), expected)
    if isinstance(clf, SoftmaxRegression):  # it starts from the last fit
        clf.set_params(warm_start=True).sparsify().fit(X, y)


def test_feature_selection():
    X, y = make(120, 6, 3)
    assert RFE(SoftmaxRegression(), n_features_to_select=2).fit(X, y).n_features_ == 2
    assert SelectFromModel(SoftmaxRegression()).fit(X, y).transform(X).shape[1] < 6


# ---- refit on all rows ----


@pytest.mark.parametrize("kind", ["dense", "sparse", "soft"])
@pytest.mark.parametrize("grid", [{"alphas": [1.0, 0.1, 0.01]}, {"Cs": [0.01, 1.0]}])
def test_refit_all_fits_training_and_validation_rows(kind, grid):
    X, y = make(200, 5, 3, soft=kind == "soft")
    X = sp.csr_array(X) if kind == "sparse" else X
    s = np.random.default_rng(0).random(200)
    rows = (X[:150], y[:150], s[:150])
    held = {"X_val": X[150:], "y_val": y[150:], "sample_weight_val": s[150:]}
    clf = SoftmaxRegressionCV(**grid, refit="all", tol=1e-8).fit(*rows, **held)
    chosen = {"C": clf.C_} if "Cs" in grid else {"alpha": clf.alpha_}
    both = SoftmaxRegression(**chosen, tol=1e-8).fit(X, y, s)
    np.testing.assert_allclose(clf.coef_, both.coef_, atol=1e-4)
    usual = SoftmaxRegressionCV(**grid, tol=1e-8).fit(*rows, **held)
    assert np.abs(usual.coef_ - clf.coef_).max() > 1e-3
    with pytest.raises(ValueError, match="refit must be True, False or 'all', got 'best'"):
        SoftmaxRegressionCV(refit="best").fit(*rows)


# ---- parameters ----


@pytest.mark.parametrize("kind", [SoftmaxRegression, SoftmaxRegressionCV])
@pytest.mark.parametrize(
    ("name", "neutral", "other", "words"),
    [
        ("dual", [False], True, "dual=True is not supported: it is liblinear's"),
        (
            "intercept_scaling",
            [1, 1.0],
            2.0,
            "intercept_scaling=2.0 is not supported.*penalize_inter",
        ),
        ("penalty", ["l2", "elasticnet", "deprecated"], "l1", "penalty='l1'.*use l1_ratio=1"),
    ],
)
def test_neutral_values_are_accepted(kind, name, neutral, other, words):
    X, y = make(60, 3, 3)
    for value in neutral:
        kind(**{name: value}).fit(X, y)
    with pytest.raises(ValueError, match=words):
        kind(**{name: other}).fit(X, y)


def test_attributes_are_arrays():
    X, y = make(60, 3, 3)
    clf = SoftmaxRegressionCV(Cs=[1.0], cv=2, use_legacy_attributes=False).fit(X, y)
    assert clf.scores_.shape == (2, 1)
    with pytest.raises(ValueError, match=r"use_legacy_attributes=True is not supported.*arrays"):
        SoftmaxRegressionCV(use_legacy_attributes=True).fit(X, y)


def test_scikit_learns_names_of_penalties():
    X, y = make(60, 3, 3)
    plain = SoftmaxRegression(0.1, tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(
        SoftmaxRegression(0.1, tol=1e-8, penalty="l2").fit(X, y).coef_, plain.coef_
    )
    net = SoftmaxRegression(0.1, l1_ratio=0.5).fit(X, y)
    named = SoftmaxRegression(0.1, l1_ratio=0.5, penalty="elasticnet").fit(X, y)
    np.testing.assert_array_equal(named.coef_, net.coef_)
    with pytest.raises(ValueError, match=r"penalty='l2' is not supported.*l1_ratio is 0.5"):
        SoftmaxRegression(0.1, l1_ratio=0.5, penalty="l2").fit(X, y)
    with pytest.raises(ValueError, match=r"penalty='elasticnet' needs l1_ratio.*got None"):
        SoftmaxRegression(l1_ratio=None, penalty="elasticnet").fit(X, y)
    SoftmaxRegression(l1_ratio=None, penalty="l2").fit(X, y)
    with pytest.raises(ValueError, match=r"penalty='none' is not supported: use C=np.inf"):
        SoftmaxRegression(penalty="none").fit(X, y)
    with pytest.raises(ValueError, match=r"penalty='ridge' is not supported: give None or an obj"):
        SoftmaxRegression(penalty="ridge").fit(X, y)


@pytest.mark.parametrize("name", ["liblinear", "sag", "saga", "newton-cholesky"])
def test_scikit_learns_other_solvers_get_a_sentence(name):
    X, y = make(60, 3, 3)
    with pytest.raises(ValueError, match=f"solver='{name}' is scikit-learn's: here, use solver='"):
        SoftmaxRegression(solver=name).fit(X, y)


def test_settings_of_a_solver_object_are_parameters():
    X, y = make(90, 4, 3)
    clf = SoftmaxRegression(0.1, solver=ADMM(rho=0.1))
    assert clf.get_params()["solver__rho"] == 0.1
    assert "solver__rho" not in clf.get_params(deep=False)
    before = clf.solver
    assert clf.set_params(solver__rho=0.5, tol=1e-3) is clf
    assert (clf.solver.rho, clf.tol, before.rho) == (0.5, 1e-3, 0.1)
    clf.set_params(solver=ADMM(rho=0.2), solver__relaxation=1.5)
    assert clf.solver == ADMM(rho=0.2, relaxation=1.5)
    search = GridSearchCV(clf, {"solver__rho": [0.05, 0.5]}, cv=2).fit(X, y)
    assert search.best_estimator_.solver.rho in (0.05, 0.5)
    with pytest.raises(ValueError, match=r"has no setting 'roh'; it has .*'rho'"):
        clf.set_params(solver__roh=1.0)
    with pytest.raises(ValueError, match="solver='auto' has no setting 'rho'; it has"):
        SoftmaxRegression().set_params(solver__rho=1.0)
    with pytest.raises(ValueError, match="rho must be"):
        clf.set_params(solver__rho=-1.0)
    assert clone(clf).solver == clf.solver


def test_labels_of_pyarrow():
    pa = pytest.importorskip("pyarrow")
    X, y = make(90, 4, 3)
    names = np.array(["no", "yes", "maybe"])[y]
    expected = SoftmaxRegression(0.1).fit(X, names)
    for labels in (pa.array(names), pa.chunked_array([names[:40], names[40:]])):
        clf = SoftmaxRegression(0.1).fit(X, labels, X_val=X, y_val=labels)
        assert clf.classes_.tolist() == expected.classes_.tolist()
        np.testing.assert_array_equal(clf.predict(X), expected.predict(X))
        assert clf.score(X, labels) == expected.score(X, names)
        cv = SoftmaxRegressionCV([0.1], cv=3, scoring="balanced_accuracy").fit(X, labels)
        assert cv.scores_.shape == (3, 1)
        assert 0 < cv.score(X, labels) <= 1
    numbers = SoftmaxRegression(0.1).fit(X, pa.array(y))
    np.testing.assert_allclose(numbers.coef_, SoftmaxRegression(0.1).fit(X, y).coef_)


def test_scikit_learns_callbacks():
    callback = pytest.importorskip("sklearn.callback")
    X, y = make(120, 4, 3)
    monitor, ours = callback.ScoringMonitor(scoring="accuracy"), []
    clf = SoftmaxRegression(0.01, solver="lbfgs", callbacks=lambda i: ours.append(i) and None)
    clf.set_callbacks(monitor).fit(X, y, np.ones(120))
    scores = monitor.get_logs().data_as_pandas
    steps = scores[scores["task_name"] == "step"] if "task_name" in scores else scores
    assert len(ours) == clf.n_iter_ + 1
    assert len(steps) >= clf.n_iter_
    np.testing.assert_allclose(steps["accuracy"].to_numpy()[-1], clf.history_["accuracy"][-1])
    plain = SoftmaxRegression(0.01, solver="lbfgs").fit(X, y)
    np.testing.assert_array_equal(plain.coef_, clf.coef_)


def test_scikit_learns_callbacks_can_stop_a_fit():
    pytest.importorskip("sklearn.callback")

    class Stop:
        """A callback that ends the fit after two steps."""

        seen = 0

        def setup(self, estimator, context):
            self.began = True

        def teardown(self, estimator, context):
            self.ended = True

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.seen += context.task_name == "step"
            return self.seen >= 2

    X, y = make(120, 4, 3)
    stop = Stop()
    clf = SoftmaxRegression(0.01, solver="lbfgs").set_callbacks(stop).fit(X, y)
    assert (clf.status_, clf.n_iter_) == ("stopped", 2)
    assert stop.began
    assert stop.ended
