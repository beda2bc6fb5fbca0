"""Fits to a `TorchDesign` are those to the array, by every solver and estimator."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from admm_softmax import (  # noqa: E402
    ADMM,
    LBFGS,
    SGD,
    MultiOutputSoftmaxRegression,
    NewtonCG,
    Problem,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    probe,
    run,
    softmax_path,
)
from admm_softmax.design import PartitionedDesign  # noqa: E402
from admm_softmax.design.torch import TorchDesign  # noqa: E402
from admm_softmax.solvers.newton import Newton  # noqa: E402
from admm_softmax.solvers.newton_system import HessianBesideRows  # noqa: E402
from tests.problems import make  # noqa: E402

pytestmark = pytest.mark.torch

N, D, K = 500, 8, 4


@pytest.fixture(params=[True, False], ids=["double", "single"])
def rows(request):
    """An array, labels, and both as a design and a tensor."""
    X, y = make(N, D, K)
    X = X.astype(np.float64 if request.param else np.float32)
    return X, y, TorchDesign(torch.tensor(X), double=request.param), torch.tensor(y)


@pytest.mark.parametrize(
    "solver",
    [
        ADMM(rho="auto", relaxation=1.7, start="smart"),
        ADMM(rho=0.1, least_squares="qr"),
        LBFGS(20, "gram"),
        NewtonCG(50, preconditioner="gram"),
        Newton(),
        SGD(0.05, batch_size=100, schedule="inverse", nesterov=True, preconditioner="jacobi"),
    ],
    ids=["admm", "admm by QR", "lbfgs", "newton-cg", "newton", "sgd"],
)
def test_solvers_meet_at_the_optimum_of_the_dense_design(rows, solver):
    X, y, design, labels = rows
    best = run(Problem.of(X.astype(np.float64), y, 1e-2), LBFGS(20, "gram"), tol=1e-9)
    loose = isinstance(solver, SGD)
    found = run(Problem.of(design, labels, 1e-2), solver, tol=1e-5, max_iter=15 if loose else 2000)
    gap = Problem.of(X.astype(np.float64), y, 1e-2).objective(found.W) - best.iterate.objective
    assert gap < (1e-2 if loose else 1e-7)
    if not loose:
        np.testing.assert_allclose(found.W, best.W, atol=2e-3)


@pytest.mark.parametrize("n_classes", [2, K])
def test_newton_takes_the_steps_of_the_dense_design(rows, n_classes):
    X, y, design, labels = rows
    y, labels = y % n_classes, labels % n_classes
    expected = run(Problem.of(X, y, 1e-2), Newton(), tol=1e-5)
    found = run(Problem.of(design, labels, 1e-2), Newton(), tol=1e-5)
    assert (found.status, found.n_iter) == ("converged", expected.n_iter)
    np.testing.assert_allclose(found.W, expected.W, atol=1e-9 if design.double else 1e-4)


def test_newton_says_that_squares_overflow():
    design = TorchDesign(torch.full((4, 2), 1e30), double=False)
    system = HessianBesideRows(Problem.of(design, torch.tensor([0, 1, 0, 1]), 0.1))
    with pytest.raises(ValueError, match="squares of its entries overflow"):
        system.solve(system.at(np.zeros((3, 2))))


@pytest.mark.parametrize("settings", [{}, {"class_weight": "balanced"}, {"standardize": True}])
def test_weights_and_units(rows, settings):
    X, y, design, labels = rows
    s = np.linspace(0.0, 2.0, N)
    made = SoftmaxRegression(alpha=1e-2, tol=1e-6, **settings)
    expected = made.fit(X, y, sample_weight=s).coef_
    found = made.fit(design, labels, sample_weight=torch.tensor(s, dtype=design.X.dtype))
    np.testing.assert_allclose(found.coef_, expected, atol=1e-3)
    assert found.coef_.dtype == X.dtype


def test_predictions_are_tensors_on_the_device_of_x(rows):
    X, y, design, labels = rows
    clf = SoftmaxRegression(alpha=1e-2).fit(design, labels)
    for method in ("predict_proba", "predict_log_proba", "decision_function", "predict"):
        found, expected = getattr(clf, method)(design), getattr(clf, method)(X)
        assert found.device == design.device
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)
    assert clf.score(design, labels) == pytest.approx(clf.score(X, y))
    assert clf.score(design, labels + 1) == pytest.approx(clf.score(X, y + 1))  # one is never seen
    with pytest.raises(ValueError, match="is expecting 8 features"):
        clf.predict(TorchDesign(torch.ones(3, 2)))


def test_two_classes(rows):
    X, y, design, labels = rows
    expected = SoftmaxRegression(C=0.1, tol=1e-6).fit(X, y % 2)
    found = SoftmaxRegression(C=0.1, tol=1e-6).fit(design, labels % 2)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-3)
    np.testing.assert_array_equal(found.predict(design).numpy(), expected.predict(X))
    np.testing.assert_allclose(
        found.predict_proba(design).numpy(), expected.predict_proba(X), atol=1e-3
    )
    assert found.score(design, labels % 2) == expected.score(X, y % 2)


def test_labels_of_other_kinds(rows):
    X, y, design, labels = rows
    names = np.array(["ant", "bee", "cat", "dog"])[y]
    expected = SoftmaxRegression(alpha=1e-2).fit(design, labels)
    clf = SoftmaxRegression(alpha=1e-2, class_weight={"ant": 1.0, "bee": 1.0}).fit(design, names)
    np.testing.assert_array_equal(clf.coef_, expected.coef_)
    np.testing.assert_array_equal(clf.predict(design), clf.predict(X))
    assert clf.score(design, names) == expected.score(design, labels)
    clf = SoftmaxRegression(alpha=1e-2).fit(design, labels.to(torch.float32) * 2)
    assert clf.classes_.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert clf.predict(design).dtype == torch.float32
    clf = SoftmaxRegression(alpha=1e-2).fit(design, labels > 1)
    assert clf.predict(design).dtype == torch.bool
    by_array = SoftmaxRegression(alpha=1e-2).fit(design, y)
    np.testing.assert_array_equal(by_array.coef_, expected.coef_)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_soft_labels(rows, class_weight):
    X, _, design, _ = rows
    soft = np.random.default_rng(0).dirichlet(np.ones(K), N)
    made = SoftmaxRegression(alpha=1e-2, tol=1e-6, class_weight=class_weight)
    expected = made.fit(X, soft).coef_
    there = torch.tensor(soft, dtype=design.X.dtype)
    np.testing.assert_allclose(made.fit(design, there).coef_, expected, atol=1e-3)
    assert made.score(design, there) == pytest.approx(made.score(X, soft))


def test_batches_in_other_units(rows):
    X, y, design, labels = rows
    made = SoftmaxRegression(alpha=1e-2, standardize=True, solver="sgd", tol=1e-2, max_iter=20)
    assert made.fit(design, labels).score(design, labels) == pytest.approx(
        SoftmaxRegression(alpha=1e-2, standardize=True).fit(X, y).score(X, y), abs=0.03
    )


def test_validation_rows_choose_the_iterate(rows):
    X, y, design, labels = rows
    made = SoftmaxRegression(alpha=1e-6, solver=LBFGS(10, "jacobi"), tol=1e-6)
    tests = TorchDesign(design.X[:100] + 0.5, double=design.double)
    expected = made.fit(X, y, X_val=X[:100] + np.float32(0.5), y_val=y[:100]).best_iteration_
    found = made.fit(design, labels, X_val=tests, y_val=labels[:100]).best_iteration_
    assert abs(found - expected) <= 1


def test_paths_and_cross_validation(rows):
    X, y, design, labels = rows
    ours, theirs = softmax_path(design, labels, 4), softmax_path(X, y, 4)
    np.testing.assert_allclose(ours.alphas, theirs.alphas, rtol=1e-5)
    np.testing.assert_allclose(ours.coefs, theirs.coefs, atol=5e-3)
    for scoring in ("accuracy", "neg_log_loss"):
        settings = {"alphas": theirs.alphas, "cv": 3, "scoring": scoring, "tol": 1e-6}
        ours = SoftmaxRegressionCV(**settings).fit(design, labels)
        theirs_cv = SoftmaxRegressionCV(**settings).fit(X, y)
        np.testing.assert_allclose(ours.scores_, theirs_cv.scores_, atol=0.01)
        assert ours.score(design, labels) == pytest.approx(theirs_cv.score(X, y), abs=1e-3)
    scaled = softmax_path(design, labels, 3, standardize=True)
    np.testing.assert_allclose(
        scaled.alphas, softmax_path(X, y, 3, standardize=True).alphas, rtol=1e-4
    )
    with pytest.raises(ValueError, match="needs the rows on this machine"):
        SoftmaxRegressionCV(cv=3, scoring="f1_macro").fit(design, labels)


def test_a_fit_goes_on_where_it_was_ended(rows, tmp_path):
    _, _, design, labels = rows
    settings = {"alpha": 1e-2, "solver": ADMM(rho=0.05), "tol": 1e-4, "checkpoint": tmp_path}
    with pytest.warns(match="iteration_limit"):
        SoftmaxRegression(max_iter=5, **settings).fit(design, labels)
    found = SoftmaxRegression(max_iter=2000, **settings).fit(design, labels)
    assert found.status_ == "converged"
    with pytest.raises(ValueError, match="other values than before"):
        SoftmaxRegression(max_iter=2000, **settings).fit(design, labels.flip(0))


def test_parts_on_devices_are_refused():
    with pytest.raises(TypeError, match="part 0 is a TorchDesign"):
        PartitionedDesign([TorchDesign(torch.ones(4, 2))])


def test_tensors_elsewhere_are_fitted_there(monkeypatch):
    """As if this machine's memory were another device."""
    for place in ("admm_softmax.design", "admm_softmax.estimators.inputs"):
        monkeypatch.setattr(f"{place}.is_on_device", lambda X: isinstance(X, torch.Tensor))
    X, y = make(N, D, K)
    tensor, labels = torch.tensor(X), torch.tensor(y)
    clf = SoftmaxRegression(alpha=1e-2).fit(tensor, labels)
    assert isinstance(clf.predict_proba(tensor), torch.Tensor)
    expected = SoftmaxRegression(alpha=1e-2, solver="lbfgs").fit(X, y)
    np.testing.assert_allclose(clf.coef_, expected.coef_, atol=1e-3)
    assert clf.score(tensor, labels) == pytest.approx(expected.score(X, y), abs=0.01)
    model = SoftmaxRegressionCV(alphas=[1e-2, 1e-1], cv=3).fit(tensor, labels)
    assert np.isfinite(model.score(tensor, labels))
    several = MultiOutputSoftmaxRegression(alpha=1e-2).fit(tensor, torch.stack([labels] * 2, 1))
    np.testing.assert_allclose(several.coef_[1], expected.coef_, atol=1e-3)
    assert probe((tensor, labels), Cs=[0.1, 1.0], samples=0).n_train == N - N // 10
