"""One pass over the files per request, in a fixed order, whatever the cache holds."""

import pickle

import numpy as np
import pytest

from admm_softmax import ADMM, LBFGS, SGD, Problem, RowBlocks, run
from admm_softmax._parallel import use_threads
from admm_softmax.design import DenseDesign, Design, Request, StreamedDesign
from admm_softmax.design.dense import FusedWorker
from admm_softmax.design.reader import BLOCKS_IN_FLIGHT
from admm_softmax.kernels import rows
from tests.problems import make

N, D, K = 501, 6, 3
LIMITS = ["20kB", "30kB", "35kB", "1MB"]


def data():
    return make(N, D, K)


class Counted:
    """Blocks of rows that count how often they are iterated, and how far."""

    def __init__(self, X):
        self.X, self.starts, self.blocks = X, 0, 0

    def __iter__(self):
        self.starts += 1
        for block in np.array_split(self.X, 13):
            self.blocks += 1
            yield block


def gradient(design, y):
    labels, w = design.place(y), design.place(np.full(N, 1 / N))
    W = np.random.default_rng(1).standard_normal((design.n_features, K))
    return design.fold(W, rows.gradient, (labels, w))


@pytest.mark.parametrize("compiled", [False, True])
def test_same_bits_for_any_memory_limit_and_number_of_threads(compiled, small_blocks, monkeypatch):
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: compiled)
    X, y = data()
    folds, kept = [], []
    for limit in LIMITS:
        for threads in (1, 3):
            design = StreamedDesign(
                RowBlocks(lambda: iter(np.array_split(X, 7)), memory_limit=limit)
            )
            with use_threads(threads):
                folds += [gradient(design, y), gradient(design, y)]
        kept.append(len(design.reader.cache))
        squares = design.column_squares(design.place(np.full(N, 1 / N)))
        gram = design.gram(design.place(np.full(N, 1 / N)))
        np.testing.assert_allclose(np.diag(gram), squares, rtol=1e-12)
    assert kept == sorted(kept)
    assert kept[0] < kept[-1] == len(design.reader.cuts)
    for fold in folds[1:]:
        np.testing.assert_array_equal(fold.product, folds[0].product)
        np.testing.assert_array_equal(fold.sums.values, folds[0].sums.values)
    memory = gradient(DenseDesign(X), y)
    np.testing.assert_allclose(folds[0].product, memory.product, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_long_passes_are_as_in_memory(dtype, monkeypatch):
    # More rows than are added up in the data's precision, in blocks that are no multiple of them.
    monkeypatch.setattr("admm_softmax.design.reader.READ_BLOCK_BYTES", 700 * 4 * 6)
    X, y = make(20_000, D, K)
    X = X.astype(dtype)
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: True)
    results = []
    for design in (StreamedDesign(RowBlocks(X)), DenseDesign(X)):
        labels, w = design.place(y), design.place(np.full(len(X), 1 / len(X)))
        results.append(design.fold(np.ones((D + 1, K)), rows.gradient, (labels, w)))
    tolerance = {np.float32: 1e-5, np.float64: 1e-12}[dtype]
    scale = np.abs(results[1].product).max()
    assert np.abs(results[0].product - results[1].product).max() <= tolerance * scale


def test_one_read_of_the_blocks_per_pass(small_blocks):
    X, y = data()
    counted = Counted(X)
    design = StreamedDesign(RowBlocks(counted, n_rows=N, memory_limit="20kB"))
    counted.starts = counted.blocks = 0
    problem = Problem.of(design, y, 1e-2)
    result = run(problem, LBFGS(preconditioner="none"), tol=1e-6, max_iter=200)
    assert result.status == "converged"
    assert counted.starts == design.reads
    assert counted.blocks == 13 * design.reads
    counted.starts, before = 0, design.reads
    run(problem, ADMM(rho=0.1), tol=1e-2, max_iter=5)
    assert counted.starts == design.reads - before


