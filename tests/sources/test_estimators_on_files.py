"""Fits, paths, cross-validation and predictions on files are those in memory."""

import numpy as np
import pytest

from admm_softmax import (
    Problem,
    RowBlocks,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    run,
    softmax_path,
)
from admm_softmax.solvers import LBFGS
from tests.problems import make
from tests.sources.makers import KINDS

N, D, K = 301, 5, 3
ALPHAS = [1e-1, 1e-2, 1e-3]


def data(dtype=np.float64):
    X, y = make(N, D, K)
    return X.astype(dtype), y


def close(found, expected, rtol=1e-10):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_that_in_memory(kind, tmp_path, small_blocks):
    X, y = data()
    expected = SoftmaxRegression(alpha=1e-2, tol=1e-12, solver=LBFGS(preconditioner="gram")).fit(
        X, y
    )
    rows, labels = KINDS[kind](tmp_path, X, y)
    found = SoftmaxRegression(alpha=1e-2, tol=1e-12, solver=LBFGS(preconditioner="gram"))
    found.fit(rows, labels)
    close(found.coef_, expected.coef_)
    close(found.intercept_, expected.intercept_)
    np.testing.assert_array_equal(found.predict(rows), expected.predict(X))
    close(found.predict_proba(rows), expected.predict_proba(X))
    close(found.predict_log_proba(rows), expected.predict_log_proba(X))
    close(found.decision_function(rows), expected.decision_function(X))
    assert found.score(rows, labels) == expected.score(X, y)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_files_give_the_fit_of_the_widened_copy(dtype, tmp_path, small_blocks):
    kind = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else np.float16
    X, y = data()
    X = X.astype(kind)
    np.save(tmp_path / "x.npy", X)
    settings = {"alpha": 1e-2, "tol": 1e-6, "solver": LBFGS(preconditioner="gram")}
    found = SoftmaxRegression(**settings).fit(tmp_path / "x.npy", y)
    assert found.coef_.dtype == np.float32
    wide = X.astype(np.float32)
    close(found.coef_, SoftmaxRegression(**settings).fit(wide, y).coef_, 1e-4)
    # In double, from the same files: to rounding.
    double = RowBlocks(tmp_path / "x.npy", dtype=np.float64)
    settings["tol"] = 1e-12
    expected = SoftmaxRegression(**settings).fit(wide.astype(np.float64), y)
    close(SoftmaxRegression(**settings).fit(double, y).coef_, expected.coef_)


def test_two_classes_and_no_intercept(tmp_path, small_blocks):
    X, y = data()
    rows, labels = KINDS["npy_pattern"](tmp_path, X, y % 2)
    settings = {"alpha": 1e-2, "tol": 1e-12, "fit_intercept": False, "solver": "newton-cg"}
    expected = SoftmaxRegression(**settings).fit(X, y % 2)
    found = SoftmaxRegression(**settings).fit(rows, labels)
    close(found.coef_, expected.coef_, 1e-8)
    close(found.predict_proba(rows), expected.predict_proba(X), 1e-8)
    np.testing.assert_array_equal(found.predict(rows), expected.predict(X))


@pytest.mark.parametrize("solver", ["auto", "admm", "lbfgs", "newton-cg"])
def test_every_solver_takes_files(solver, tmp_path, small_blocks):
    X, y = data()
    rows, labels = KINDS["npy_pattern"](tmp_path, X, y)
    expected = SoftmaxRegression(alpha=1e-2, tol=1e-10).fit(X, y)
    found = SoftmaxRegression(alpha=1e-2, tol=1e-10, solver=solver).fit(rows, labels)
    close(found.coef_, expected.coef_, 1e-7)


def test_validation_rows_in_files(tmp_path, small_blocks):
    X, y = data()
    rows, labels = KINDS["npy_pattern"](tmp_path, X[:200], y[:200])
    other = tmp_path / "other"
    other.mkdir()
    rows_val, labels_val = KINDS["columns"](other, X[200:], y[200:])
    expected = SoftmaxRegression(alpha=1e-3).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    found = SoftmaxRegression(alpha=1e-3).fit(rows, labels, X_val=rows_val, y_val=labels_val)
    close(found.coef_, expected.coef_, 1e-6)
    close(found.history_["val_loss"], expected.history_["val_loss"], 1e-6)


