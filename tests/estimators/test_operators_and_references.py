"""The penalty's operator and reference: every form of them, against an independent minimiser."""

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from scipy.special import softmax

from admm_softmax import Problem, SoftmaxRegression, operators
from tests.problems import make, minimum

TIGHT = {"tol": 1e-7, "max_iter": 20_000}
X, Y = make(30, 4, 3)


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


def test_a_linear_operator_is_an_operator():
    L = operators.gradient(4)
    expected = SoftmaxRegression(0.1, operator=L).fit(X, Y).coef_
    got = SoftmaxRegression(0.1, operator=aslinearoperator(L)).fit(X, Y).coef_
    np.testing.assert_allclose(got, expected, rtol=1e-12)