def test_with_enough_memory_the_blocks_are_read_once(small_blocks):
    X, y = data()
    counted = Counted(X)
    design = StreamedDesign(RowBlocks(counted, n_rows=N))
    counted.starts = 0
    run(Problem.of(design, y, 1e-2), LBFGS(preconditioner="gram"), tol=1e-6)
    assert design.reads > 5
    assert counted.starts == 1


def test_requests_share_a_read(small_blocks):
    X, y = data()
    counted = Counted(X)
    design = StreamedDesign(RowBlocks(counted, n_rows=N, memory_limit="40kB"))
    labels = design.place(y)
    requests = []
    for seed in range(3):
        w = np.random.default_rng(seed).random(N)
        W = np.random.default_rng(seed).standard_normal((D + 1, K))
        requests.append((W, rows.gradient, (labels, design.place(w))))
    counted.starts = 0
    together = design.fold_many([Request(*request) for request in requests])
    assert (counted.starts, design.reads) == (1, 1)
    for request, fold in zip(requests, together, strict=True):
        np.testing.assert_allclose(
            fold.product, design.fold(*request[:3]).product, rtol=1e-11, atol=1e-14
        )


def test_blocks_without_weight_are_not_read(small_blocks, tmp_path):
    X, _ = data()
    np.save(tmp_path / "x.npy", X)
    design = StreamedDesign(RowBlocks(tmp_path / "x.npy", memory_limit="20kB"))
    w = np.zeros(N)
    w[205:212] = 1.0
    gram = design.gram(design.place(w))
    np.testing.assert_allclose(gram[:D, :D], X[205:212].T @ X[205:212], rtol=1e-12, atol=1e-12)
    assert design.reader.blocks_read <= 2
    assert design.reads < 0.1
    before = design.reader.blocks_read
    design.take(np.array([3, 4, 400]))
    assert design.reader.blocks_read - before <= 2


def test_memory_stays_below_the_limit(small_blocks, monkeypatch):
    # Blocks in flight, cache, sums and row state together.
    X, y = data()
    design = StreamedDesign(RowBlocks(lambda: iter(np.array_split(X, 7)), memory_limit="48kB"))
    room, made = design.reader._room, []
    monkeypatch.setattr(design.reader, "_room", lambda: made.append(1) or room())
    labels, w = design.place(y), design.place(np.full(N, 1 / N))
    Z = design.zeros(K)
    W = np.ones((D + 1, K))
    kernel = rows.admm.bind(rho=0.3, relaxation=1.6, dual_is_zero=0.0)
    for _ in range(4):
        Z = design.fold(W, kernel, (labels, w, Z)).new_rows
        blocks = design.reader.cache.values()
        held = sum(block.nbytes for block in [*blocks, *design.reader.spare])
        memory = design.reader.memory
        assert held + memory.held + memory.reserved <= 48 << 10
        assert len(design.reader.spare) <= BLOCKS_IN_FLIGHT
    assert len(design.reader.cache) > 0


def test_rows_picked_stay_in_files_and_out_of_the_cache(small_blocks):
    X, _ = data()
    counted = Counted(X)
    design = StreamedDesign(RowBlocks(counted, n_rows=N))
    places = np.arange(3, N, 4)
    part = design.picked(places)
    W = np.random.default_rng(0).standard_normal((D + 1, K))
    for _ in range(2):
        counted.starts = 0
        found = part.map_scores(W, lambda scores: scores)
        np.testing.assert_allclose(found, X[places] @ W[:D] + W[D], rtol=1e-12, atol=1e-12)
        assert (counted.starts, len(part.reader.cache)) == (1, 0)


