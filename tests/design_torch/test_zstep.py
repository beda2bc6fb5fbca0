"""The z-step in torch agrees with its specification and satisfies its optimality condition."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from admm_softmax.design.torch import zstep as ours  # noqa: E402
from admm_softmax.kernels import zstep as specification  # noqa: E402

pytestmark = pytest.mark.torch


def rows(scale, n=300, K=6, seed=0):
    rng = np.random.default_rng(seed)
    V, Z = scale * rng.standard_normal((2, n, K))
    return V, Z, rng.integers(0, K, n), rng.dirichlet(np.full(K, 0.3), n)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("rho", [1e-8, 3.2e-7, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("scale", [0.1, 3.0, 300.0])
def test_double_agrees_with_the_specification(rho, scale, soft):
    V, Z, codes, C = rows(scale)
    labels = C if soft else codes
    expected, P, _ = specification.zstep(V, labels, rho, Z)
    found, P_found, steps = ours.zstep(torch.tensor(V), torch.tensor(labels), rho, torch.tensor(Z))
    np.testing.assert_allclose(P_found.numpy(), P, atol=1e-9)
    size = 1.0 + np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(found.numpy() / size, expected / size, atol=1e-7)
    assert (steps >= 0).all()


@pytest.mark.parametrize("rho", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0])
def test_single_is_optimal_to_rounding(rho, scale):
    V, Z, codes, _ = rows(scale)
    V, Z = (torch.tensor(A, dtype=torch.float32) for A in (V, Z))
    found, P, _ = ours.zstep(V, torch.tensor(codes), rho, Z)
    assert found.dtype == P.dtype == torch.float32
    z, v = found.double(), V.double()
    gradient = ours.minus_labels(torch.softmax(z, dim=1), torch.tensor(codes)) + rho * (z - v)
    largest = z.abs().amax(dim=1) + rho * v.abs().amax(dim=1)
    assert (gradient.abs().amax(dim=1) <= 2e-6 * (1.0 + largest)).all()


def test_hard_rows_are_solved():
    """Far starts with tiny ρ, where Newton's own steps overshoot."""
    V, _, codes, _ = rows(1.0)
    far = 1e3 * np.random.default_rng(1).standard_normal(V.shape)
    _, P, _ = specification.zstep(V, codes, 1e-6, far)
    given = (torch.tensor(V), torch.tensor(codes), 1e-6, torch.tensor(far))
    assert ours._newton(*given)[3].any()
    np.testing.assert_allclose(ours.zstep(*given)[1].numpy(), P, atol=1e-9)
