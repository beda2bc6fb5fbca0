"""Paths: each fit is what it would be alone, on one Gram matrix and few reads."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import LBFGS, NewtonCG, Problem, SoftmaxRegression, operators, softmax_path
from admm_softmax.design import DenseDesign, SparseDesign
from admm_softmax.path.alphas import Penalties, alpha_range, as_alphas
from admm_softmax.path.fitter import Fitter
from admm_softmax.path.warm_starts import Trail, follow, has_turned
from tests.problems import make

ALPHAS = np.logspace(0, -4, 9)


def data(kind):
    X, y = make(400, 12, 3, dtype=np.float32 if kind == "float32" else np.float64)
    if kind == "wide":
        X, y = make(60, 200, 3)
    if kind == "sparse":
        X = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
    if kind == "two classes":
        y = np.minimum(y, 1)
    if kind == "soft":
        _, y = make(400, 12, 3, soft=True)
    return X, y


KINDS = ["dense", "float32", "wide", "sparse", "two classes", "soft"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_is_its_fits_alone(kind):
    X, y = data(kind)
    tol = 1e-5 if kind == "float32" else 1e-8
    path = softmax_path(X, y, ALPHAS, tol=tol)
    assert [r.status for r in path.results] == ["converged"] * len(ALPHAS)
    for alpha, coef, intercept in zip(path.alphas, path.coefs, path.intercepts, strict=True):
        alone = SoftmaxRegression(alpha, tol=tol).fit(X, y)
        # F is strongly convex: gradients of at most tol leave ‖W − W*‖ ≤ ‖∇F‖/α.
        bound = 4 * tol * np.sqrt(coef.size) / alpha
        np.testing.assert_allclose(coef, alone.coef_, atol=max(bound, 1e-5))
        if intercept.any():
            np.testing.assert_allclose(intercept, alone.intercept_, atol=max(10 * bound, 1e-4))


@pytest.mark.parametrize("solver", ["auto", "admm", "lbfgs", "newton-cg"])
def test_every_solver_follows_the_path(solver):
    X, y = data("dense")
    L = operators.gradient(12)
    settings = {"operator": L, "solver": solver, "tol": 1e-7, "sample_weight": np.arange(400) % 3}
    path = softmax_path(X, y, [0.1, 0.01, 1e-3], **settings)
    weights = settings.pop("sample_weight")
    for alpha, coef in zip(path.alphas, path.coefs, strict=True):
        alone = SoftmaxRegression(alpha, **settings).fit(X, y, weights)
        np.testing.assert_allclose(coef, alone.coef_, atol=2e-4)


@pytest.mark.parametrize("kind", [DenseDesign, SparseDesign])
def test_the_gram_matrix_is_formed_once(kind, monkeypatch):
    X, y = make(500, 20, 3)
    X = X if kind is DenseDesign else sp.csr_array(X)
    calls = []
    original = kind.gram

    def counted(self, weights, dtype=np.float64):
        calls.append(self.n_rows)
        return original(self, weights, dtype)

    monkeypatch.setattr(kind, "gram", counted)
    softmax_path(X, y, np.logspace(0, -5, 12), tol=1e-7)
    assert calls == [500]


def test_the_path_costs_little_more_than_its_first_fits():
    X, y = make(800, 20, 4)
    path = softmax_path(X, y, np.logspace(0, -4, 30), tol=1e-5)
    # By the path's own method: on data as small as these "auto" takes Newton's.
    one = SoftmaxRegression(tol=1e-5, solver="lbfgs")
    alone = [one.set_params(alpha=a).fit(X, y).history_["passes"][-1] for a in path.alphas]
    assert path.reads < 0.5 * sum(alone)


def test_validation_rows_choose_and_do_not_touch_the_fits():
    X, y = make(300, 30, 3, noise=2.0)
    X_val, y_val = make(300, 30, 3, noise=2.0, seed=0)
    X_val = X_val + 0.5 * np.random.default_rng(1).standard_normal(X_val.shape)
    bare = softmax_path(X, y, ALPHAS)
    path = softmax_path(X, y, ALPHAS, X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(bare.coefs, path.coefs)
    validation = Problem.of(X_val, y_val)
    expected = [validation.evaluate(r.W) for r in path.results]
    np.testing.assert_allclose(path.val_loss, [e.loss for e in expected])
    np.testing.assert_allclose(path.val_accuracy, [e.accuracy for e in expected])
    assert path.alpha == path.alphas[np.argmin(path.val_loss)]
    by_accuracy = softmax_path(X, y, ALPHAS, X_val=X_val, y_val=y_val, monitor="accuracy")
    assert by_accuracy.best == np.argmax(path.val_accuracy)
    with pytest.raises(ValueError, match="without validation rows"):
        _ = bare.alpha


def test_the_path_ends_when_validation_has_turned():
    X, y = make(60, 40, 3, noise=3.0)
    X_val, y_val = make(60, 40, 3, noise=3.0, seed=1)
    whole = softmax_path(X, y, np.logspace(2, -5, 15), X_val=X_val, y_val=y_val)
    turn = whole.best
    assert turn < 9
    path = softmax_path(X, y, np.logspace(2, -5, 15), X_val=X_val, y_val=y_val, patience=2)
    assert len(path.alphas) == turn + 3
    np.testing.assert_array_equal(path.coefs, whole.coefs[: turn + 3])
    assert path.alpha == whole.alpha


def test_has_turned():
    assert not has_turned([1, 2, 3], 1)
    assert has_turned([1, 3, 2], 1)
    assert not has_turned([1, 3, 3], 1)  # as good is not worse
    assert not has_turned([3], 1)
    assert not has_turned([3, 2, 1], None)


def test_the_next_start_lies_on_the_line_through_the_last_two():
    trail = Trail()
    assert trail.ahead(1.0) is None
    trail.add(1.0, np.array([[1.0]]))
    assert trail.ahead(0.1) == 1.0
    trail.add(0.1, np.array([[3.0]]))
    assert trail.ahead(0.01) == pytest.approx(5.0)
    assert trail.ahead(0.1**1.5) == pytest.approx(4.0)
    assert trail.ahead(1e-9) == pytest.approx(5.0)  # no further than they are apart
    trail.add(0.01, np.array([[4.0]]))
    assert trail.ahead(0.001) == pytest.approx(5.0)


def test_a_visitor_ends_the_path():
    X, y = make(100, 5, 3)
    problem = Problem.of(X, y, 1.0)
    seen = []

    def visit(alpha, results):
        seen.append(alpha)
        return len(seen) == 3

    path = follow(Fitter(problem, fits=9), [problem], ALPHAS, visit)
    assert len(path) == 3
    assert seen == list(ALPHAS[:3])


@dataclass(frozen=True)
class PressesCtrlC:
    """Newton's method, interrupted before an iterate of so many fits have begun."""

    fits: int
    started: list = field(default_factory=list)

    def iterates(self, problem, W0):
        self.started.append(problem)
        if len(self.started) > self.fits:
            raise KeyboardInterrupt
        yield from NewtonCG().iterates(problem, W0)


