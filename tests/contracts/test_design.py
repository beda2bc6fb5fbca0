"""Every design gives the same folds, for any block size and number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import as_design
from admm_softmax.design import Design, Task
from admm_softmax.kernels import rows

N, D, K = 217, 9, 3

FORMS = {
    "dense": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "integers": lambda X: np.round(4 * X).astype(np.int64),
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "csc_array": sp.csc_array,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def matrix():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.4)


@pytest.fixture(params=FORMS)
def form(request):
    X = matrix()
    if request.param == "integers":
        X = np.round(4 * X)
        return FORMS["integers"](X / 4), X
    return FORMS[request.param](X), X


@pytest.fixture(params=[True, False], ids=["intercept", "no intercept"])
def intercept(request):
    return request.param


def tilde(X, intercept):
    return np.column_stack([X, np.ones(len(X))]) if intercept else X


def tolerance(design):
    return 2e-5 if design.dtype == np.float32 else 1e-11


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
@pytest.mark.parametrize("threads", [1, 3])
def test_fold_is_the_formula(form, intercept, block, threads, monkeypatch):
    X, dense = form
    design = as_design(X, intercept=intercept, n_threads=threads)
    monkeypatch.setattr(type(design), "block_rows", lambda self: block)
    rng = np.random.default_rng(1)
    W = rng.standard_normal((design.n_features, K))
    row_state = rng.standard_normal((N, K))

    def kernel(scores, state):
        return np.tanh(scores) * state, (scores + state, state[:, 0]), np.array([scores.sum(), 1.0])

    fold = design.fold(W, kernel, (row_state,))
    scores = tilde(dense, intercept) @ W
    tol = tolerance(design)
    expected = tilde(dense, intercept).T @ (np.tanh(scores) * row_state)
    np.testing.assert_allclose(fold.product, expected, rtol=tol, atol=100 * tol)
    np.testing.assert_allclose(fold.rows[0], scores + row_state, rtol=tol, atol=100 * tol)
    np.testing.assert_array_equal(fold.rows[1], row_state[:, 0])
    np.testing.assert_allclose(fold.sums[0], scores.sum(), rtol=10 * tol)
    assert fold.sums[1] == len(design.partition())
    assert design.reads == 1


def test_gram_triangle_and_squares(form, intercept):
    X, dense = form
    design = as_design(X, intercept=intercept)
    w = np.random.default_rng(2).random(N)
    T = tilde(dense, intercept)
    expected = T.T @ (T * w[:, None])
    tol = tolerance(design)
    gram = design.gram(w)
    np.testing.assert_allclose(gram, expected, rtol=tol, atol=10 * tol)
    np.testing.assert_array_equal(gram, gram.T)
    R = design.triangle(w)
    np.testing.assert_allclose(R.T @ R, expected, rtol=tol, atol=10 * tol)
    np.testing.assert_array_equal(R, np.triu(R))
    np.testing.assert_allclose(design.column_squares(w), np.diag(expected), rtol=tol)
    assert design.reads == 3


def test_outer(form):
    X, dense = form
    design = as_design(X)
    P = sp.diags_array(np.arange(1.0, D + 1))
    K_matrix = design.outer(lambda V: P @ V)
    tol = tolerance(design)
    np.testing.assert_allclose(K_matrix, dense @ (P @ dense.T), rtol=tol, atol=100 * tol)


def test_outer_by_panels_and_a_fold_without_a_product(monkeypatch):
    X = matrix().astype(np.float32)
    design = as_design(X)
    whole = design.outer(lambda V: 2.0 * V)
    monkeypatch.setattr("admm_softmax.design.dense.PANEL_BYTES", 8 * D * 50)
    np.testing.assert_allclose(design.outer(lambda V: 2.0 * V), whole, rtol=1e-12, atol=1e-14)
    assert design.fold(np.zeros((D + 1, K)), rows.predict).product.shape == (D + 1, 0)


def test_panels_of_any_size_give_the_same_gram_and_triangle(monkeypatch):
    design = as_design(matrix())
    w = np.full(N, 1 / N)
    whole = design.gram(w)
    monkeypatch.setattr("admm_softmax.design.dense.PANEL_BYTES", 8 * (D + 1) * 20)
    np.testing.assert_allclose(design.gram(w), whole, rtol=1e-12, atol=1e-15)
    R = design.triangle(w)
    np.testing.assert_allclose(R.T @ R, whole, rtol=1e-12, atol=1e-15)


def test_large_gram_is_mirrored_blockwise():
    X = np.random.default_rng(3).standard_normal((40, 1100))
    design = as_design(X, intercept=False)
    np.testing.assert_allclose(design.gram(np.ones(40)), X.T @ X, rtol=1e-10, atol=1e-10)


def test_same_bits_for_any_number_of_threads(form, monkeypatch):
    X, _ = form
    results = []
    for threads in (1, 2, 4):
        design = as_design(X, n_threads=threads)
        monkeypatch.setattr(type(design), "block_rows", lambda self: 10)
        W = np.random.default_rng(4).standard_normal((design.n_features, K))
        labels, w = np.arange(N) % K, np.full(N, 1 / N)
        results.append(design.fold(W, rows.gradient, (labels, w)))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].product, other.product)
        np.testing.assert_array_equal(results[0].sums, other.sums)


def test_only_tasks_of_a_kind_share_a_read(monkeypatch):
    design = as_design(matrix())
    rng = np.random.default_rng(0)
    labels, w = np.arange(N) % K, np.full(N, 1 / N)
    W = [rng.standard_normal((D + 1, K)) for _ in range(4)]
    tasks = [
        Task(W[0], rows.gradient, (labels, w)),
        Task(W[1], rows.evaluate, (labels, w)),
        Task(W[2], rows.gradient, (labels[::-1].copy(), w)),  # other labels
        Task(W[3], rows.gradient, (labels, w)),
    ]
    folds = design.fold_together(tasks)
    assert design.reads == 3
    for task, fold in zip(tasks, folds, strict=True):
        expected = design.fold(*task)
        np.testing.assert_allclose(fold.product, expected.product, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(fold.sums, expected.sums, rtol=1e-12)
    monkeypatch.setattr("admm_softmax.design.base.MOST_COLUMNS", 2 * K)
    design.reads = 0.0
    design.fold_together([tasks[0]] * 5)
    assert design.reads == 3


def test_a_guest_hands_its_tasks_to_the_host():
    design = as_design(matrix())
    taken = []

    def host(task):
        taken.append(task)
        return design.fold_together([task])[0]

    guest = design.guest(host)
    W = np.ones((D + 1, K))
    fold = guest.fold(W, rows.predict)
    np.testing.assert_array_equal(fold.rows[0], design.fold(W, rows.predict).rows[0])
    assert len(taken) == 1
    assert (guest.reads, design.reads) == (1, 2)
    with pytest.raises(ValueError, match="W must have 10 rows"):
        guest.fold(np.ones((3, K)), rows.predict)


def test_x_is_not_copied():
    X = matrix()
    assert np.shares_memory(as_design(X).X, X)
    S = sp.csr_array(X)
    design = as_design(S)
    assert np.shares_memory(design.X.data, S.data)
    assert np.shares_memory(design.block(slice(3, 9)).data, S.data)


def test_a_design_passes_through():
    design = as_design(matrix(), intercept=False)
    assert isinstance(design, Design)
    assert as_design(design) is design


@pytest.mark.parametrize("threads", [0, -1])
def test_bad_thread_count_is_named(threads):
    with pytest.raises(ValueError, match=f"n_threads must be at least 1 or None, got {threads}"):
        as_design(matrix(), n_threads=threads)


def test_one_dimensional_x_is_refused():
    with pytest.raises(ValueError, match="X must be two-dimensional, got 1"):
        as_design(np.ones(4))
