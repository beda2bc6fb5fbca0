"""A file of several times the memory that the process may take gives the fit in memory."""

import os
import subprocess
import sys

import numpy as np
import pytest

from admm_softmax.design import Design
from tests.sources.capped_fit import SOLVERS, fit

# The slack is for what is not the library's: arenas of threads, and BLAS's own buffers.
LIMIT, SLACK = 48 << 20, 80 << 20
N, D, K = 68_000, 800, 3


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA bounds maps on Linux")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_under_a_hard_cap(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D), dtype=np.float32)
    y = (X[:, :K] + rng.gumbel(size=(N, K))).argmax(axis=1)
    for name, array in {"x": X, "y": y, "small": X[:2000]}.items():
        np.save(tmp_path / f"{name}.npy", array)
    assert X.nbytes >= 4 * LIMIT
    assert X.nbytes > LIMIT + SLACK
    command = [sys.executable, "-m", "tests.sources.capped_fit", tmp_path, LIMIT, SLACK]
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "does not fit" in done.stdout
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: True)
    for name in SOLVERS:
        expected = fit(X, y, name).coef_
        found = np.load(tmp_path / f"{name}.npy")
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
