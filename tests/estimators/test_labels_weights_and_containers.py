"""Labels, weights and rows of every kind that fit takes, and what is predicted from them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from admm_softmax import SoftmaxRegression
from tests.problems import make, one_hot

X, Y = make(30, 4, 3)


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
    SoftmaxRegression(0.1, solver="lbfgs").fit(S, y)  # Newton's method copies small data


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
