"""A run goes on from its checkpoint to the answer of a run that was not interrupted."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from admm_softmax import ADMM, LBFGS, SGD, Chain, Problem, run
from admm_softmax.design import DenseDesign, PartitionedDesign
from admm_softmax.solvers import state
from admm_softmax.solvers.base import measured_at
from admm_softmax.solvers.least_squares import Cholesky
from admm_softmax.solvers.row_space import RowSpace
from admm_softmax.storage import bundles, checkpoints
from tests.checkpoints.small_runs import Stateless, X, Y, interrupt_at, problem, same


@pytest.mark.parametrize("kind", ["dense", "partitioned"])
def test_an_interrupted_run_goes_on(tmp_path, kind):
    if kind == "dense":
        data = problem()
    else:  # rows that are not arrays: one handle per part
        data = Problem.of(PartitionedDesign([DenseDesign(X[:7]), DenseDesign(X[7:])]), Y, 1e-3)
    solver, validation = ADMM(relaxation=1.7), Problem.of(X[:20], Y[:20])
    settings = {"max_iter": 12, "tol": 1e-9, "validation": validation}
    whole = run(data, solver, **settings)
    half = run(data, solver, checkpoint=tmp_path, callbacks=interrupt_at(5), **settings)
    assert (half.status, half.n_iter) == ("interrupted", 4)  # and the start
    result = run(data, solver, checkpoint=tmp_path, **settings)
    same(result, whole)
    # The time and the reads of both processes.
    assert (np.diff(result.history["seconds"]) > 0).all()
    assert result.history["seconds"][4] == half.history["seconds"][4]
    assert (np.diff(result.history["passes"]) > 0).all()


def test_admm_in_single_precision_goes_on_to_rounding(tmp_path):
    # A factor in single precision refines its solutions from one W-step to the next; that is
    # not kept, and begins anew.
    data = Problem.of(X.astype(np.float32), Y, 1e-1)
    solver = ADMM(relaxation=1.7, least_squares=Cholesky("single"))
    whole = run(data, solver, max_iter=12, tol=0.0)
    run(data, solver, max_iter=12, tol=0.0, checkpoint=tmp_path, callbacks=interrupt_at(5))
    result = run(data, solver, max_iter=12, tol=0.0, checkpoint=tmp_path)
    np.testing.assert_allclose(result.W, whole.W, atol=2e-6)


def test_a_run_that_has_ended_returns_at_once(tmp_path):
    data = problem()
    first = run(data, LBFGS(), checkpoint=tmp_path)
    assert first.status == "converged"
    reads, seen = data.design.reads, []
    again = run(data, LBFGS(), checkpoint=tmp_path, callbacks=seen.append)
    same(again, first)
    assert data.design.reads == reads
    assert not seen
    np.testing.assert_array_equal(again.history["seconds"], first.history["seconds"])
    (file,) = tmp_path.glob("*.npz")
    assert bundles.read(file)["content"]["state"] is None


def test_limits_may_grow(tmp_path):
    whole = run(problem(), LBFGS(), tol=1e-8)
    short = run(problem(), LBFGS(), tol=1e-8, max_iter=4, checkpoint=tmp_path)
    assert (short.status, short.n_iter) == ("iteration_limit", 4)
    same(run(problem(), LBFGS(), tol=1e-8, max_iter=4, checkpoint=tmp_path), short)
    assert run(problem(), LBFGS(), tol=1e-8, max_iter=2, checkpoint=tmp_path).n_iter == 4
    same(run(problem(), LBFGS(), tol=1e-8, checkpoint=tmp_path), whole)


def test_the_time_already_spent_counts(tmp_path):
    settings = {"tol": 0.0, "time_limit": 1e-9}
    first = run(problem(), SGD(), checkpoint=tmp_path, **settings)
    assert (first.status, first.n_iter) == ("time_limit", 0)
    assert len(run(problem(), SGD(), checkpoint=tmp_path, **settings).history) == 1
    longer = run(problem(), SGD(), checkpoint=tmp_path, tol=0.0, time_limit=1e3, max_iter=3)
    assert (longer.status, longer.n_iter) == ("iteration_limit", 3)


def test_other_ends_are_kept_as_well(tmp_path):
    stopped = run(problem(), LBFGS(), checkpoint=tmp_path / "a", callbacks=lambda iterate: True)
    assert stopped.status == "stopped"
    same(run(problem(), LBFGS(), checkpoint=tmp_path / "a"), stopped)
    diverged = run(problem(), Explodes(), checkpoint=tmp_path / "b")
    assert (diverged.status, diverged.n_iter) == ("diverged", 1)
    same(run(problem(), Explodes(), checkpoint=tmp_path / "b"), diverged)


@dataclass(frozen=True)
class Explodes:
    """One good iterate, then one that is not finite."""

    def iterates(self, data, W0):
        good = measured_at(data.at(np.zeros(data.shape)))
        yield good
        yield replace(good, objective=np.nan)


def test_a_solver_without_state_goes_on_from_w(tmp_path):
    whole = run(problem(0.1), Stateless(), tol=1e-6, max_iter=5000)
    run(problem(0.1), Stateless(), tol=1e-6, checkpoint=tmp_path, callbacks=interrupt_at(7))
    same(run(problem(0.1), Stateless(), tol=1e-6, max_iter=5000, checkpoint=tmp_path), whole)


@pytest.mark.parametrize(
    "solver",
    [
        ADMM(start="smart"),
        SGD(batch_size=20),
        Chain(ADMM(start="smart"), Stateless(), after=2),
        Chain(Stateless(), Chain(SGD(batch_size=20), LBFGS(), after=1), after=2),
        Chain(RowSpace(Stateless()), RowSpace(LBFGS()), after=1),
    ],
    ids=["ADMM", "SGD", "ADMM, stateless", "three", "row space"],
)
@pytest.mark.parametrize("number", range(1, 7))
def test_steps_are_counted_wherever_a_run_was_interrupted(tmp_path, solver, number):
    # Also at the start, and where one solver hands over to the next.
    W0 = np.random.default_rng(0).standard_normal((9, 3))
    wide = Problem.of(X.reshape(-1, 10)[:6, :8], Y[:6], 1e-1, n_classes=3)
    settings = {"W0": W0, "max_iter": 8, "tol": 0.0}
    whole = run(wide, solver, **settings)
    half = run(wide, solver, checkpoint=tmp_path, callbacks=interrupt_at(number), **settings)
    assert half.status == "interrupted"
    result = run(wide, solver, checkpoint=tmp_path, **settings)
    np.testing.assert_array_equal(result.history["iteration"], whole.history["iteration"])
    assert (result.n_iter, result.kept_iteration) == (whole.n_iter, whole.kept_iteration)
    np.testing.assert_allclose(result.W, whole.W, rtol=1e-9, atol=1e-12)


def test_a_smaller_limit_ends_a_run_that_was_beyond_it(tmp_path):
    run(problem(), LBFGS(), tol=0.0, checkpoint=tmp_path, callbacks=interrupt_at(6))
    seen = []
    settings = {"tol": 0.0, "checkpoint": tmp_path, "callbacks": seen.append}
    beyond = run(problem(), LBFGS(), max_iter=3, **settings)
    assert (beyond.status, beyond.n_iter, seen) == ("iteration_limit", 5, [])


@pytest.mark.parametrize("solver", [ADMM(), ADMM(relaxation=1.7).then(LBFGS(5, "gram"), after=9)])
def test_rows_too_large_to_store_are_made_anew(tmp_path, monkeypatch, solver):
    monkeypatch.setattr(state, "LARGEST_ROWS", 100)
    settings = {"tol": 1e-8, "max_iter": 5000, "checkpoint": tmp_path}
    run(problem(), solver, callbacks=interrupt_at(6), **settings)
    (file,) = tmp_path.glob("*.npz")
    assert file.stat().st_size < 20_000
    stored = bundles.read(file)["content"]["state"]
    assert stored.get("inner", stored)["Z"] is None
    result = run(problem(), solver, **settings)
    assert result.status == "converged"
    np.testing.assert_allclose(result.W, run(problem(), LBFGS(), tol=1e-9).W, atol=1e-5)


def test_writes_are_as_far_apart_as_asked_for(tmp_path, writes, monkeypatch):
    first = run(problem(), LBFGS(), checkpoint=tmp_path / "a", checkpoint_every=0)
    assert len(writes) == len(first.history)
    writes.clear()
    run(problem(), LBFGS(), checkpoint=tmp_path / "b", checkpoint_every=1e6)
    assert len(writes) == 1
    writes.clear()
    now = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])

    def tick(iterate):
        now[0] += 1.0

    run(problem(), LBFGS(), checkpoint=tmp_path / "c", checkpoint_every=3, callbacks=tick)
    assert len(writes) == first.n_iter // 3 + 1
