"""The paper's ℓ-BFGS: the pairs count, and they are dropped when they mislead."""

from collections import deque
from itertools import pairwise

import numpy as np
import pytest

from admm_softmax import HessianLBFGS, Problem, run
from admm_softmax._vectors import Vectors
from admm_softmax.solvers.lbfgs import Pair
from admm_softmax.solvers.line_search import search
from tests.problems import assert_close

EXACT = {"cg_max_iter": 500, "cg_tol": 1e-11}


@pytest.fixture
def problem():
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 4))
    y = (X @ random.standard_normal((4, 3)) + random.gumbel(size=(60, 3))).argmax(axis=1)
    return Problem.of(X, y, 1e-2, n_classes=3)


def pairs_through(problem, points):
    """Steps and changes of the gradient, the oldest first."""
    linearised = [problem.at(W) for W in points]
    vectors = Vectors(problem.shape, np.float64)
    return [Pair.between(old, new, vectors) for old, new in pairwise(linearised)]


def dense_inverse(problem, W, pairs):
    """The BFGS updates of the inverse Hessian at W, in full matrices."""
    point, size = problem.linearise(W), W.size
    columns = [point.hessian_product(e.reshape(W.shape)).ravel() for e in np.eye(size)]
    # Singular: the loss cannot see an intercept that all classes share, nor can the penalty.
    H = np.linalg.pinv(np.array(columns), rcond=1e-10, hermitian=True)
    for pair in pairs:
        s, y = pair.s.ravel(), pair.y.ravel()
        left = np.eye(size) - np.outer(s, y) / (s @ y)
        H = left @ H @ left.T + np.outer(s, s) / (s @ y)
    return H


def test_pairs_correct_the_inverse_of_the_hessian(problem):
    random = np.random.default_rng(1)
    points = [0.5 * random.standard_normal(problem.shape) for _ in range(4)]
    pairs = pairs_through(problem, points)
    point = problem.linearise(points[-1])
    direction, residuals = HessianLBFGS(**EXACT)._direction(point, deque(pairs))
    expected = -dense_inverse(problem, points[-1], pairs) @ point.gradient.ravel()
    assert_close(direction.ravel(), expected, 1e-7)
    assert residuals[-1] <= EXACT["cg_tol"] * 1.01
    newton, _ = HessianLBFGS(**EXACT)._direction(point, deque())
    assert np.linalg.norm(direction - newton) > 0.01 * np.linalg.norm(newton)


@pytest.mark.parametrize("memory", [1, 2, 10])
def test_so_many_pairs_are_kept(problem, memory, monkeypatch):
    seen = []
    own = HessianLBFGS._direction

    def direction(self, point, pairs):
        seen.append(len(pairs))
        return own(self, point, pairs)

    monkeypatch.setattr(HessianLBFGS, "_direction", direction)
    run(problem, HessianLBFGS(memory, cg_max_iter=1), max_iter=5, tol=0.0)
    assert seen == [min(k, memory) for k in range(5)]


def test_pairs_that_point_uphill_are_dropped(problem, monkeypatch):
    own = HessianLBFGS._direction

    def uphill(self, point, pairs):
        direction, residuals = own(self, point, pairs)
        return (-direction if pairs else direction), residuals

    monkeypatch.setattr(HessianLBFGS, "_direction", uphill)
    result = run(problem, HessianLBFGS(), max_iter=30, tol=1e-8)
    assert result.status == "converged"


def test_pairs_are_dropped_where_the_line_search_fails(problem, monkeypatch):
    def fails(evaluate, start, direction, **settings):
        return (None, 0.0) if kept else search(evaluate, start, direction, **settings)

    kept = []
    own = HessianLBFGS._direction

    def direction(self, point, pairs):
        kept[:] = pairs
        return own(self, point, pairs)

    monkeypatch.setattr(HessianLBFGS, "_direction", direction)
    monkeypatch.setattr("admm_softmax.solvers.hessian_lbfgs.search", fails)
    result = run(problem, HessianLBFGS(), max_iter=30, tol=1e-8)
    assert result.status == "converged"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"memory": 0}, "memory must be at least 1, got 0"),
        ({"cg_max_iter": 0}, "cg_max_iter must be at least 1, got 0"),
        ({"cg_tol": 1.0}, "cg_tol must lie between 0 and 1, got 1.0"),
    ],
)
def test_settings_are_checked(settings, words):
    with pytest.raises(ValueError, match=words):
        HessianLBFGS(**settings)
