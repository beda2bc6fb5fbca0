"""Input that would be misread: an error that names it, never a wrong answer."""

import multiprocessing
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets

from admm_softmax import ADMM, Problem, SoftmaxRegression, SoftmaxRegressionCV, softmax_path
from admm_softmax._parallel import _blas, blas_threads
from admm_softmax.design import as_design
from tests.problems import make

X, Y = make(80, 4, 3)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg", "admm", "sgd"])
def test_features_whose_squares_overflow_are_to_be_scaled(solver):
    large = (X * 1e20).astype(np.float32)
    with pytest.raises(ValueError, match=r"X is too large.*scale the features"):
        SoftmaxRegression(solver=solver).fit(large, Y)


@pytest.mark.parametrize("labels", [Y, np.eye(3)[Y]], ids=["hard", "soft"])
def test_class_weights_that_leave_nothing(labels):
    with pytest.raises(ValueError, match=r"class_weight leaves no row with weight, got \{0: 0"):
        SoftmaxRegression(class_weight={0: 0, 1: 0, 2: 0}).fit(X, labels)


def test_a_number_of_classes_that_is_not_whole():
    with pytest.raises(TypeError, match=r"n_classes must be a whole number ≥ 1, got 3\.0"):
        Problem.of(X, Y, n_classes=3.0)
    assert Problem.of(X, Y, n_classes=np.int64(4)).n_classes == 4


def test_complex_numbers_are_refused():
    for operator in (np.eye(4) * 1j, sp.csr_array(np.eye(4) * 1j)):
        with pytest.raises((TypeError, ValueError), match=r"operator must be|complex"):
            SoftmaxRegression(operator=operator).fit(X, Y)
    with pytest.raises(TypeError, match="sample_weight must be real, got complex numbers"):
        SoftmaxRegression().fit(X, Y, sample_weight=np.ones(80) + 1j)
    with pytest.raises(TypeError, match="reference must be real, got complex numbers"):
        Problem.of(X, Y, reference=np.zeros((5, 3), complex))
    for form in (np.asarray, sp.csr_array):
        with pytest.raises(TypeError, match="X must hold real numbers, got type complex128"):
            as_design(form(X * 1j))
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        SoftmaxRegression().fit(X * 1j, Y)
    with pytest.raises(TypeError, match="soft labels must be real, got complex numbers"):
        Problem.of(X, np.eye(3)[Y] + 0j)


def test_masked_entries_are_refused():
    mask = np.zeros(X.shape, bool)
    mask[3, 1] = mask[4, 2] = True
    masked = np.ma.masked_array(X, mask)
    for call in (
        lambda: SoftmaxRegression().fit(masked, Y),
        lambda: SoftmaxRegressionCV(2).fit(masked, Y),
        lambda: SoftmaxRegression().fit(X, Y).predict(masked),
        lambda: SoftmaxRegression().fit(X, Y, X_val=masked, y_val=Y),
        lambda: as_design(masked),
    ):
        with pytest.raises(ValueError, match="X must have no masked entries, got 2"):
            call()
    with pytest.raises(ValueError, match="y must have no masked entries, got 1"):
        SoftmaxRegression().fit(X, np.ma.masked_array(Y, np.arange(80) == 7))
    with pytest.raises(ValueError, match="sample_weight must have no masked entries, got 1"):
        SoftmaxRegression().fit(X, Y, np.ma.masked_array(np.ones(80), np.arange(80) == 7))
    with pytest.raises(ValueError, match="labels must have no masked entries, got 1"):
        Problem.of(X, np.ma.masked_array(Y, np.arange(80) == 7))
    # A mask that hides nothing is none.
    SoftmaxRegression().fit(np.ma.masked_array(X, np.zeros(X.shape, bool)), Y)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_labels_are_named(missing):
    names = np.array(["a", "b", "c"], object)[Y]
    names[[5, 9]] = missing
    with pytest.raises(
        ValueError, match=f"y must have a label in every row, got {missing} in row 5"
    ):
        SoftmaxRegression().fit(X, names)
    good = np.array(["a", "b", "c"], object)[Y]
    with pytest.raises(ValueError, match="y_val must have a label in every row"):
        SoftmaxRegression().fit(X, good, X_val=X, y_val=names)
    import pandas as pd

    with pytest.raises(ValueError, match=r"y must have a label in every row|NaN"):
        SoftmaxRegression().fit(X, pd.Series(names))