@pytest.mark.parametrize("kind", ["npy_pattern", "function"])
def test_a_path_on_files(kind, tmp_path, small_blocks):
    X, y = data()
    rows, labels = KINDS[kind](tmp_path, X[:200], y[:200])
    validation = {"X_val": X[200:], "y_val": y[200:]}
    expected = softmax_path(X[:200], y[:200], ALPHAS, tol=1e-10, **validation)
    found = softmax_path(rows, labels, ALPHAS, tol=1e-10, **validation)
    close(found.coefs, expected.coefs, 1e-7)
    close(found.val_loss, expected.val_loss, 1e-9)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("vectors", {}),
        ("function", {"solver": "admm"}),
        ("function", {"scoring": "roc_auc_ovr"}),
        ("vectors", {"class_weight": "balanced", "refit": False}),
    ],
    ids=["loss", "admm", "a scorer", "averaged"],
)
def test_cross_validation_on_files(kind, settings, tmp_path, small_blocks):
    X, y = data()
    rows, labels = KINDS[kind](tmp_path, X, y)
    expected = SoftmaxRegressionCV(ALPHAS, cv=3, tol=1e-9, **settings).fit(X, y)
    found = SoftmaxRegressionCV(ALPHAS, cv=3, tol=1e-9, **settings).fit(rows, labels)
    assert found.alpha_ == expected.alpha_
    close(found.scores_, expected.scores_, 1e-6)
    close(found.coef_, expected.coef_, 1e-5)
    assert found.score(rows, labels) == pytest.approx(expected.score(X, y), rel=1e-6)


def test_cross_validation_with_validation_files(tmp_path, small_blocks):
    X, y = data()
    rows, labels = KINDS["columns"](tmp_path, X, y)
    found = SoftmaxRegressionCV(ALPHAS, tol=1e-9).fit(rows, labels, X_val=rows, y_val=labels)
    expected = SoftmaxRegressionCV(ALPHAS, tol=1e-9).fit(X, y, X_val=X, y_val=y)
    close(found.coef_, expected.coef_, 1e-6)


def test_alphas_are_found_from_files(tmp_path, small_blocks):
    X, y = data()
    rows, _ = KINDS["npy"](tmp_path, X, y)
    close(softmax_path(rows, y, 3).alphas, softmax_path(X, y, 3).alphas)


def test_columns_are_found_by_name_in_predictions(tmp_path):
    X, y = data()
    rows, labels = KINDS["columns"](tmp_path, X, y)
    fitted = SoftmaxRegression(alpha=1e-2).fit(rows, labels)
    assert fitted.feature_names_in_.tolist() == [f"c{j}" for j in range(D)]
    assert fitted.predict(rows).shape == (N,)  # the file also has the column of the labels


def test_files_of_other_width_are_refused(tmp_path):
    X, y = data()
    fitted = SoftmaxRegression(alpha=1e-2).fit(X, y)
    np.save(tmp_path / "x.npy", X[:, :3])
    with pytest.raises(ValueError, match="X has 3 features, but SoftmaxRegression is expecting 5"):
        fitted.predict(tmp_path / "x.npy")


def test_half_precision_memory_maps_are_streamed(tmp_path):
    X, y = data(np.float16)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert SoftmaxRegression(alpha=1e-2).fit(mapped, y).coef_.dtype == np.float32
    np.save(tmp_path / "x.npy", X.astype(np.float64))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert SoftmaxRegression(alpha=1e-2).fit(mapped, y).coef_.dtype == np.float64


def test_a_problem_takes_files_and_labels_in_files(tmp_path, small_blocks):
    X, y = data()
    rows, labels = KINDS["npy_pattern"](tmp_path, X, y)
    np.save(tmp_path / "y.npy", y)
    solver = LBFGS(preconditioner="gram")
    expected = run(Problem.of(X, y, 1e-2), solver, tol=1e-11).W
    for given in ((rows, labels), (X, tmp_path / "y.npy"), (RowBlocks(rows), y)):
        close(run(Problem.of(*given, 1e-2), solver, tol=1e-11).W, expected)


def test_soft_labels_and_weights(tmp_path, small_blocks):
    X, _ = data()
    rng = np.random.default_rng(0)
    C, s = rng.dirichlet(np.ones(K), N), rng.random(N)
    np.save(tmp_path / "c.npy", C)
    rows, _ = KINDS["npy_pattern"](tmp_path, X, C)
    expected = SoftmaxRegression(alpha=1e-2, tol=1e-11).fit(X, C, s)
    found = SoftmaxRegression(alpha=1e-2, tol=1e-11).fit(rows, str(tmp_path / "c.npy"), s)
    close(found.coef_, expected.coef_, 1e-8)
    assert found.score(rows, tmp_path / "c.npy") == expected.score(X, C)
