"""Softmax, cross-entropy and labels on a block of rows.

Labels come in two forms and every function here takes both: class codes of shape (b,)
for hard labels, so that K = 1000 classes cost eight bytes per row and not eight thousand,
or a (b, K) block of probabilities for soft ones.
"""

from __future__ import annotations

import numpy as np

from admm_softmax._arrays import Array, Labels


def softmax(scores: Array) -> tuple[Array, Array]:
    """Return P = softmax(scores) row by row, and the row's logsumexp.

    >>> P, lse = softmax(np.zeros((1, 4)))
    >>> P
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    top = scores.max(axis=1, keepdims=True)
    P = np.exp(scores - top)
    total = P.sum(axis=1, keepdims=True)
    P /= total
    return P, (np.log(total) + top)[:, 0]


def log_softmax(scores: Array) -> Array:
    """The logarithm of `softmax(scores)`, without underflow."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    logarithms: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logarithms


def label_scores(scores: Array, labels: Labels) -> Array:
    """Return cᵢ · scoresᵢ for every row."""
    if labels.ndim == 1:
        return np.asarray(scores[np.arange(len(scores)), labels])
    return np.asarray(np.einsum("ij,ij->i", scores, labels))


def minus_labels(P: Array, labels: Labels) -> Array:
    """Return P − C as a new array."""
    if labels.ndim == 2:
        return np.asarray(P - labels, dtype=np.float64)
    R = P.copy()
    R[np.arange(len(R)), labels] -= 1.0
    return R


def hits(scores: Array, labels: Labels) -> Array:
    """Return 1.0 where the largest score is at the (most probable) label, else 0.0."""
    truth = labels if labels.ndim == 1 else labels.argmax(axis=1)
    return np.asarray(scores.argmax(axis=1) == truth, dtype=np.float64)