@pytest.mark.parametrize(
    ("part", "place", "value"),
    [("indices", 3, 10**6), ("indices", 3, -7), ("indptr", 5, 10**6), ("indptr", 5, -1)],
)
def test_sparse_rows_that_point_outside_are_refused(part, place, value):
    matrix = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    getattr(matrix, part)[place] = value
    with pytest.raises(ValueError, match=r"X is not a valid CSR matrix of shape \(80, 4\)"):
        as_design(matrix)
    with pytest.raises(ValueError, match=r"CSR|indices|index|indptr"):
        SoftmaxRegression().fit(matrix, Y)


def test_settings_that_are_no_numbers_are_named():
    with pytest.raises(TypeError, match="tol must be a number ≥ 0, got 'a' of type str"):
        SoftmaxRegression(tol="a").fit(X, Y)
    with pytest.raises(TypeError, match="tol must be a number ≥ 0, got 'a' of type str"):
        SoftmaxRegressionCV(tol="a").fit(X, Y)


# ---- words that help ----


def test_the_warning_does_not_advise_what_ran():
    with pytest.warns(ConvergenceWarning, match="iteration_limit") as auto:
        SoftmaxRegression(1e-3, tol=1e-12, max_iter=2).fit(X, Y)
    assert "solver=" not in str(auto[0].message)
    with pytest.warns(ConvergenceWarning, match="solver='auto' usually needs fewer iterations"):
        SoftmaxRegression(1e-3, tol=1e-12, max_iter=2, solver="lbfgs").fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="solver='auto' usually needs fewer iterations"):
        SoftmaxRegressionCV([0.1], cv=2, tol=1e-12, max_iter=2, solver="lbfgs").fit(X, Y)


def test_the_papers_rho_is_not_ours():
    with pytest.warns(ConvergenceWarning, match=r"rho = 1e-07 is far below.*rho = n · rho_paper"):
        SoftmaxRegression(1e-3, solver=ADMM(rho=1e-7), max_iter=20).fit(X, Y)
    with pytest.warns(ConvergenceWarning) as caught:
        SoftmaxRegression(1e-3, solver=ADMM(rho=4e-3), max_iter=20).fit(X, Y)
    assert "rho_paper" not in str(caught[0].message)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_validation_rows_that_lie_far_from_the_others(form):
    raw = 50.0 + 7.0 * X
    scaler = StandardScaler().fit(raw)
    scaled = scaler.transform(raw)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SoftmaxRegression().fit(form(scaled), Y, X_val=form(raw), y_val=Y)
    words = [str(warning.message) for warning in caught]
    assert any("X_val lies far from X" in text and "transform_input" in text for text in words)
    for fit in (SoftmaxRegressionCV([0.1]).fit, partial(softmax_path, alphas=[0.1])):
        with pytest.warns(UserWarning, match="X_val lies far from X") as caught:
            fit(form(scaled), Y, X_val=form(raw), y_val=Y)
        assert caught[0].filename == __file__


@pytest.mark.parametrize("load", ["load_iris", "load_wine", "load_breast_cancer", "load_digits"])
@pytest.mark.parametrize("order", ["shuffled", "by class", "a few rows"])
def test_ordinary_validation_rows_are_not_complained_about(load, order):
    from sklearn import datasets

    A, y = getattr(datasets, load)(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))
    held = rows[::4]
    if order == "by class":
        held = np.flatnonzero(y == y[-1])[::2]  # one class only
    if order == "a few rows":
        held = rows[:3]
    rest = np.setdiff1d(rows, held)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SoftmaxRegression(max_iter=3)
        model.fit(A[rest], y[rest], X_val=A[held], y_val=y[held])


# ---- processes ----


def _threads(queue):
    queue.put([library.get_num_threads() for library in _blas()])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_within_a_limit_has_all_threads():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    with blas_threads(2):  # as if there were two cores at least
        before = [library.get_num_threads() for library in _blas()]
        with blas_threads(1):
            pass
    outside = [library.get_num_threads() for library in _blas()]
    with blas_threads(1):
        child = context.Process(target=_threads, args=(queue,))
        child.start()
        found = queue.get()
        child.join()
    assert before
    assert found == outside


def test_as_many_classes_as_rows_are_warned_of_as_in_scikit_learn():
    rows, y = np.linspace(0.0, 1.0, 30)[:, None], np.arange(30)
    found = []
    for check in (check_classification_targets, partial(SoftmaxRegression().fit, rows)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check(y)
        found.append([str(w.message) for w in caught if "unique classes" in str(w.message)])
    assert found[0] == found[1]
