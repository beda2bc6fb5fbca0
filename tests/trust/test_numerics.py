"""Data at the edge: a finite model, or an error that says what to change."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from admm_softmax import (
    ADMM,
    LBFGS,
    HessianLBFGS,
    Newton,
    NewtonCG,
    Problem,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    run,
    softmax_path,
)
from admm_softmax.solvers.row_space import RowSpace
from tests.problems import make
from tests.trust.effort import DEEP, effort

SOLVERS = ["auto", "admm", "lbfgs", "newton-cg", "sgd"]


def separable():
    X, _ = make(60, 4, 3)
    return X, X[:, :3].argmax(axis=1)


def constant_columns():
    X, y = make(60, 4, 3)
    return np.column_stack([X, np.ones(60), np.zeros(60), np.full(60, 1e3)]), y


def duplicate_columns():
    X, y = make(60, 4, 3)
    return np.column_stack([X, X, 2 * X]), y


def many_magnitudes():
    X, y = make(120, 9, 3)
    return X * np.logspace(-8, 8, 9), y


def large():
    X, y = make(60, 4, 3)
    return X * 1e6, y


def small():
    X, y = make(60, 4, 3)
    return X * 1e-12, y


def far_from_zero():
    X, y = make(60, 4, 3)
    return X + 1e6, y


def many_classes():
    X, _ = make(2500, 12, 3)
    return X, np.arange(2500) % 1000


def class_with_one_row():
    X, y = make(60, 4, 3)
    return X, np.where(np.arange(60) == 7, 3, np.minimum(y, 2))


def one_column():
    X, y = make(40, 1, 3)
    return X, y


def wide():
    return make(10, 80, 3)


def two_rows():
    return np.array([[0.5, 1.0], [1.0, -1.0]]), np.array([0, 1])


def equal_rows():
    return np.ones((30, 3)), np.arange(30) % 3


def zeros():
    return np.zeros((30, 3)), np.arange(30) % 3


def tiny_weights():
    return make(60, 4, 3)


CASES = {
    maker.__name__: maker
    for maker in (
        separable, constant_columns, duplicate_columns, many_magnitudes, large, small,
        far_from_zero, many_classes, class_with_one_row, one_column, wide, two_rows, equal_rows,
        zeros, tiny_weights,
    )
}  # fmt: skip
#: Where a solver's first step is large, thousands of steps follow; a few must be sound too.
STEPS = 60
MANY_QUICKLY = [("auto", 1e-16, np.float32)]
QUICK = [("auto", 0.0, np.float64), ("admm", 1e-16, np.float32), ("lbfgs", 0.0, np.float64),
         ("newton-cg", 1e-16, np.float32), ("sgd", 0.0, np.float32)]  # fmt: skip
WEIGHTS = {"tiny_weights": 1e-200}


def quietly(call):
    """What the call returns; it may warn that it did not converge, and about nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        return call()


def assert_sound(clf, X, y):
    """Finite in every part, no worse than the start, and probabilities that are some."""
    F0 = clf.history_["objective"][0]
    assert np.isfinite(clf.coef_).all()
    assert np.isfinite(clf.intercept_).all()
    F = Problem.of(X, y, clf.alpha).objective(clf._W)
    assert F <= F0 + 2e-6 * (1 + F0), "F is above that at the start"
    P = clf.predict_proba(X)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("alpha", [0.0, 1e-16, 1e-3])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("case", CASES)
def test_a_finite_model_no_worse_than_its_start(case, solver, alpha, dtype):
    quick = QUICK if case != "many_classes" else MANY_QUICKLY
    if not DEEP and (solver, alpha, dtype) not in quick:
        pytest.skip("only with TRUST=1")
    X, y = CASES[case]()
    weights = np.full(len(y), WEIGHTS[case]) if case in WEIGHTS else None
    clf = SoftmaxRegression(alpha, solver=solver, max_iter=5 if case == "many_classes" else STEPS)
    assert_sound(quietly(lambda: clf.fit(X.astype(dtype), y, weights)), X.astype(dtype), y)


# ---- what cannot be fitted says why ----


def test_too_few_rows_or_classes():
    for X, y, words in (
        (
            np.ones((1, 3)),
            [0],
            r"at least two classes|needs samples of at least 2 classes|2 classes",
        ),
        (np.ones((0, 3)), [], r"0 sample"),
        (np.ones((4, 0)), [0, 1, 0, 1], r"0 feature"),
        (np.ones((4, 2)), [1, 1, 1, 1], r"classes"),
    ):
        with pytest.raises(ValueError, match=words):
            SoftmaxRegression().fit(X, y)