def test_batches_read_each_block_once_and_are_mixed(small_blocks, tmp_path):
    X, _ = data()
    np.save(tmp_path / "x.npy", X)
    design = StreamedDesign(RowBlocks(tmp_path / "x.npy", memory_limit="30kB"))
    weights, places = design.place(np.ones(N)), design.place(np.arange(N))
    orders = []
    for seed in (0, 0, 1):
        before, read = design.reads, design.reader.blocks_read
        batches = list(design.batches(9, np.random.default_rng(seed), weights, places))
        assert design.reads - before == pytest.approx(1)
        assert design.reader.blocks_read - read <= len(design.reader.cuts)
        for batch in batches:
            own = batch.design.gather(batch.rows[0])
            np.testing.assert_array_equal(batch.design.X, X[own])
        orders.append(np.concatenate([batch.design.gather(batch.rows[0]) for batch in batches]))
    np.testing.assert_array_equal(orders[0], orders[1])
    assert (orders[0] != orders[2]).any()
    np.testing.assert_array_equal(np.sort(orders[0]), np.arange(N))
    assert abs(np.corrcoef(orders[0], np.arange(N))[0, 1]) < 0.5


def test_sgd_does_not_read_everything_per_batch(small_blocks):
    X, y = data()
    counted = Counted(X)
    design = StreamedDesign(RowBlocks(counted, n_rows=N, memory_limit="20kB"))
    problem = Problem.of(design, y, 1e-2)
    objective = problem.objective(np.zeros(problem.shape))
    counted.starts = 0
    solver = SGD(batch_size=50).iterates(problem, None)
    next(solver)  # the start
    for epoch in range(1, 6):
        W = next(solver).W
        assert counted.starts == epoch
    assert problem.objective(W) < 0.9 * objective


def test_state_goes_to_files_that_vanish(tmp_path, small_blocks):
    X, _ = data()
    design = StreamedDesign(RowBlocks(X, state_dir=tmp_path / "state", state_dtype=np.float32))
    Z = design.zeros(K)
    assert isinstance(Z.held, np.memmap)
    assert Z.held.dtype == np.float32
    fold = design.fold(np.ones((D + 1, K)), rows.predict)
    assert isinstance(fold.new_rows.held, np.memmap)
    np.testing.assert_allclose(
        fold.new_rows.held, (X.sum(axis=1) + 1)[:, None] * np.ones(K), rtol=1e-5
    )
    assert list((tmp_path / "state").iterdir()) == []


def test_a_copy_in_another_process_reads_for_itself(tmp_path):
    X, y = data()
    np.save(tmp_path / "x.npy", X)
    design = StreamedDesign(RowBlocks(tmp_path / "x.npy"))
    gradient(design, y)
    copy = pickle.loads(pickle.dumps(design))
    assert (copy.shape, copy.reads, len(copy.reader.cache)) == ((N, D), 1, 0)
    np.testing.assert_array_equal(gradient(copy, y).product, gradient(design, y).product)


def test_an_error_in_a_block_ends_the_pass_and_the_next_one_works(small_blocks):
    X, y = data()
    fails = [True]

    def blocks():
        yield X[:300]
        if fails[0]:
            raise OSError("the disk is gone")
        yield X[300:]

    design = StreamedDesign(RowBlocks(blocks, n_rows=N, memory_limit="30kB"))
    with pytest.raises(OSError, match="the disk is gone"):
        gradient(design, y)
    fails[0] = False
    np.testing.assert_allclose(
        gradient(design, y).product, gradient(DenseDesign(X), y).product, rtol=1e-11, atol=1e-14
    )


def test_an_error_in_a_group_ends_the_pass_and_the_next_one_works(small_blocks, monkeypatch):
    X, y = data()
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: True)
    design = StreamedDesign(RowBlocks(lambda: iter(np.array_split(X, 7)), memory_limit="20kB"))
    expected = gradient(design, y).product
    run_group, calls = FusedWorker.run, []

    def failing(self, numbered):
        calls.append(numbered)
        if len(calls) == 20:
            raise MemoryError("no room for a group")
        return run_group(self, numbered)

    with monkeypatch.context() as patched, use_threads(3):
        patched.setattr(FusedWorker, "run", failing)
        with pytest.raises(MemoryError, match="no room for a group"):
            gradient(design, y)
    calls_then = len(calls)
    np.testing.assert_array_equal(gradient(design, y).product, expected)
    assert len(calls) == calls_then  # nothing of the failed pass ran on
