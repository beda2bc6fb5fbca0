"""The source of compiled row kernels, run as Python: the same as the specification.

What a machine compiles can be right where the source is not, and the other way round; and a
measurement of coverage sees Python only.
"""

from __future__ import annotations

import numpy as np
import pytest

from admm_softmax.kernels import rows
from admm_softmax.kernels.compiled import layout
from admm_softmax.kernels.compiled import rows as twins
from admm_softmax.kernels.row_kernel import RowKernel
from admm_softmax.kernels.zstep import zstep
from tests.kernels.as_python import LANES, as_python, twin_of
from tests.problems import assert_close

K, T, COUNT = 4, 2 * LANES, 2 * LANES - 3


def tile(rows):
    """Rows as a tile: classes down, rows across, zero from COUNT on."""
    out = np.zeros((rows.shape[1], T))
    out[:, :COUNT] = rows.T
    return out


def run_twin(kernel, scores, inputs):
    """R, new rows and sums of the compiled kernel's source."""
    codes = inputs.get("labels", np.zeros(COUNT, int))
    C = np.eye(K)[codes] if codes.ndim == 1 else codes
    w = np.zeros(T)
    w[:COUNT] = inputs.get("weights", 0.0)
    lane = np.zeros((layout.ROOM + layout.INPUT_LANES, T))
    lane[layout.CODED] = codes.ndim == 1
    lane[layout.TRUTH, :COUNT] = C.argmax(axis=1)
    R, new = np.zeros((max(kernel.results, 1) * K, T)), np.zeros((K, T))
    sums = np.zeros(max(len(kernel.sums), 8))
    state = inputs.get("state", np.zeros((COUNT, K)))
    twin_of(kernel)(
        np.array(kernel.values), tile(scores), tile(C), w, tile(state), COUNT,
        np.zeros((layout.WORK, K, T)), lane, R, new, sums,
    )  # fmt: skip
    return R[:, :COUNT].T, new[:, :COUNT].T, sums[: len(kernel.sums)]


KERNELS = {
    name: kernel
    for name, kernel in vars(rows).items()
    if isinstance(kernel, RowKernel) and kernel.twin and kernel.twin.startswith(twins.__name__)
}
SETTINGS = {"rho": 0.3, "relaxation": 1.6, "dual_is_zero": 0.0}


@pytest.mark.parametrize("soft", [False, True], ids=["codes", "soft labels"])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_source_of_a_twin_is_its_kernel(name, soft):
    rng = np.random.default_rng(0)
    kernel = KERNELS[name]
    if kernel.settings:
        kernel = kernel.bind(**{setting: SETTINGS[setting] for setting in kernel.settings})
    scores = 3 * rng.standard_normal((COUNT, K))
    labels = rng.dirichlet(np.ones(K), COUNT) if soft else rng.integers(0, K, COUNT)
    state = rng.dirichlet(np.ones(K), COUNT)
    every = {"labels": labels, "weights": rng.random(COUNT), "state": state}
    inputs = {key: every[key] for key in kernel.inputs}
    R, new, sums = kernel(scores, *inputs.values())
    R_twin, new_twin, sums_twin = run_twin(kernel, scores, inputs)
    if kernel.results:
        assert_close(R_twin, R, 1e-12)
    if kernel.new_rows:
        assert_close(new_twin, new, 1e-12)
    # Newton steps are counted alike but for rows at the edge of rounding.
    keep = [i for i, sum_ in enumerate(kernel.sums) if sum_ != "newton_steps"]
    assert_close(sums_twin[keep], np.asarray(sums)[keep], 1e-12)


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.1, 10.0])
def test_the_source_of_the_z_step_solves_hard_rows_too(rho):
    from admm_softmax.kernels.compiled.zstep import solve_tile

    rng = np.random.default_rng(1)
    V, codes = 30 * rng.standard_normal((COUNT, K)), rng.integers(0, K, COUNT)
    expected, P, _ = zstep(V, codes, rho, np.zeros((COUNT, K)))
    Z, out = tile(np.zeros((COUNT, K))), np.zeros((K, T))
    with np.errstate(all="ignore"):
        as_python(solve_tile)(
            tile(V), tile(np.eye(K)[codes]), rho, Z, out, False, COUNT, np.zeros((3, K, T)),
            np.zeros((9, T)),
        )  # fmt: skip
    # In p, which the solution is judged by: z itself is only known to rounding over ρ.
    np.testing.assert_allclose(out[:, :COUNT].T, P, atol=1e-10)
    assert np.isfinite(expected).all()
