"""Row kernels for many targets on the same rows: columns of W belong to targets of their own.

The state C (b × columns) holds each target's labels, multiplied by its weights, so that every
target may have rows, weights and missing labels of its own. Sums are of each target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.kernels.row_kernel import Outcome, RowKernel
from admm_softmax.kernels.softmax import softmax

_TWINS = "admm_softmax.kernels.compiled.targets"
#: The sums of each target; all targets' first ones come first.
SUMS = ("loss", "curvature", "hits")


def two_class_rows(scores: Array, C: Array) -> Outcome:
    """T targets of two classes with one column each, cᵢₜ = ± the weight of a row, 0 for none.

    With m = sign(c) s ::

        loss  Σᵢ |c| log(1 + e⁻ᵐ)        R = −c σ(−m)
        curvature  Σᵢ |c| σ(m) σ(−m)     hits  Σᵢ |c| [the sign of s is that of c]
    """
    weights, margins = np.abs(C), np.where(C > 0, scores, -scores)
    e = np.exp(-np.abs(margins))
    inverse = 1.0 / (1.0 + e)
    of_other = np.where(margins > 0, e * inverse, inverse)
    loss = weights * (np.log1p(e) + np.maximum(-margins, 0.0))
    curvature = weights * e * inverse**2
    # A score of zero is of the first class, as in `predict`.
    hits = weights * ((scores > 0) == (C > 0))
    sums = np.concatenate([part.sum(axis=0) for part in (loss, curvature, hits)])
    return -C * of_other, None, sums


def softmax_rows(scores: Array, C: Array, *, width: float) -> Outcome:
    """Targets of `width` classes with as many columns each; cᵢ is a weight times a unit vector.

    With w = Σ_k c_k and P the softmax over a target's columns ::

        loss  Σᵢ w logsumexp(s) − c·s    R = w P − C
        curvature  Σᵢ w mean_k p(1−p)    hits  Σᵢ w [the largest score is at the label]
    """
    b, k = len(scores), int(width)
    P, lse = softmax(scores.reshape(-1, k))
    labels = C.reshape(-1, k)
    w = labels.sum(axis=1)
    loss = w * lse - np.einsum("ij,ij->i", labels, scores.reshape(-1, k))
    curvature = w * (1.0 - np.einsum("ij,ij->i", P, P)) / k
    found = labels[np.arange(len(w)), scores.reshape(-1, k).argmax(axis=1)]
    sums = [part.reshape(b, -1).sum(axis=0) for part in (loss, curvature, found)]
    return (w[:, None] * P - labels).reshape(b, -1), None, np.concatenate(sums)


def kernel_of(n_targets: int, n_classes: int) -> RowKernel:
    """The kernel for so many targets of so many classes.

    >>> kernel_of(2, 2).sums
    ('loss 0', 'loss 1', 'curvature 0', 'curvature 1', 'hits 0', 'hits 1')
    """
    two = n_classes == 2
    facts: dict[str, Any] = {
        "inputs": ("state",),
        "results": 1,
        "sums": tuple(f"{name} {t}" for name in SUMS for t in range(n_targets)),
    }
    if two:
        return RowKernel("two_class_rows", two_class_rows, twin=f"{_TWINS}:two_class_rows", **facts)
    kernel = RowKernel(
        "softmax_rows",
        softmax_rows,
        twin=f"{_TWINS}:softmax_rows",
        settings=("width",),
        **facts,
    )
    return kernel.bind(width=float(n_classes))
