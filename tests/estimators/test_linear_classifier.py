"""Scores and classes are those of scikit-learn's mixins, which are not loaded for them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils.estimator_checks import check_class_weight_balanced_linear_classifier

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV
from tests.problems import make


class Peer(SparseCoefMixin, LinearClassifierMixin, SoftmaxRegression):
    """The same model with scikit-learn's scores and classes."""


def as_peer(clf):
    peer = Peer()
    peer.__dict__.update(vars(clf))
    return peer


CONTAINERS = [np.asarray, np.float32, np.asfortranarray, sp.csr_array, sp.csc_matrix, list]


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("container", [*CONTAINERS, lambda X: (10 * X).astype(int)])
@pytest.mark.parametrize("labels", [np.asarray, lambda y: np.array(["a", "b", "c"])[y]])
def test_scores_and_classes_are_scikit_learns(K, container, labels):
    X, y = make(60, 4, K)
    model = SoftmaxRegression(0.1).fit(X, labels(y))
    for convert in (model.densify, model.sparsify):
        peer, rows = as_peer(convert()), container(X)
        expected = LinearClassifierMixin.decision_function(peer, rows)
        scores = model.decision_function(rows)
        assert (scores.shape, scores.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(scores, expected)
        classes = model.predict(rows)
        expected = LinearClassifierMixin.predict(peer, rows)
        assert classes.dtype == expected.dtype
        np.testing.assert_array_equal(classes, expected)


@pytest.mark.parametrize(
    "rows",
    [np.ones((2, 3)), np.ones(4), np.full((2, 4), np.nan), np.ones((0, 4)), [["a"] * 4]],
    ids=["columns", "a vector", "NaN", "no rows", "text"],
)
@pytest.mark.parametrize("method", ["decision_function", "predict"])
def test_errors_are_scikit_learns(rows, method):
    X, y = make(60, 4, 3)
    clf = SoftmaxRegression(0.1).fit(X, y)
    with pytest.raises(ValueError) as theirs:  # noqa: PT011  (compared below)
        LinearClassifierMixin.decision_function(as_peer(clf), rows)
    with pytest.raises(ValueError) as ours:  # noqa: PT011
        getattr(clf, method)(rows)
    assert str(ours.value).replace("SoftmaxRegression", "Peer") == str(theirs.value).replace(
        "SoftmaxRegression", "Peer"
    )


def test_names_of_columns_are_checked():
    X, y = make(60, 4, 3)
    clf = SoftmaxRegression(0.1).fit(pd.DataFrame(X, columns=list("abcd")), y)
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(pd.DataFrame(X, columns=list("abce")))


@pytest.mark.parametrize("method", ["sparsify", "densify"])
def test_a_model_that_is_not_fitted_has_nothing_to_convert(method):
    with pytest.raises(NotFittedError, match=f"must be fitted before {method[:-1]}ying"):
        getattr(SoftmaxRegression(), method)()


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("estimator", [SoftmaxRegression(), SoftmaxRegressionCV([0.1], cv=2)])
def test_balanced_classes_as_scikit_learn_checks_linear_classifiers(estimator):
    # check_estimator runs this one on subclasses of LinearClassifierMixin only.
    check_class_weight_balanced_linear_classifier(type(estimator).__name__, estimator)
