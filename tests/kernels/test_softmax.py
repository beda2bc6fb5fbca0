"""Softmax, cross-entropy and labels: against SciPy, for both forms of labels."""

import numpy as np
import pytest
from scipy import special

from admm_softmax.kernels.softmax import hits, label_scores, minus_labels, softmax


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e4])
def test_softmax_and_logsumexp_agree_with_scipy(scale):
    scores = np.random.default_rng(0).standard_normal((30, 7)) * scale
    P, lse = softmax(scores)
    np.testing.assert_allclose(P, special.softmax(scores, axis=1), rtol=1e-13)
    np.testing.assert_allclose(lse, special.logsumexp(scores, axis=1), rtol=1e-14)


def test_hard_labels_equal_one_hot_rows():
    rng = np.random.default_rng(1)
    scores, codes = rng.standard_normal((20, 5)), rng.integers(0, 5, 20)
    C = np.eye(5)[codes]
    for function in (label_scores, minus_labels, hits):
        np.testing.assert_allclose(function(scores, codes), function(scores, C), rtol=1e-15)


def test_arguments_are_not_written_to():
    P = np.full((3, 2), 0.5)
    minus_labels(P, np.array([0, 1, 0]))
    np.testing.assert_array_equal(P, 0.5)