def test_ctrl_c_keeps_what_is_finished():
    X, y = make(100, 5, 3)
    whole = softmax_path(X, y, ALPHAS, solver=NewtonCG())
    for fits in (1, 4):
        with pytest.warns(match="softmax_path was interrupted"):
            path = softmax_path(X, y, ALPHAS, solver=PressesCtrlC(fits), X_val=X, y_val=y)
        assert len(path.alphas) == len(path.results) == len(path.val_loss) == fits
        np.testing.assert_array_equal(path.coefs, whole.coefs[:fits])
    with pytest.raises(KeyboardInterrupt):  # there is nothing to keep
        softmax_path(X, y, ALPHAS, solver=PressesCtrlC(0))


def test_ctrl_c_in_a_visit_keeps_what_was_visited():
    problem = Problem.of(*make(100, 5, 3), 1.0)

    def visit(alpha, results):
        if alpha == ALPHAS[3]:
            raise KeyboardInterrupt
        return False

    fitter = Fitter(problem, fits=9)
    assert len(follow(fitter, [problem], ALPHAS, visit)) == 3
    assert fitter.scheduler.interrupted


def test_alphas_keep_their_order_and_are_checked():
    problem = Problem.of(*make(100, 5, 3))
    np.testing.assert_array_equal(as_alphas([0.1, 10, 1, 1.0], problem), [0.1, 10, 1, 1])
    penalties = Penalties.of([0.1, 10, 1, 1.0])
    np.testing.assert_array_equal(penalties.fitted, [10, 1, 0.1])
    np.testing.assert_array_equal(penalties.fitted[penalties.places], penalties.given)
    assert penalties.tried(2).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"alphas\[1\] must be positive, got 0"):
        as_alphas([1.0, 0.0], problem)
    with pytest.raises(ValueError, match="at least one number, got none"):
        as_alphas([], problem)
    with pytest.raises(ValueError, match="alphas must be a number ≥ 1 or a list, got 0"):
        as_alphas(0, problem)
    np.testing.assert_array_equal(as_alphas((a for a in (0.1, 1)), problem), [0.1, 1])
    assert softmax_path(*make(50, 3, 3), [1e200, 1e190]).alphas[0] == 1e200


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_range_follows_the_data(scale):
    X, y = make(500, 10, 3)
    top, bottom = alpha_range(Problem.of(scale * X + 7 * scale, y))
    covariance = np.cov(scale * X.T, bias=True)
    assert top == pytest.approx(np.linalg.eigvalsh(covariance)[-1] / 3, rel=0.05)
    assert bottom == pytest.approx(np.trace(covariance) / 10 / (100 * 500), rel=1e-6)
    assert len(as_alphas(7, Problem.of(X, y))) == 7
    # At the top hardly anything is learnt, at the bottom nearly everything.
    problem = Problem.of(X, y)
    top, bottom = alpha_range(problem)
    path = softmax_path(X, y, [top, bottom, bottom / 100], tol=1e-7)
    losses = [r.iterate.loss for r in path.results]
    assert losses[0] > 0.5 * np.log(3)
    assert losses[1] - losses[2] < 1e-3


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_range_does_not_suffer_from_offsets(offset):
    X, y = make(300, 4, 3)
    expected = alpha_range(Problem.of(X, y))
    shifted = np.column_stack([X + offset, np.full(300, 1e5)])
    for dtype in (np.float32, np.float64):
        top, bottom = alpha_range(Problem.of(shifted.astype(dtype), y))
        assert top == pytest.approx(expected[0], rel=0.05)
        assert bottom == pytest.approx(0.8 * expected[1], rel=0.05)  # one column more
    huge = Problem.of((X * 1e15).astype(np.float32), y)
    assert alpha_range(huge)[0] == pytest.approx(1e30 * expected[0], rel=0.05)
    sparse = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    dense = alpha_range(Problem.of(sparse.toarray(), y))
    assert alpha_range(Problem.of(sparse, y)) == pytest.approx(dense, rel=1e-9)


