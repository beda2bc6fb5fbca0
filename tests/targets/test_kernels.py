"""Kernels of many targets: what they compute, and their compiled twins."""

import numpy as np
import pytest

from admm_softmax.kernels import rows
from admm_softmax.kernels.compiled import programs
from admm_softmax.kernels.targets import kernel_of


def block(n_classes, n_targets=4, b=131, scale=8.0, seed=0):
    """Scores, C, codes and weights; a fifth of the labels is missing."""
    rng = np.random.default_rng(seed)
    weights = rng.random((b, n_targets)) * (rng.random((b, n_targets)) < 0.8)
    codes = rng.integers(0, n_classes, (b, n_targets))
    if n_classes == 2:
        return (
            scale * rng.standard_normal((b, n_targets)),
            weights * (2 * codes - 1),
            codes,
            weights,
        )
    C = np.zeros((b, n_targets, n_classes))
    np.put_along_axis(C, codes[..., None], weights[..., None], axis=2)
    scores = scale * rng.standard_normal((b, n_targets * n_classes))
    return scores, C.reshape(b, -1), codes, weights


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_each_target_is_a_softmax_regression(n_classes):
    scores, C, codes, weights = block(n_classes)
    R, new, sums = kernel_of(4, n_classes)(scores, C)
    assert new is None
    width = 1 if n_classes == 2 else n_classes
    for t in range(4):
        own = scores[:, t * width : (t + 1) * width]
        full = np.concatenate([-own / 2, own / 2], axis=1) if n_classes == 2 else own
        R_one, _, expected = rows.gradient(full, codes[:, t], weights[:, t])
        found = R[:, t * width : (t + 1) * width]
        np.testing.assert_allclose(found, R_one[:, 1:] if n_classes == 2 else R_one, atol=1e-14)
        loss, curvature, hits = sums[t], sums[4 + t], sums[8 + t]
        np.testing.assert_allclose(loss, expected[0], rtol=1e-12)
        np.testing.assert_allclose(hits, expected[1], rtol=1e-12)
        np.testing.assert_allclose(curvature, expected[2], rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
def test_the_twins_agree(n_classes, scale):
    scores, C, _, _ = block(n_classes, scale=scale)
    scores[0] = 0.0
    kernel = kernel_of(4, n_classes)
    R, _, sums = kernel(scores, C)
    R_twin, _, sums_twin = programs.run(kernel, scores, C)
    np.testing.assert_allclose(R_twin, R, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(sums_twin, sums, rtol=1e-12, atol=1e-14)
