"""Estimators under any parameters, shapes, types, orders and containers.

A fit ends in a model that is sound, or in a ValueError or TypeError that names what is wrong. What
is checked of a model does not depend on how it was found: finite numbers, probabilities, labels
out of those given, F no larger than at the start, and the same predictions from every container.
"""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from admm_softmax import ADMM, LBFGS, SGD, SoftmaxRegression, SoftmaxRegressionCV, penalties
from tests.trust.effort import examples

CONTAINERS = {
    "array": np.asarray,
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
    "read-only": lambda X: _read_only(X),
    "list": lambda X: X.tolist(),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "pandas": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])]),
}
DTYPES = ["float64", "float32", "float16", "int64", "int8", "uint16", "bool", ">f8"]
LABELS = ["codes", "strings", "floats", "booleans", "objects", "soft", "negative"]


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@st.composite
def data_sets(draw):
    """Rows as a plain array, labels, weights, and what to wrap the rows in."""
    n = draw(st.integers(4, 40))
    d = draw(st.integers(1, 60))
    K = draw(st.integers(2, 4))
    kind = draw(st.sampled_from(LABELS))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    scale = draw(st.sampled_from([1e-6, 1.0, 50.0]))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    X = rng.standard_normal((n, d)) * (scale if dtype.kind == "f" else 50.0)
    X = (np.abs(X) if dtype.kind == "u" else X).astype(dtype)
    codes = np.concatenate([np.arange(K), rng.integers(0, K, max(0, n - K))])[:n]
    K = int(codes.max()) + 1
    y = {
        "codes": codes,
        "strings": np.array(["a", "bb", "ccc", "d"])[codes],
        "floats": codes * 1.0,
        "booleans": codes > 0,
        "objects": np.array(["x", "y", "z", "w"], object)[codes],
        "soft": np.eye(K)[codes] * 0.8 + 0.2 / K,
        "negative": codes - 7,
    }[kind]
    weights = draw(st.sampled_from([None, "random", "some zero"]))
    if weights is not None:
        w = rng.random(n) + 0.1
        weights = np.where(np.arange(n) < n // 2 + K, w, 0.0) if weights == "some zero" else w
    return X, y, weights, draw(st.sampled_from(sorted(CONTAINERS)))


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "alpha": st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 1e6]),
        "fit_intercept": st.booleans(),
        "penalize_intercept": st.booleans(),
        "standardize": st.booleans(),
        "class_weight": st.sampled_from([None, "balanced"]),
        "solver": st.sampled_from(
            ["auto", "admm", "lbfgs", "newton-cg", "sgd", ADMM(rho=0.1), LBFGS(3), SGD(0.01)]
        ),
        "l1_ratio": st.sampled_from([0.0, 0.5, 1.0]),
        "penalty": st.sampled_from([None, "l2", penalties.NuclearNorm(), penalties.Bounds(-1, 1)]),
        "max_iter": st.sampled_from([0, 1, 7, 40]),
        "tol": st.sampled_from([0.0, 1e-8, 1e-3, 1.0]),
        "n_threads": st.sampled_from([None, 1, 2]),
        "random_state": st.sampled_from([None, 3]),
        "keep": st.sampled_from(["best", "last"]),
    },
)


def fitted(clf, X, y, weights):
    """The model, or None where the settings were refused in words."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The number of unique classes is greater")
        try:
            return clf.fit(X, y, weights)
        except (ValueError, TypeError) as error:
            assert len(str(error).split()) >= 4, f"no help: {error!r}"
            return None


def assert_sound(clf, X, given, y):
    n = X.shape[0]
    assert np.isfinite(clf.coef_).all()
    assert np.isfinite(clf.intercept_).all()
    P = clf.predict_proba(given)
    assert P.shape == (n, len(clf.classes_))
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-5)
    labels = clf.predict(given)
    assert np.isin(labels, clf.classes_).all()
    if np.ndim(y) == 1:
        assert set(clf.classes_) <= set(np.unique(y))
    np.testing.assert_allclose(
        clf.decision_function(given), clf.decision_function(X), rtol=1e-3, atol=1e-4
    )


@given(data=data_sets(), settings=SETTINGS)
@examples(40, 900)
def test_any_fit_is_sound_or_refused_in_words(data, settings):
    X, y, weights, container = data
    if container in ("csr", "csc", "coo") and X.dtype == np.float16:
        return  # SciPy has no such matrices
    if not X.dtype.isnative and container in ("csr", "csc", "coo", "polars", "pandas"):
        return  # nor has any of these
    rows = CONTAINERS[container](X)
    clf = fitted(SoftmaxRegression(**settings), rows, y, weights)
    if clf is None:
        return
    plain = np.asarray(X, dtype=clf.coef_.dtype)
    # scikit-learn 1.7 does not find the names of newer frames of polars.
    if container == "pandas" or hasattr(clf, "feature_names_in_"):
        assert clf.feature_names_in_[0] == "c0"
        plain = CONTAINERS["pandas"](plain)
    assert_sound(clf, plain, rows, y)
    F = clf.history_["objective"]
    assert np.isfinite(F[0])
    if clf.keep == "best":
        assert min(F[np.isfinite(F)]) <= F[0]
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(rows), clf.predict(rows))
    assert clone(clf).get_params().keys() == clf.get_params().keys()


@given(data=data_sets(), settings=SETTINGS)
@examples(5, 150)
def test_any_cross_validation_is_sound_or_refused_in_words(data, settings):
    X, y, weights, container = data
    if X.dtype == np.float16 or not X.dtype.isnative:
        return
    own = {k: v for k, v in settings.items() if k not in ("alpha", "keep", "l1_ratio")}
    clf = SoftmaxRegressionCV([1.0, 1e-2], cv=2, **own)
    rows = CONTAINERS[container](X)
    with warnings.catch_warnings():
        # A fold may lack a class, and scikit-learn warns in its own words about classes with few rows.
        warnings.simplefilter("ignore")
        try:
            clf.fit(rows, y, weights)
        except (ValueError, TypeError) as error:
            assert len(str(error).split()) >= 4, f"no help: {error!r}"
            return
    plain = np.asarray(X, dtype=clf.coef_.dtype)
    assert_sound(
        clf, CONTAINERS["pandas"](plain) if container in ("pandas", "polars") else plain, rows, y
    )
    assert clf.scores_.shape == (2, 2)


@pytest.mark.parametrize("container", sorted(CONTAINERS))
def test_containers_agree(container):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 3
    expected = SoftmaxRegression(0.01, tol=1e-8).fit(X, y)
    clf = SoftmaxRegression(0.01, tol=1e-8).fit(CONTAINERS[container](X), y)
    np.testing.assert_allclose(clf.coef_, expected.coef_, atol=1e-6)
