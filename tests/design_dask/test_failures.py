"""Workers die in the middle of a fit, and the fit ends with the right answer."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from dask import delayed
from distributed import wait
from distributed.diagnostics.plugin import SchedulerPlugin

from admm_softmax import ADMM, LBFGS, NewtonCG, Problem, run
from admm_softmax.design.dask import DaskDesign
from admm_softmax.kernels import rows
from admm_softmax.kernels.row_kernel import RowKernel
from tests.problems import make

N, D, K, PARTS = 240, 6, 3, 4
ALPHA = 0.1


def chunk(p):
    """A partition that a worker can make whenever it is needed."""
    return np.split(make(N, D, K)[0], PARTS)[p]


def problem_on(client):
    design = DaskDesign([delayed(chunk)(p) for p in range(PARTS)], client=client)
    _, y = make(N, D, K)
    problem = Problem.of(design, y, ALPHA)
    wait([*design.parts, *problem.labels.held.futures, *problem.weights.held.futures])
    return problem


@pytest.fixture(scope="module")
def solution():
    X, y = make(N, D, K)
    return run(Problem.of(X, y, ALPHA), NewtonCG(preconditioner="gram"), tol=1e-10).W


def holders(client, name):
    """The workers that hold results of such tasks, those with most of them first."""
    found = client.who_has().items()
    counts = Counter(where for key, held in found if name in str(key) for where in held)
    return [where for where, _ in counts.most_common()]


def kill(client, address):
    """End a worker's process at once, and wait until the scheduler knows."""
    pid = client.run(os.getpid, workers=[address])[address]
    os.kill(pid, signal.SIGKILL)
    client.run_on_scheduler(gone, address)


class Removal(SchedulerPlugin):
    """An event that is set when the scheduler removes a worker."""

    def __init__(self, address):
        self.address, self.event = address, asyncio.Event()

    def remove_worker(self, scheduler, worker, **details):
        if worker == self.address:
            self.event.set()


async def gone(address, dask_scheduler):
    """Return when the scheduler, in whose loop this runs, no longer has this worker."""
    removal = Removal(address)
    dask_scheduler.add_plugin(removal, name=address)
    if address in dask_scheduler.workers:
        await removal.event.wait()
    dask_scheduler.remove_plugin(name=address)


def killing(client, at, name="make-part"):
    """A callback that kills a holder of such results after some iteration."""
    seen = []

    def callback(iterate):
        seen.append(iterate)
        if len(seen) == at:
            kill(client, holders(client, name)[0])

    callback.seen = seen
    return callback


def test_a_worker_that_a_nanny_restarts(processes, solution):
    callback = killing(processes, at=2)
    solver = LBFGS(preconditioner="gram")
    result = run(problem_on(processes), solver, tol=1e-9, callbacks=callback)
    assert result.status == "converged"
    assert len(callback.seen) > 2
    np.testing.assert_allclose(result.W, solution, rtol=0, atol=1e-7)


def test_the_worker_with_the_newest_row_state(processes, solution, caplog):
    callback = killing(processes, at=5, name="item")
    solver = ADMM(rho=0.2, relaxation=1.7, gradient_every=1)
    result = run(problem_on(processes), solver, tol=1e-7, max_iter=100, callbacks=callback)
    assert result.status == "converged"
    assert "of the rows of admm were lost and are made again" in caplog.text
    np.testing.assert_allclose(result.W, solution, rtol=0, atol=1e-5)


def test_row_state_that_is_rebuilt_is_z_at_the_current_w(processes):
    X, y = make(N, D, K)
    design = problem_on(processes).design
    labels, w = design.place(y), design.place(np.full(N, 1 / N))
    W = np.random.default_rng(0).standard_normal((D + 1, K))
    kernel = rows.admm.bind(rho=0.05, relaxation=1.0, dual_is_zero=1.0)
    Z = design.fold(W, kernel, (labels, w, design.zeros(K))).new_rows
    P = design.fold(W, rows.linearise, (labels, w)).new_rows
    wait([*Z.held.futures, *P.held.futures])
    expected = design.gather(Z), design.gather(P)
    where = processes.who_has(Z.held.futures)
    victim = where[Z.held.futures[0].key][0]
    lost = [p for p, f in enumerate(Z.held.futures) if where[f.key] == (victim,)]
    assert lost
    kill(processes, victim)
    scores = np.split(np.column_stack([X, np.ones(N)]) @ W, PARTS)
    found = np.split(design.gather(Z), PARTS)
    for p in range(PARTS):
        rebuilt = scores[p] if p in lost else np.split(expected[0], PARTS)[p]
        np.testing.assert_allclose(found[p], rebuilt, rtol=0, atol=1e-12)
    # P depends on W alone, and comes back as it was.
    np.testing.assert_allclose(design.gather(P), expected[1], rtol=0, atol=1e-14)


def die_once(flag, scores, labels, weights):
    if not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return rows.gradient(scores, labels, weights)


class DieOnce:
    """A row kernel whose first block ends its worker."""

    def __init__(self, flag):
        self.flag = str(flag)
        self.__name__ = "die_once"

    def __call__(self, scores, labels, weights):
        return die_once(self.flag, scores, labels, weights)


def test_a_worker_that_dies_in_the_middle_of_a_pass(processes, tmp_path):
    problem = problem_on(processes)
    kernel = RowKernel(
        "die_once",
        DieOnce(tmp_path / "dead"),
        inputs=("labels", "weights"),
        results=1,
        sums=rows.gradient.sums,
    )
    W = np.random.default_rng(0).standard_normal((D + 1, K))
    found = problem.design.fold(W, kernel, (problem.labels, problem.weights))
    assert (tmp_path / "dead").exists()
    X, y = make(N, D, K)
    expected = Problem.of(X, y, ALPHA).at(W)
    np.testing.assert_allclose(found.product, expected.loss_gradient, rtol=1e-11, atol=1e-13)


def test_a_worker_that_is_lost_for_good(processes, solution):
    address = processes.scheduler.address
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options = ["--nthreads=1", "--host=127.0.0.1", "--no-dashboard", "--name=alone"]
    worker = subprocess.Popen([*command, *options], **quiet)
    try:
        processes.wait_for_workers(3, timeout=120)
        problem = problem_on(processes)
        pids = {pid: where for where, pid in processes.run(os.getpid).items()}
        alone = pids[worker.pid]
        assert alone in holders(processes, "make-part")
        seen = []

        def callback(iterate):
            seen.append(iterate)
            if len(seen) == 4:
                kill(processes, alone)

        solver = ADMM(rho=0.2, gradient_every=1)
        result = run(problem, solver, tol=1e-6, max_iter=100, callbacks=callback)
    finally:
        worker.kill()
        worker.wait()
    assert alone not in processes.nthreads()
    assert result.status == "converged"
    np.testing.assert_allclose(result.W, solution, rtol=0, atol=1e-4)


def test_data_that_lived_on_the_lost_worker_alone_are_named(processes):
    victim, other = sorted(processes.nthreads())
    X, _ = make(N, D, K)
    pieces = [
        processes.scatter(part, workers=[where], hash=False)
        for part, where in zip(np.split(X, 2), (other, victim), strict=True)
    ]
    design = DaskDesign(pieces, client=processes)
    del pieces
    W = np.zeros((D + 1, K))
    design.fold(W, rows.predict)
    holder = processes.who_has([design.parts[1]])[design.parts[1].key]
    kill(processes, *holder)
    with pytest.raises(RuntimeError, match=r"partition 1 of X was lost .* no recipe"):
        design.fold(W, rows.predict)