def test_one_row_of_soft_labels_is_enough():
    clf = SoftmaxRegression(0.1).fit([[1.0, 2.0]], [[0.2, 0.3, 0.5]])
    np.testing.assert_allclose(clf.predict_proba([[1.0, 2.0]]), [[0.2, 0.3, 0.5]], atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_class_without_rows(solver):
    X, y = make(60, 4, 3)
    soft = np.column_stack([np.eye(3)[y], np.zeros(60)])  # the fourth class never occurs
    clf = quietly(lambda: SoftmaxRegression(1e-2, solver=solver, max_iter=STEPS).fit(X, soft))
    assert_sound(clf, X, soft)
    assert clf.predict_proba(X)[:, 3].max() < 0.2
    result = run(Problem.of(X, y, 1e-2, n_classes=5), LBFGS(), tol=1e-6)
    assert np.isfinite(result.W).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_squares_that_overflow_are_refused_with_a_remedy(solver, scale):
    X, y = make(60, 4, 3)
    with pytest.raises(ValueError, match="scale the features"):
        quietly(lambda: SoftmaxRegression(1e-3, solver=solver).fit(X * scale, y))


def test_rows_without_any_entry():
    X, y = make(60, 6, 3)
    X[::3] = 0.0
    for form in (np.asarray, sp.csr_array):
        assert_sound(quietly(lambda form=form: SoftmaxRegression(1e-3).fit(form(X), y)), X, y)


def test_logits_that_overflow_float32():
    X, y = make(60, 4, 3)
    clf = SoftmaxRegression(1e-3).fit(X, y)
    clf.coef_ = clf.coef_ * 1e30
    P = clf.predict_proba(X)
    assert np.isfinite(P).all()
    assert np.isfinite(Problem.of(X, y).evaluate(np.vstack([clf.coef_.T, clf.intercept_])).loss)


def test_separable_paths_and_folds_are_finite():
    X, y = separable()
    path = quietly(lambda: softmax_path(X, y, [1.0, 1e-8, 1e-16], max_iter=STEPS))
    assert np.isfinite(path.coefs).all()
    cv = quietly(lambda: SoftmaxRegressionCV([1.0, 1e-8, 1e-16], cv=3, max_iter=STEPS).fit(X, y))
    assert np.isfinite(cv.scores_).all()


# ---- histories that theory says are monotone ----

DESCENT = {
    "lbfgs": LBFGS(),
    "lbfgs, gram": LBFGS(preconditioner="gram"),
    "newton-cg": NewtonCG(),
    "newton-cg, gram": NewtonCG(preconditioner="gram"),
    "newton": Newton(),
    "hessian-lbfgs": HessianLBFGS(),
    "row space": RowSpace(LBFGS()),
}


@pytest.mark.parametrize("case", ["separable", "many_magnitudes", "duplicate_columns", "wide"])
@pytest.mark.parametrize("name", DESCENT)
def test_methods_with_a_line_search_never_rise(name, case):
    if name == "row space" and case != "wide":
        pytest.skip("for wide data")
    if name == "hessian-lbfgs" and case == "many_magnitudes":
        pytest.skip("the paper's method has no preconditioner, and takes a quarter of a minute")
    X, y = CASES[case]()
    F = run(Problem.of(X, y, 1e-4), DESCENT[name], tol=1e-9, max_iter=80).history["objective"]
    assert len(F) > 2
    assert np.diff(F).max() <= 1e-12 * F[0]


@pytest.mark.parametrize("rho", [1e-3, 0.05, 3.0])
def test_admm_steps_never_grow(rho):
    """‖Z⁺ − Z‖² + ‖U⁺ − U‖², weighted, falls in every step: He and Yuan (2015), for γ = 1."""
    X, y = make(80, 5, 3)
    problem = Problem.of(X, y, 1e-2)
    C, w = np.eye(3)[y], np.full((80, 1), 1 / 80)
    states = []
    for iterate in ADMM(rho=rho).iterates(problem.for_run(), None):
        state = iterate.state
        if state["iteration"]:
            Z = np.asarray(problem.design.gather(state["Z"]))
            P = np.exp(Z - Z.max(axis=1, keepdims=True))
            states.append((Z, (C - P / P.sum(axis=1, keepdims=True)) / rho))
        if len(states) > 40:
            break
    sizes = np.array(
        [
            float((w * ((Z1 - Z0) ** 2 + (U1 - U0) ** 2)).sum())
            for (Z0, U0), (Z1, U1) in pairwise(states)
        ]
    )
    assert (np.diff(sizes) <= 1e-9 * sizes[:-1]).all()


# ---- the paper's whole range ----

RANGE = np.logspace(-16, 3, effort(5, 20))


@pytest.mark.parametrize("kind", ["dense", "wide", "sparse"])
@pytest.mark.parametrize("rho", RANGE)
def test_any_alpha_and_rho_of_the_paper(rho, kind):
    X, y = make(12, 30, 3) if kind == "wide" else make(60, 6, 3)
    X = sp.csr_array(np.where(abs(X) > 0.5, X, 0.0)) if kind == "sparse" else X
    for alpha in RANGE:
        problem = Problem.of(X, y, alpha)
        start = problem.objective(np.zeros(problem.shape))
        try:
            result = run(problem, ADMM(rho=rho), max_iter=8)
        except ValueError as error:  # a W-step that cannot be solved in double precision
            assert "alpha" in str(error) or "rho" in str(error)
            continue
        assert np.isfinite(result.W).all()
        assert result.iterate.objective <= start + 2e-6 * (1 + start)