def test_the_range_of_data_without_scale():
    y = np.arange(30) % 3
    assert alpha_range(Problem.of(np.ones((30, 4)), y)) == (1.0, 1e-4)
    assert len(as_alphas(1, Problem.of(np.ones((30, 4)), y))) == 1


def test_a_frame_and_a_picture(tmp_path):
    X, y = make(200, 5, 3)
    path = softmax_path(X[:100], y[:100], ALPHAS, X_val=X[100:], y_val=y[100:])
    frame = path.to_frame()
    assert len(frame) == len(ALPHAS)
    assert {"alpha", "objective", "norm", "n_iter", "status", "val_loss"} <= set(frame.columns)
    assert (np.diff(path.norms) > 0).all()
    figure = path.plot()
    assert [axis.get_title(loc="left") for axis in figure.axes] == [
        "Validation loss",
        "Norm of each class's coefficients",
    ]
    assert f"α = {path.alpha:.2g}" in [text.get_text() for text in figure.axes[0].texts]
    figure.savefig(tmp_path / "path.png")
    assert len(softmax_path(X, y, [1.0, 0.1]).plot().axes) == 1


def test_progress_off_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("admm_softmax.progress.SECONDS_BETWEEN_LINES", 0.0)
    X, y = make(100, 5, 3)
    softmax_path(X[:50], y[:50], [1.0, 0.1], X_val=X[50:], y_val=y[50:], verbose=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("path 1 of 2: alpha 1.00e+00, objective")
    assert "validation" in lines[1]


def test_bad_settings():
    X, y = make(50, 3, 3)
    with pytest.raises(ValueError, match="monitor must be 'loss' or 'accuracy', got 'f1'"):
        softmax_path(X, y, monitor="f1")
    with pytest.raises(
        ValueError, match="patience needs validation rows: got patience=2 and no X_val"
    ):
        softmax_path(X, y, patience=2)


def test_fits_that_did_not_converge_are_reported():
    X, y = make(200, 6, 3)
    with pytest.warns(match="2 of 2 fits did not reach tol = 1.00e-12"):
        softmax_path(X, y, [1e-2, 1e-3], tol=1e-12, max_iter=2)


def test_a_solver_object_runs_as_configured():
    X, y = make(200, 6, 3)
    path = softmax_path(X, y, [1.0, 0.1], solver=LBFGS(3))
    assert "memory=3" in path.results[0].history.solver


def test_reads_count_every_solvers():
    X, y = make(200, 6, 3)
    path = softmax_path(X, y, [1.0, 0.1], solver=LBFGS(20, "gram"), tol=1e-6)
    assert path.reads == sum(result.iterate.passes for result in path.results)


def test_a_path_on_a_used_design_counts_its_own_reads():
    X, y = make(200, 6, 3)
    design = DenseDesign(X)
    first, second = (softmax_path(design, y, [1.0, 0.1]) for _ in range(2))
    assert first.reads == second.reads > 0
    assert design.reads == 2 * first.reads
