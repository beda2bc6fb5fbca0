"""Paths under penalties with kinks: from the largest alpha down, and each fit what it is alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import Problem, ProximalLBFGS, operators, penalties, run, softmax_path
from admm_softmax.path.largest_alpha import largest_alpha, null_model
from admm_softmax.solvers.auto import as_solver
from tests.problems import make

PENALTIES = {
    "lasso": penalties.Lasso(),
    "free features": penalties.Lasso(factors=[0, 1, 1, 2, 1, 0]),
    "elastic net": penalties.ElasticNet(0.5),
    "group lasso": penalties.GroupLasso(),
    "groups": penalties.GroupLasso([[0, 1], [2, 3], [4, 5]]),
    "sparse groups": penalties.SparseGroupLasso([0, 0, 1, 1, 2, 2], l1_ratio=0.3),
    "total variation": penalties.TotalVariation(operators.gradient(6)),
    "nuclear norm": penalties.NuclearNorm(),
}


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", PENALTIES)
def test_the_largest_alpha_is_exact(name, soft):
    X, labels = make(80, 6, 3, soft=soft)
    weights = np.random.default_rng(0).random(80) if soft else None
    problem = Problem.of(X, labels, 1.0, penalty=PENALTIES[name], sample_weight=weights)
    largest = largest_alpha(problem)

    def size(factor):
        here = problem.with_alpha(factor * largest)
        solver = as_solver("auto", here, tol=1e-8).solver
        result = run(here, solver, tol=1e-7, max_iter=2000)
        assert result.status == "converged"
        return here.penalty.rough_value(result.W) / here.penalty.alpha

    assert size(1.001) <= 1e-12
    assert size(0.99) > 1e-5


def test_the_null_model_fits_what_is_free():
    X, labels = make(80, 6, 3)
    problem = Problem.of(X, labels, 1.0, penalty=PENALTIES["free features"])
    W = null_model(problem)
    assert not W[1:5].any()
    assert np.abs(problem.at(W).loss_gradient[[0, 5, 6]]).max() < 1e-8
    plain = Problem.of(X, labels, 1.0, penalty=penalties.Lasso())
    np.testing.assert_allclose(
        np.exp(null_model(plain)[-1]) / np.exp(null_model(plain)[-1]).sum(),
        np.bincount(labels) / 80,
    )
    reference = np.full((7, 3), 0.1)
    moved = Problem.of(X, labels, 1.0, penalty=penalties.Lasso(), reference=reference)
    W = null_model(moved)
    np.testing.assert_array_equal(W[:6], reference[:6])
    assert np.abs(moved.at(W).loss_gradient[-1]).max() < 1e-8


@pytest.mark.parametrize("kind", ["dense", "sparse", "wide"])
@pytest.mark.parametrize("name", ["lasso", "group lasso"])
def test_a_path_is_cold_fits(name, kind):
    n, d = (60, 200) if kind == "wide" else (150, 12)
    X, y = make(n, d, 3)
    X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)) if kind == "sparse" else X
    penalty = PENALTIES[name]
    path = softmax_path(X, y, 12, penalty=penalty, tol=1e-7, explains=1.0)
    assert len(path.alphas) == 12
    assert path.n_nonzero[0] == 0
    assert (path.n_nonzero[1:] > 0).all()
    assert (np.diff(path.explained) > 0).all()
    assert path.explained[0] == pytest.approx(0.0, abs=1e-9)
    for i in (3, 11):
        problem = Problem.of(X, y, path.alphas[i], penalty=penalty)
        alone = run(problem, ProximalLBFGS(), tol=1e-7, max_iter=500)
        assert path.results[i].iterate.objective == pytest.approx(alone.iterate.objective, abs=1e-7)
        np.testing.assert_array_equal(path.coefs[i] != 0, alone.W[:-1].T != 0)


def test_a_path_ends_where_the_deviance_is_explained():
    X, y = make(60, 30, 3, noise=0.0)
    whole = softmax_path(X, y, 30, l1_ratio=1.0, explains=1.0)
    short = softmax_path(X, y, 30, l1_ratio=1.0, explains=0.5)
    assert len(short.alphas) < len(whole.alphas) == 30
    assert short.explained[-1] >= 0.5 > short.explained[-2]
    given = softmax_path(X, y, whole.alphas[:20], l1_ratio=1.0, explains=0.5)
    assert len(given.alphas) == 20  # a list is fitted as it is


def test_bounds_and_paths():
    X, y = make(80, 6, 3)
    path = softmax_path(X, y, 4, penalty=penalties.Bounds(0.0, 1.0))
    assert (path.coefs >= 0).all()
    assert path.coefs.max() <= 1
    with pytest.raises(ValueError, match="a path needs bounds that include zero"):
        softmax_path(X, y, 4, penalty=penalties.Bounds(0.1, 1.0))


def test_coefficients_are_drawn_with_names():
    X, y = make(80, 6, 3)
    path = softmax_path(X, y, 6, l1_ratio=1.0)
    names = [f"pixel {j}" for j in range(6)]
    figure = path.plot_coefs(names=names, most=3)
    (axis,) = figure.axes
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert len(labels) == 3
    assert set(labels) <= set(names)
    assert path.plot_coefs(label=1).axes[0].get_title(loc="left") == "Coefficients of 1"
    assert "nonzero" in path.to_frame().columns
    with pytest.raises(ValueError, match="names has 2 entries for 6 features"):
        path.plot_coefs(names=["a", "b"])
    with pytest.raises(ValueError, match=r"label must be one of \[.*\], got 9"):
        path.plot_coefs(label=9)
