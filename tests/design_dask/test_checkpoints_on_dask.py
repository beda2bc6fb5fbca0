"""Checkpoints of fits on a cluster: killed clients and workers, what is refused, full disks."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

from admm_softmax import ADMM, LBFGS, SoftmaxRegression, run
from admm_softmax.solvers import identity
from tests.checkpoints.going_on import assert_goes_on_without_a_folder, assert_paths_and_folds_go_on
from tests.checkpoints.small_runs import interrupt_at
from tests.design_dask.test_failures import holders, kill
from tests.killed_on_dask import SOLVERS, D, K, N, answer, problem_on
from tests.problems import make

ROOT = Path(__file__).parents[2]
X, Y = make(N, D, K)


def test_clients_that_are_killed_go_on(processes, tmp_path):
    random = np.random.default_rng(0)
    address = processes.scheduler.address
    for case in SOLVERS:
        expected = answer(processes, case, tmp_path / f"{case}-whole")
        folder = tmp_path / case
        moment = random.integers(2, 5), random.integers(1, 2000)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.killed_on_dask",
                address,
                folder,
                case,
                *map(str, moment),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert (folder / "fit.npz").exists()
        found = answer(processes, case, folder)
        assert (found.status, found.n_iter) == (expected.status, expected.n_iter)
        # The order of summation is the same; but partitions that have moved to other workers lie
        # otherwise in memory, and BLAS may round otherwise there.
        np.testing.assert_allclose(found.W, expected.W, rtol=1e-10, atol=1e-12, err_msg=case)
        np.testing.assert_allclose(
            found.history["objective"], expected.history["objective"], rtol=1e-12, atol=0
        )


def test_a_worker_and_then_the_client_are_lost(processes, tmp_path):
    solver = ADMM(rho=0.2, relaxation=1.7, gradient_every=1)
    settings = {"tol": 1e-5, "max_iter": 200, "checkpoint": tmp_path, "checkpoint_every": 0}
    seen = []

    def lose(iterate):
        seen.append(iterate)
        if len(seen) == 4:
            kill(processes, holders(processes, "item")[0])
        if len(seen) == 6:
            raise KeyboardInterrupt

    half = run(problem_on(processes, 0.1), solver, callbacks=lose, **settings)
    assert half.status == "interrupted"
    result = run(problem_on(processes, 0.1), solver, **settings)
    assert result.status == "converged"
    expected = run(problem_on(processes, 0.1), LBFGS(preconditioner="gram"), tol=1e-9)
    np.testing.assert_allclose(result.W, expected.W, rtol=0, atol=1e-3)


def test_other_data_settings_and_versions_are_refused(client, tmp_path, monkeypatch):
    def fit(X, y, **settings):
        return SoftmaxRegression(**{"alpha": 0.1, "checkpoint": tmp_path / "c", **settings}).fit(
            X, y
        )

    dX, dy = da.from_array(X, chunks=(100, -1)), da.from_array(Y, chunks=100)
    first = fit(dX, dy)
    np.testing.assert_array_equal(fit(dX, dy).coef_, first.coef_)
    with pytest.raises(ValueError, match="y: other values than before"):
        fit(dX, da.from_array(np.roll(Y, 1), chunks=100))
    with pytest.raises(ValueError, match="X: other values than before"):
        fit(dX + 1.0, dy)
    with pytest.raises(ValueError, match=re.escape("partitions was [100, 100, 40], is [240] now")):
        fit(dX.rechunk((N, -1)), dy.rechunk(N))
    with pytest.raises(ValueError, match=re.escape("alpha was 0.1, is 0.2 now")):
        fit(dX, dy, alpha=0.2)
    with pytest.raises(ValueError, match=r"rows was 240, is 200 now"):
        fit(dX[:200], dy[:200])
    with pytest.raises(ValueError, match=r"partitions was .*, is not given now"):
        fit(X, Y)
    monkeypatch.setattr(identity, "__version__", "9.9")
    with pytest.raises(ValueError, match=re.escape("version was ") + ".*, is 9.9 now"):
        fit(dX, dy)


def test_paths_and_cross_validation_go_on(client, tmp_path):
    dX, dy = da.from_array(X, chunks=(100, -1)), da.from_array(Y, chunks=100)
    assert_paths_and_folds_go_on(dX, dy, dX, tmp_path)


# Old versions of NumPy leave the file that they could not write to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_full_disk_or_no_folder_warns_and_the_fit_goes_on(client, tmp_path):
    assert_goes_on_without_a_folder(problem_on(client), ADMM(rho=0.2), tmp_path)


def test_an_interrupted_fit_goes_on(client, tmp_path):
    whole = run(problem_on(client), SOLVERS["admm"], max_iter=9, tol=0.0)
    settings = {"max_iter": 9, "tol": 0.0, "checkpoint": tmp_path}
    run(problem_on(client), SOLVERS["admm"], callbacks=interrupt_at(5), **settings)
    result = run(problem_on(client), SOLVERS["admm"], **settings)
    np.testing.assert_array_equal(result.W, whole.W)
