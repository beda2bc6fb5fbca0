"""Every design keeps the contract, for any block size and number of threads."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import LBFGS, Problem, as_design, run
from admm_softmax._parallel import use_threads
from admm_softmax.contracts import check_design
from admm_softmax.design import DenseDesign, Design, PartitionedDesign, Request, SparseDesign
from admm_softmax.design.fold import parts_of
from admm_softmax.design.scaled import ScaledDesign
from admm_softmax.kernels import rows
from admm_softmax.sources import RowBlocks
from tests.problems import make

N, D, K = 217, 9, 3


def of(convert, kind=DenseDesign, **settings):
    return lambda X, intercept: kind(convert(X), intercept=intercept, **settings)


def cut(*cuts, kinds=(DenseDesign,)):
    """Parts of the rows, of these kinds in turn."""

    def factory(X, intercept):
        ends = [*cuts, len(X)]
        parts = [X[i:j] for i, j in zip([0, *cuts], ends, strict=True)]
        return PartitionedDesign(
            [kinds[p % len(kinds)](part, intercept=intercept) for p, part in enumerate(parts)]
        )

    return factory


def single(X, intercept):
    return DenseDesign(X.astype(np.float32), intercept=intercept)


FACTORIES = {
    "dense": DenseDesign,
    "fortran": of(np.asfortranarray),
    "float32": single,
    "strided": of(lambda X: np.repeat(X, 2, axis=0)[::2]),
    "read-only": of(lambda X: np.frombuffer(X.tobytes()).reshape(X.shape)),
    "state in float32": of(np.asarray, state_dtype=np.float32),
    "csr_array": of(sp.csr_array, SparseDesign),
    "csr_matrix": of(sp.csr_matrix, SparseDesign),
    "csc_array": of(sp.csc_array, SparseDesign),
    "csr float32": of(lambda X: sp.csr_array(X.astype(np.float32)), SparseDesign),
    "csr with wide indices": of(
        lambda X: sp.csr_array(
            (
                sp.csr_array(X).data,
                sp.csr_array(X).indices.astype(np.int64),
                sp.csr_array(X).indptr.astype(np.int64),
            ),
            shape=X.shape,
        ),
        SparseDesign,
    ),
    "one part": cut(),
    "parts": cut(5, 6, 40),
    "parts of other kinds": cut(20, 50, kinds=(DenseDesign, SparseDesign)),
    "parts of other precisions": cut(30, kinds=(DenseDesign, single)),
    "parts of parts": lambda X, intercept: PartitionedDesign(
        [cut(7)(X[:30], intercept), cut(11)(X[30:], intercept)]
    ),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_the_contract(name):
    check_design(FACTORIES[name])


@pytest.mark.parametrize("name", ["dense", "float32", "csr_array", "state in float32"])
def test_the_contract_in_small_blocks_and_panels(name, monkeypatch):
    monkeypatch.setattr(DenseDesign, "block_rows", lambda self: 7)
    monkeypatch.setattr(SparseDesign, "block_rows", lambda self: 7)
    for place in ("blocks", "dense"):
        monkeypatch.setattr(f"admm_softmax.design.{place}.PANEL_BYTES", 8 * 20 * 7)
    check_design(FACTORIES[name])


@pytest.mark.parametrize(
    "name",
    ["dense", "fortran", "float32", "csr_array", "csr float32", "state in float32", "parts"],
)
def test_the_contract_in_compiled_passes(name, monkeypatch):
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: True)
    check_design(FACTORIES[name])


def matrix():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.4)


@pytest.mark.parametrize("X", [matrix(), sp.csr_array(matrix())], ids=["dense", "sparse"])
@pytest.mark.usefixtures("threads_at_any_size")
def test_same_bits_for_any_number_of_threads(X, monkeypatch):
    design = as_design(X)
    monkeypatch.setattr(type(design), "block_rows", lambda self: 10)
    W = np.random.default_rng(4).standard_normal((design.n_features, K))
    labels, w = design.place(np.arange(N) % K), design.place(np.full(N, 1 / N))
    folds = []
    for threads in (1, 2, 4):
        with use_threads(threads):
            folds.append(design.fold(W, rows.gradient, (labels, w)))
    for other in folds[1:]:
        np.testing.assert_array_equal(folds[0].product, other.product)
        np.testing.assert_array_equal(folds[0].sums.values, other.sums.values)


@pytest.mark.parametrize("cuts", [(100,), (1, 2, 3), (50, 50, 200), tuple(range(13, N, 13))])
def test_parts_in_memory_give_the_result_of_one_design(cuts):
    X, y = make(N, D, K)
    cuts = sorted(set(cuts))
    parts = PartitionedDesign([as_design(part) for part in np.split(X, cuts)])
    one = run(Problem.of(X, y, 1e-2), LBFGS(preconditioner="gram"), tol=1e-9, max_iter=200)
    other = run(Problem.of(parts, y, 1e-2), LBFGS(preconditioner="gram"), tol=1e-9, max_iter=200)
    assert other.status == "converged"
    np.testing.assert_allclose(other.W, one.W, rtol=0, atol=1e-8)
    # Where it ends depends on rounding; a pass is the same to rounding.
    W = np.random.default_rng(0).standard_normal((D + 1, K))
    first, second = Problem.of(X, y, 1e-2).at(W), Problem.of(parts, y, 1e-2).at(W)
    np.testing.assert_allclose(second.gradient, first.gradient, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(second.objective, first.objective, rtol=1e-13, atol=0)


def test_parts_run_the_compiled_pass(monkeypatch):
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: True)
    X, y = make(500, D, K)
    parts = PartitionedDesign([as_design(part) for part in np.split(X, [123, 400])])
    W = np.random.default_rng(0).standard_normal((D + 1, K))
    one, other = Problem.of(X, y, 1e-2).at(W), Problem.of(parts, y, 1e-2).at(W)
    np.testing.assert_allclose(other.gradient, one.gradient, rtol=1e-12, atol=1e-15)
    assert parts.reads == 1


def test_folds_of_parts_add_up():
    X = matrix()
    whole, halves = as_design(X), [as_design(X[:100]), as_design(X[100:])]
    W = np.random.default_rng(0).standard_normal((D + 1, K))
    first, second = (half.fold(W, rows.predict) for half in halves)
    both = first + second
    assert both.new_rows.n_rows == N
    scores = [h.gather(r) for h, r in zip(halves, parts_of(both.new_rows), strict=True)]
    expected = whole.gather(whole.fold(W, rows.predict).new_rows)
    np.testing.assert_allclose(np.concatenate(scores), expected, rtol=1e-12, atol=1e-14)


def test_a_partition_is_where_its_parts_are():
    here, elsewhere = (as_design(matrix()[:100]), as_design(matrix()[100:]))
    both = PartitionedDesign([here, elsewhere])
    assert (both.is_in_memory, both.is_remote) == (True, False)
    elsewhere.is_in_memory, elsewhere.is_remote = False, True
    here.feature_names = [f"x{i}" for i in range(D)]
    both = PartitionedDesign([here, elsewhere])
    assert (both.is_in_memory, both.is_remote) == (False, True)
    assert both.feature_names == here.feature_names


def test_reads_of_parts_and_scaled_views_are_those_of_their_bases():
    X = matrix()
    parts = PartitionedDesign([as_design(X[:100]), as_design(X[100:])])
    few = np.where(np.arange(N) < N // 10, 1.0, 0.0)
    for design in (parts, ScaledDesign(parts, np.full(D + 1, 2.0))):
        view = design.view()
        view.gram(view.place(few))
        assert view.reads == pytest.approx(few.sum() / N)
        view.take(np.arange(3, 10))
        assert view.reads == pytest.approx((few.sum() + 7) / N)


def test_parts_that_do_not_fit_are_named():
    X = matrix()
    with pytest.raises(ValueError, match="part 1 has 9 columns"):
        PartitionedDesign([as_design(X), as_design(X[:, 1:])])
    with pytest.raises(ValueError, match="part 1 has 9 columns with intercept=False"):
        PartitionedDesign([as_design(X), as_design(X, intercept=False)])
    with pytest.raises(ValueError, match="at least one part"):
        PartitionedDesign([])


def test_only_requests_of_a_kind_share_a_read(monkeypatch):
    design = as_design(matrix())
    rng = np.random.default_rng(0)
    labels, w = design.place(np.arange(N) % K), design.place(np.full(N, 1 / N))
    others = design.place(np.arange(N)[::-1] % K)
    W = [rng.standard_normal((D + 1, K)) for _ in range(4)]
    requests = [
        Request(W[0], rows.gradient, (labels, w)),
        Request(W[1], rows.evaluate, (labels, w)),
        Request(W[2], rows.gradient, (others, w)),
        Request(W[3], rows.gradient, (labels, w)),
    ]
    folds = design.fold_many(requests)
    assert design.reads == 3
    for request, fold in zip(requests, folds, strict=True):
        expected = design.fold(*request[:3])
        np.testing.assert_allclose(fold.product, expected.product, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(fold.sums.values, expected.sums.values, rtol=1e-12)
    monkeypatch.setattr("admm_softmax.kernels.thresholds.SHARED_COLUMNS", 2 * K)
    view = design.view()
    view.fold_many([requests[0]] * 5)
    assert view.reads == 3


def test_large_gram_is_mirrored_blockwise():
    X = np.random.default_rng(3).standard_normal((40, 1100))
    design = as_design(X, intercept=False)
    ones = design.place(np.ones(40))
    np.testing.assert_allclose(design.gram(ones), X.T @ X, rtol=1e-10, atol=1e-10)


def test_rows_without_weight_are_not_multiplied():
    design = as_design(matrix())
    w = design.subset(design.place(np.ones(N)), np.arange(0, N, 4))
    expected = as_design(matrix()[::4])
    np.testing.assert_allclose(
        design.gram(w), expected.gram(expected.place(np.ones(expected.n_rows))), atol=1e-12
    )
    assert design.reads == pytest.approx(len(range(0, N, 4)) / N)


def test_x_is_not_copied():
    X = matrix()
    assert np.shares_memory(as_design(X).X, X)
    S = sp.csr_array(X)
    design = as_design(S)
    assert np.shares_memory(design.X.data, S.data)
    assert np.shares_memory(design.block(slice(3, 9)).data, S.data)


def test_integers_become_float64():
    X = np.round(4 * matrix()).astype(np.int64)
    design = as_design(X)
    assert design.dtype == np.float64
    np.testing.assert_array_equal(design.X, X)


def test_a_design_passes_through():
    design = as_design(matrix(), intercept=False)
    assert isinstance(design, Design)
    assert as_design(design) is design


def test_handles_get_other_keys_in_another_process():
    design = as_design(matrix())
    handle = design.place(np.arange(N))
    copy = pickle.loads(pickle.dumps(handle))
    assert copy.key != handle.key
    np.testing.assert_array_equal(copy.held, handle.held)


def test_one_dimensional_x_is_refused():
    with pytest.raises(ValueError, match="X must be two-dimensional, got 1"):
        as_design(np.ones(4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(3_000, 40), (400, 1_500)])
def test_the_same_rows_at_another_address_give_the_same_bits(n, d, dtype):
    X, labels = make(n, d, 10, dtype=dtype)
    room = np.empty(X.size + 64, dtype)
    weights = np.full(n, 1.0 / n)
    W = np.random.default_rng(0).standard_normal((d + 1, 10))
    found = []
    for shift in (0, 1, 3, 8, 15):
        copy = room[shift : shift + X.size].reshape(X.shape)
        copy[...] = X
        design = DenseDesign(copy)
        assert np.shares_memory(design.X, room)
        inputs = [design.place(labels), design.place(weights)]
        fold = design.fold(W, rows.gradient, inputs)
        found.append((fold.product, design.gram(inputs[1]), fold.sums.loss))
    for product, gram, loss in found[1:]:
        np.testing.assert_array_equal(product, found[0][0])
        np.testing.assert_array_equal(gram, found[0][1])
        assert loss == found[0][2]


@pytest.mark.parametrize("kind", ["dense", "sparse", "streamed"])
def test_rows_go_through_a_function(kind):
    X = np.random.default_rng(0).standard_normal((50, 4))
    given = {"dense": X, "sparse": sp.csr_array(X), "streamed": RowBlocks(X)}[kind]
    design = as_design(given).transformed(lambda block: 2 * block)
    W = np.random.default_rng(1).standard_normal((5, 3))
    np.testing.assert_allclose(
        design.gather(design.fold(W, rows.predict).new_rows), 2 * X @ W[:-1] + W[-1]
    )


def test_a_partition_refuses_to_put_rows_through_a_function():
    X = np.ones((4, 2))
    design = PartitionedDesign([as_design(X), as_design(X)])
    with pytest.raises(
        NotImplementedError, match="a PartitionedDesign cannot put its rows through"
    ):
        design.transformed(np.abs)
