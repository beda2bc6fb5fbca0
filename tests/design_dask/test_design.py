"""`DaskDesign` keeps the contract, and its passes are those of one machine."""

import gc
import itertools
import pickle

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from dask import delayed

from admm_softmax import ADMM, LBFGS, NewtonCG, Problem, as_design, run
from admm_softmax._parallel import thread_count
from admm_softmax.contracts import check_design
from admm_softmax.design import Design
from admm_softmax.design.dask import DaskDesign, tasks
from admm_softmax.kernels import rows
from admm_softmax.kernels.row_kernel import RowKernel
from tests.problems import make

N, D, K = 217, 9, 3


def cut(count, n=N, seed=0):
    """Lengths of so many chunks: uneven, and every third of them empty if there are enough."""
    rng = np.random.default_rng(seed)
    full = count - count // 3
    cuts = np.sort(rng.choice(np.arange(1, n), full - 1, replace=False))
    lengths = list(np.diff([0, *cuts, n]))
    for i in range(count // 3):
        lengths.insert(3 * i, 0)
    return tuple(int(length) for length in lengths)


def as_dask(array, lengths):
    return da.from_array(array, chunks=(lengths, *array.shape[1:]))


def test_the_contract_on_partitions_of_several_kinds(client):
    def factory(X, intercept):
        kinds = [np.asarray, sp.csr_array, sp.csr_matrix, np.asfortranarray]
        cuts = np.split(X, [5, 6, 6, 40])
        pieces = [delayed(kinds[i % 4](part)) for i, part in enumerate(cuts)]
        return DaskDesign(pieces, intercept=intercept)

    check_design(factory)


@pytest.mark.parametrize("count", [1, 2, 5, 17])
def test_any_partition_gives_the_result_of_one_machine(client, count):
    X, y = make(N, D, K)
    w = np.random.default_rng(1).random(N)
    design = DaskDesign(as_dask(X, cut(count)))
    assert design.n_rows == N
    here = Problem.of(X, y, 1e-2, sample_weight=w)
    there = Problem.of(design, y, 1e-2, sample_weight=w)
    for solver, steps in [
        (ADMM(rho=0.05, relaxation=1.7), 6),
        (NewtonCG(preconditioner="gram"), 6),
    ]:
        expected = run(here, solver, max_iter=steps, tol=1e-13).W
        found = run(there, solver, max_iter=steps, tol=1e-13).W
        assert np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()


def test_compiled_passes_run_on_the_workers(client, monkeypatch):
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: True)
    X, y = make(500, D, K)
    W = np.random.default_rng(0).standard_normal((D + 1, K))
    there = Problem.of(DaskDesign(as_dask(X, (123, 377))), y, 1e-2).at(W)
    here = Problem.of(X, y, 1e-2).at(W)
    np.testing.assert_allclose(there.gradient, here.gradient, rtol=1e-12, atol=1e-15)


def test_samples_do_not_depend_on_the_partition(client):
    X, _ = make(N, D, K)
    w = (np.arange(N) % 3 > 0) / N
    here, there = as_design(X), DaskDesign(as_dask(X, cut(5)))
    expected = here.drawn(40, 7, here.place(w))
    placed = there.place(w)
    np.testing.assert_array_equal(there.drawn(40, 7, placed), expected)
    sample = there.sample(40, 7, placed, placed)
    np.testing.assert_array_equal(sample.design.X, X[expected])
    np.testing.assert_array_equal(sample.design.gather(sample.rows[0]), w[expected])


def test_batches_are_even_and_hold_every_row_once(client):
    X, _ = make(N, D, K)
    design = DaskDesign(as_dask(X, cut(5)))
    numbers = design.place(np.arange(N) + 1.0)
    batches = list(design.batches(6, np.random.default_rng(0), numbers, numbers))
    found = [batch.design.gather(batch.rows[0]).astype(int) - 1 for batch in batches]
    assert {len(batch) for batch in found} == {36, 37}
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(N))
    for batch, own in zip(batches, found, strict=True):
        np.testing.assert_array_equal(batch.design.X, X[own])
    assert design.reads == pytest.approx(1)


