"""More that a user of LogisticRegression and LogisticRegressionCV expects: shapes, routing, jobs."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.utils.fixes import parse_version

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV
from tests.peers import fitted
from tests.problems import make

IS_1_9 = parse_version(sklearn.__version__) >= parse_version("1.9")


# ---- metadata routing ----


def test_groups_go_through_a_cross_validation_around_it():
    """The splitter inside asks for groups by itself: nobody needs to call `set_fit_request`."""
    X, y = make(120, 4, 3)
    groups = np.arange(120) // 10
    with sklearn.config_context(enable_metadata_routing=True):
        inner = SoftmaxRegressionCV([0.1], cv=GroupKFold(3), scoring="accuracy")
        found = cross_validate(inner, X, y, cv=GroupKFold(2), params={"groups": groups})
        assert "groups" not in str(inner.get_metadata_routing()._self_request)
    assert found["test_score"].shape == (2,)


# ---- shapes beside l1_ratios ----


@pytest.mark.parametrize("classes", [2, 3])
def test_attributes_beside_l1_ratios_have_scikit_learns_shapes(classes):
    X, y = make(90, 4, classes)
    settings = {"Cs": [0.1, 1.0, 10.0], "l1_ratios": [0.0, 0.5], "cv": 4, "scoring": "accuracy"}
    ours = SoftmaxRegressionCV(**settings).fit(X, y)
    assert ours.Cs_.tolist() == settings["Cs"]
    assert ours.alphas_.shape == (2, 3)
    assert ours.n_iter_.shape == ours.scores_.shape == (4, 2, 3)
    if IS_1_9:
        peer = LogisticRegressionCV(**settings, solver="saga", use_legacy_attributes=False)
        peer = fitted(peer, X, y)
        for name in ("Cs_", "l1_ratios_", "scores_", "coefs_paths_", "n_iter_", "coef_"):
            assert getattr(ours, name).shape == getattr(peer, name).shape, name
        assert np.shape(ours.C_) == np.shape(peer.C_) == ()


def test_cs_of_paths_that_ended_early_are_those_of_the_longest():
    X, y = make(120, 4, 3, noise=2.0)
    given = [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3]
    clf = SoftmaxRegressionCV(Cs=given, l1_ratios=[0.0, 1.0], cv=3, patience=1).fit(X, y)
    assert clf.Cs_.tolist() == given[: clf.scores_.shape[2]]
    assert clf.C_ in clf.Cs_


# ---- parameters ----


@pytest.mark.parametrize("kind", [SoftmaxRegression, SoftmaxRegressionCV])
def test_any_number_of_jobs_is_accepted_and_changes_nothing(kind):
    X, y = make(60, 3, 3)
    expected = kind().fit(X, y).coef_
    for jobs in (None, 1, -1, 4, np.int64(2)):
        np.testing.assert_array_equal(kind(n_jobs=jobs).fit(X, y).coef_, expected)
    for jobs in (0, 2.5, "all", [1], np.array([1, 2])):
        with pytest.raises(ValueError, match=r"n_jobs must be None or a whole.*use n_threads"):
            kind(n_jobs=jobs).fit(X, y)


# ---- labels and rows of all kinds ----


def test_labels_in_an_index_and_in_strings_of_any_length():
    X, y = make(90, 4, 3)
    names = np.array(["no", "yes", "maybe"])[y]
    expected = SoftmaxRegression(0.1).fit(X, names).predict(X)
    for labels in (pd.Index(names), names.astype(np.dtypes.StringDType())):
        clf = SoftmaxRegression(0.1).fit(X, labels)
        np.testing.assert_array_equal(clf.predict(X), expected)
        assert clf.score(X, labels) == (expected == names).mean()
        cv = SoftmaxRegressionCV([0.1], cv=3, scoring="balanced_accuracy").fit(X, labels)
        assert np.isfinite(cv.scores_).all()


def test_a_missing_label_of_pandas_is_named():
    X, y = make(60, 3, 2)
    labels = pd.Series([None, *np.array(["a", "b"])[y[1:]]], dtype="string")
    with pytest.raises(ValueError, match="y must have a label in every row, got <NA> in row 0"):
        SoftmaxRegression().fit(X, labels)


def test_a_lazy_frame_is_to_be_collected():
    X, y = make(60, 3, 2)
    with pytest.raises(TypeError, match=r"got a LazyFrame.*call collect\(\)"):
        SoftmaxRegression().fit(pl.DataFrame(X).lazy(), y)


def test_weights_in_any_container():
    pa = pytest.importorskip("pyarrow")
    X, y = make(90, 4, 3)
    weights = np.random.default_rng(0).random(90)
    expected = SoftmaxRegression(0.1).fit(X, y, weights)
    for form in (list, pd.Series, pl.Series, pa.array):
        clf = SoftmaxRegression(0.1).fit(X, y, form(weights))
        np.testing.assert_array_equal(clf.coef_, expected.coef_)
        assert clf.score(X, y, form(weights)) == expected.score(X, y, weights)
        cv = SoftmaxRegressionCV([0.1], cv=3, scoring="f1_macro").fit(X, y, form(weights))
        assert np.isfinite(cv.scores_).all()
    with pytest.raises(TypeError, match="sample_weight must hold real numbers, got other"):
        SoftmaxRegression().fit(X, y, ["a"] * 90)


def test_a_cross_validation_is_one_task_of_scikit_learns_callbacks():
    pytest.importorskip("sklearn.callback")
    X, y = make(90, 4, 3)
    seen = []

    class Recorder:
        """What was told, in order."""

        def setup(self, estimator, context):
            seen.append("setup")

        def teardown(self, estimator, context):
            seen.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            seen.append("begin")

        def on_fit_task_end(self, estimator, context):
            seen.append("end")

    plain = SoftmaxRegressionCV([0.1, 1.0], cv=3).fit(X, y)
    clf = SoftmaxRegressionCV([0.1, 1.0], cv=3).set_callbacks(Recorder()).fit(X, y, np.ones(90))
    assert seen == ["setup", "begin", "end", "teardown"]
    np.testing.assert_array_equal(clf.coef_, plain.coef_)
