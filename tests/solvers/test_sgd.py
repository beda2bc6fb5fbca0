"""SGD is the textbook, epoch by epoch, and its epochs are passes."""

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from admm_softmax import SGD, Problem, run
from admm_softmax.solvers.auto import as_solver
from admm_softmax.solvers.sgd import batch_gradient
from tests.problems import assert_close, make, minimum


def transcription(X, C, alpha, solver, epochs):
    """The textbook loop on dense arrays, with the same shuffles."""
    n = len(X)
    T = np.column_stack([X, np.ones(n)])
    L2 = np.r_[np.ones(X.shape[1]), 0.0][:, None]
    W = V = np.zeros((T.shape[1], C.shape[1]))
    random = np.random.default_rng(solver.seed)
    batches = int(np.ceil(n / solver.batch_size))
    for _ in range(epochs):
        order = random.permutation(n)
        for b in range(batches):
            rows = order[b * n // batches : (b + 1) * n // batches]
            at = W + solver.momentum * V if solver.nesterov else W
            scores = T[rows] @ at
            P = np.exp(scores - scores.max(axis=1, keepdims=True))
            P /= P.sum(axis=1, keepdims=True)
            G = T[rows].T @ (P - C[rows]) / len(rows) + alpha * L2 * at
            V = solver.momentum * V - solver.learning_rate * G
            W = W + V
        yield W


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_is_the_textbook_step_by_step(nesterov, sparse):
    X, y = make(100, 5, 3)
    solver = SGD(0.05, batch_size=17, momentum=0.9, nesterov=nesterov, seed=3)
    problem = Problem.of(sp.csr_array(X) if sparse else X, y, 1e-2)
    expected = transcription(X, np.eye(3)[y], 1e-2, solver, 4)
    ours = islice(solver.iterates(problem, None), 1, None)
    for W, iterate in zip(expected, ours, strict=False):
        assert_close(iterate.W, W, 1e-9)


def test_batches_of_an_epoch_average_to_the_gradient():
    X, y = make(60, 5, 3)
    s = np.random.default_rng(0).random(60)
    problem = Problem.of(X, y, 1e-2, sample_weight=s)
    W = np.random.default_rng(1).standard_normal(problem.shape)
    rows = problem.labels, problem.weights
    batches = [problem.design.take(np.arange(i, i + 20), *rows) for i in (0, 20, 40)]
    parts = [batch_gradient(problem, batch, 60, W) for batch in batches]
    assert_close(np.mean(parts, axis=0), problem.at(W).gradient, 1e-12)


@pytest.mark.parametrize(("n", "batch_size", "sizes"), [(59, 30, [29, 30]), (59, 20, [19, 20, 20])])
def test_no_batch_is_larger_than_asked_for(n, batch_size, sizes, monkeypatch):
    X, y = make(n, 5, 3)
    problem = Problem.of(X, y, 1e-2)
    seen = []

    def spy(problem, batch, n, W):
        seen.append(batch.design.n_rows)
        return np.zeros_like(W)

    monkeypatch.setattr("admm_softmax.solvers.sgd.batch_gradient", spy)
    list(islice(SGD(batch_size=batch_size).iterates(problem, None), 2))
    assert seen == sizes


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, load_digits])
def test_the_named_one_does_not_mind_units(load):
    X, y = load(return_X_y=True)
    problem = Problem.of(X, y, 1e-3)
    solver = as_solver("sgd", problem, tol=1e-4).solver
    start = problem.objective(np.zeros(problem.shape))
    result = run(problem, solver, tol=0, max_iter=50)
    assert result.iterate.objective < 0.2 * start
    assert result.iterate.accuracy > 0.9


def test_an_epoch_is_one_pass_and_seeds_decide():
    X, y = make(100, 5, 3)
    problem = Problem.of(X, y, 1e-2)
    first, again, other = (
        run(problem, SGD(batch_size=10, seed=s), tol=0, max_iter=3) for s in (0, 0, 1)
    )
    np.testing.assert_allclose(first.history["passes"], [0.0, 1.0, 2.0, 3.0], rtol=1e-12)
    np.testing.assert_array_equal(first.W, again.W)
    assert not np.array_equal(first.W, other.W)


def test_a_falling_rate_gets_closer():
    X, y = make(400, 5, 3)
    problem = Problem.of(X, y, 1e-2)
    _, best = minimum(problem, X)
    gaps = {}
    for schedule in ("constant", "inverse", "sqrt", "cosine", lambda epoch: 0.9**epoch):
        solver = SGD(0.2, batch_size=20, schedule=schedule, decay=0.01)
        result = run(problem, solver, tol=0, max_iter=100)
        gaps[schedule if isinstance(schedule, str) else "function"] = (
            result.iterate.objective - best
        )
    assert gaps["cosine"] < 0.1 * gaps["constant"]
    assert gaps["function"] < 0.1 * gaps["constant"]
    assert gaps["sqrt"] < gaps["constant"]
    assert gaps["inverse"] < gaps["constant"]


def test_the_rate_is_in_the_history():
    X, y = make(100, 5, 3)
    solver = SGD(0.2, schedule="inverse", decay=1.0)
    history = run(Problem.of(X, y, 1e-2), solver, tol=0, max_iter=3).history
    np.testing.assert_allclose(history["learning_rate"], [0.2, 0.1, 0.2 / 3, 0.05])


def test_measuring_is_off_the_clock_and_not_a_pass():
    X, y = make(100, 5, 3)
    problem = Problem.of(X, y, 1e-2)
    result = run(problem, SGD(batch_size=10), tol=0, max_iter=4)
    assert result.history["passes"][-1] == pytest.approx(4)
    assert problem.design.reads == pytest.approx(9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be positive, got 0.0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"momentum": 1.0}, r"momentum must lie in \[0, 1\), got 1.0"),
        ({"schedule": "warm"}, "schedule must be one of .* or a function, got 'warm'"),
        ({"decay": -1.0}, "decay must be ≥ 0, got -1.0"),
        ({"preconditioner": "ilu"}, "preconditioner must be one of"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        SGD(**settings)