def test_values_of_their_own_reach_the_parts(client):
    design = DaskDesign(as_dask(make(N, D, K)[0], (100, 0, 117)))
    ones = design.place(np.ones(N))
    assert design.per_part(len, ones) == [100, 117]
    scaled = design.map_parts(lambda value, block: value * block, [2.0, 3.0], ones)
    np.testing.assert_array_equal(design.gather(scaled), np.repeat([2.0, 3.0], [100, 117]))
    memory = as_design(np.ones((4, 1)))
    mapped = memory.map_parts(np.multiply, [5.0], memory.place(np.ones(4)))
    np.testing.assert_array_equal(memory.gather(mapped), np.full(4, 5.0))
    assert memory.per_part(len, mapped) == [4]


@pytest.mark.parametrize(("share", "threads"), [(1, 2), (2, 1), (5, 1)])
def test_a_task_uses_its_share_of_the_workers_threads(client, share, threads):
    def count():
        with tasks._threads(share):
            return thread_count()

    assert client.submit(count, pure=False).result() == threads


def test_kernels_travel_by_name():
    kernel = rows.admm.bind(rho=0.1, relaxation=1.0, dual_is_zero=0.0)
    sent = pickle.dumps(kernel)
    assert len(sent) < 200
    assert pickle.loads(sent) == kernel
    assert pickle.loads(pickle.dumps(rows.gradient)) is rows.gradient
    assert kernel.remaker is rows.predict
    assert rows.linearise.remaker is rows.linearise


def twice(scores):
    return None, 2 * scores, np.zeros(0)


def test_a_kernel_of_ones_own_runs_on_the_workers(client):
    X, _ = make(N, D, K)
    design = DaskDesign(as_dask(X, (100, 117)), intercept=False)
    W = np.random.default_rng(0).standard_normal((D, K))
    fold = design.fold(W, RowKernel("twice", twice, new_rows=1))
    np.testing.assert_allclose(design.gather(fold.new_rows), 2 * X @ W, rtol=1e-12, atol=1e-14)


def tasks_known(client):
    gc.collect()  # futures in reference cycles are released when Python collects them
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_the_scheduler_stays_flat_over_200_iterations(new_client):
    X, y = make(60, 4, K)
    problem = Problem.of(DaskDesign(as_dask(X, (25, 35))), y, 1e-2)
    known, memory, seen = [], [], itertools.count()

    def note(iterate):
        if next(seen) % 8 == 0:  # counting collects Python's garbage first, which takes long
            memory.append(rss())
            known.append(tasks_known(new_client))

    run(problem, ADMM(rho=0.05), max_iter=200, tol=0, callbacks=note)
    assert len(known) == 26  # the start, and every eighth of 200 steps
    # What is alive: the partitions, labels, weights, one or two generations of Z, one pass.
    # A count may come before the scheduler has heard of what was released: hence medians.
    assert np.median(known[13:]) <= np.median(known[1:8])
    assert max(known) < 60
    assert max(memory[-5:]) - max(memory[5:10]) < 50 << 20


@pytest.mark.parametrize("solver", [LBFGS(preconditioner="gram"), NewtonCG(10, 1e-12)], ids=str)
def test_other_solvers_leave_nothing_behind(new_client, solver):
    X, y = make(60, 4, K)
    problem = Problem.of(DaskDesign(as_dask(X, (25, 35))), y, 1e-2)
    known = []
    result = run(
        problem,
        solver,
        max_iter=6,
        tol=0,
        callbacks=lambda _: known.append(tasks_known(new_client)),
    )
    assert result.history["passes"][-1] >= 6
    assert max(known) < 40
