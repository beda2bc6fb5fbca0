"""Small data of every kind: dense, sparse, weighted, soft labels, wide, folds, float32, large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax import Problem, operators


def arrays(n: int, d: int, K: int, *, seed: int, density: float | None = None) -> tuple[Any, Any]:
    """Rows on several scales, and noisy labels that depend on them; CSR with a density."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 2.0, d)
    scores = X @ rng.standard_normal((d, K)) / np.sqrt(d)
    labels = (scores + rng.gumbel(size=(n, K))).argmax(axis=1)
    labels[:K] = np.arange(K)
    if density is not None:
        X = sp.csr_array(np.where(rng.random((n, d)) < density, X, 0.0))
    return X, labels


def weights(n: int, *, seed: int) -> Any:
    """Sample weights, a few of them zero."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.15, 0.0, rng.uniform(0.2, 3.0, n))


def soft_labels(n: int, K: int, *, seed: int) -> Any:
    """Rows of the simplex, most of them close to a corner."""
    C = np.random.default_rng(seed).random((n, K)) ** 4
    return C / C.sum(axis=1, keepdims=True)


def normal(shape: tuple[int, int], *, seed: int) -> Any:
    """A W_ref or a W₀."""
    return 0.3 * np.random.default_rng(seed).standard_normal(shape)


def _dense() -> Problem:
    return Problem.of(*arrays(120, 8, 4, seed=1), 1e-2)


def _fortran() -> Problem:
    X, labels = arrays(110, 9, 3, seed=2)
    return Problem.of(np.asfortranarray(X), labels, 1e-2)


def _binary() -> Problem:
    return Problem.of(*arrays(80, 5, 2, seed=3), 1e-2)


def _blocks() -> Problem:
    """More than a megabyte: several blocks of rows, whose sums are added up."""
    return Problem.of(*arrays(3000, 60, 3, seed=4), 1e-2)


def _sparse() -> Problem:
    return Problem.of(*arrays(150, 30, 3, seed=5, density=0.2), 1e-2)


def _weighted() -> Problem:
    X, labels = arrays(100, 6, 3, seed=6)
    return Problem.of(X, labels, 1e-2, sample_weight=weights(100, seed=60))


def _sparse_weighted() -> Problem:
    X, labels = arrays(140, 20, 4, seed=7, density=0.25)
    return Problem.of(X, labels, 1e-2, sample_weight=weights(140, seed=70))


def _soft() -> Problem:
    X, _ = arrays(90, 7, 4, seed=8)
    return Problem.of(X, soft_labels(90, 4, seed=80), 1e-2)


def _sparse_soft() -> Problem:
    X, _ = arrays(130, 16, 3, seed=9, density=0.3)
    labels, s = soft_labels(130, 3, seed=90), weights(130, seed=91)
    return Problem.of(X, labels, 1e-2, sample_weight=s)


def _operator() -> Problem:
    """A nonsingular L that is not diagonal, and a reference."""
    X, labels = arrays(100, 12, 3, seed=10)
    L, W_ref = operators.laplacian(12), normal((13, 3), seed=100)
    return Problem.of(X, labels, 1e-2, operator=L, reference=W_ref)


def _gradient() -> Problem:
    """A singular L, with sparse rows."""
    X, labels = arrays(120, 12, 3, seed=11, density=0.5)
    W_ref = normal((13, 3), seed=110)
    return Problem.of(X, labels, 1e-2, operator=operators.gradient((3, 4)), reference=W_ref)


def _no_intercept() -> Problem:
    return Problem.of(*arrays(90, 7, 3, seed=12), 1e-2, intercept=False)


def _penalised() -> Problem:
    X, labels = arrays(100, 10, 3, seed=13)
    s = weights(100, seed=130)
    return Problem.of(X, labels, 1e-2, sample_weight=s, penalize_intercept=True)


def _wide() -> Problem:
    return Problem.of(*arrays(40, 90, 3, seed=14), 1e-1)


def _wide_sparse() -> Problem:
    X, labels = arrays(40, 100, 3, seed=15, density=0.3)
    return Problem.of(X, labels, 1e-1, operator=operators.laplacian((10, 10)))


def _wide_weighted() -> Problem:
    X, labels = arrays(45, 95, 3, seed=16)
    s = weights(45, seed=160)
    return Problem.of(X, labels, 1e-1, sample_weight=s, penalize_intercept=True)


def _wide_soft() -> Problem:
    X, _ = arrays(40, 85, 3, seed=24)
    return Problem.of(X, soft_labels(40, 3, seed=240), 1e-1, sample_weight=weights(40, seed=241))


def _wide_free() -> Problem:
    """As RowSpace takes it: weights, hard labels, an intercept without penalty."""
    X, labels = arrays(42, 80, 3, seed=25)
    return Problem.of(X, labels, 1e-1, sample_weight=weights(42, seed=250))


def _wide_fold() -> Problem:
    return Problem.of(*arrays(48, 85, 3, seed=26), 1e-1).on(np.arange(48) % 4 != 1)


def _lasso() -> Problem:
    from admm_softmax import penalties

    return Problem.of(*arrays(100, 8, 3, seed=40), 2e-2, penalty=penalties.Lasso())


def _elastic_net() -> Problem:
    from admm_softmax import penalties

    X, labels = arrays(120, 14, 3, seed=41, density=0.4)
    s, net = weights(120, seed=410), penalties.ElasticNet(0.5)
    return Problem.of(X, labels, 2e-2, sample_weight=s, penalty=net)


def _group_lasso() -> Problem:
    from admm_softmax import penalties

    X, _ = arrays(90, 6, 3, seed=42)
    C = soft_labels(90, 3, seed=420)
    return Problem.of(X, C, 2e-2, penalty=penalties.GroupLasso()).on(np.arange(90) % 3 != 0)


def _variation() -> Problem:
    """A second split with an L of its own."""
    from admm_softmax import penalties

    X, labels = arrays(100, 9, 3, seed=43)
    return Problem.of(X, labels, 1e-2, penalty=penalties.TotalVariation(operators.gradient(9)))


def _fold() -> Problem:
    """Part of the rows by weight zero, one of them twice: how folds share a design."""
    X, labels = arrays(120, 8, 3, seed=17)
    whole = Problem.of(X, labels, 1.0, sample_weight=weights(120, seed=170))
    return whole.with_alpha(1e-2).on(np.append(np.flatnonzero(np.arange(120) % 3), 1))


def _sparse_fold() -> Problem:
    X, labels = arrays(150, 15, 3, seed=18, density=0.3)
    return Problem.of(X, labels, 1e-2).on(np.arange(150) % 4 != 2)


def _single() -> Problem:
    X, labels = arrays(120, 8, 3, seed=19)
    return Problem.of(X.astype(np.float32), labels, 1e-1)


def _single_sparse() -> Problem:
    X, labels = arrays(150, 20, 3, seed=20, density=0.3)
    s = weights(150, seed=200)
    return Problem.of(X.astype(np.float32), labels, 1e-2, sample_weight=s)


def _large() -> Problem:
    """Enough scores for the compiled passes."""
    return Problem.of(*arrays(20_000, 12, 10, seed=21), 1e-3)


def _large_sparse() -> Problem:
    X, labels = arrays(20_000, 25, 10, seed=22, density=0.15)
    return Problem.of(X, labels, 1e-3, sample_weight=weights(20_000, seed=220))


def _large_soft() -> Problem:
    X, _ = arrays(25_000, 10, 8, seed=23)
    return Problem.of(X, soft_labels(25_000, 8, seed=230), 1e-3)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "dense": _dense,
    "warm": _dense,
    "fortran": _fortran,
    "binary": _binary,
    "blocks": _blocks,
    "sparse": _sparse,
    "weighted": _weighted,
    "sparse_weighted": _sparse_weighted,
    "soft": _soft,
    "sparse_soft": _sparse_soft,
    "operator": _operator,
    "gradient": _gradient,
    "no_intercept": _no_intercept,
    "penalised": _penalised,
    "wide": _wide,
    "wide_sparse": _wide_sparse,
    "wide_weighted": _wide_weighted,
    "wide_soft": _wide_soft,
    "wide_free": _wide_free,
    "wide_fold": _wide_fold,
    "lasso": _lasso,
    "elastic_net": _elastic_net,
    "group_lasso": _group_lasso,
    "variation": _variation,
    "fold": _fold,
    "sparse_fold": _sparse_fold,
    "float32": _single,
    "float32_sparse": _single_sparse,
    "large": _large,
    "large_sparse": _large_sparse,
    "large_soft": _large_soft,
}
