"""The z-step compiled: one loop a row, nothing allocated but the result.

The twin of `zstep`, which is its specification; rows that Newton cannot finish are
reported and left to it. Numba compiles on the first call and caches on disk; nothing
imports this module before a problem is large enough to repay that.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
from numba import njit

from admm_softmax._arrays import Array, Labels
from admm_softmax.kernels.zstep import EPS, NEWTON_STEPS, finish_hard_rows

_NO_CODES = np.zeros(0, dtype=np.intp)
_NO_SOFT = np.zeros((0, 0))


def zstep(V: Array, labels: Labels, rho: float, Z: Array) -> tuple[Array, Array, Array]:
    """As `admm_softmax.kernels.zstep.zstep`."""
    codes, soft = (labels, _NO_SOFT) if labels.ndim == 1 else (_NO_CODES, labels)
    Z_new, P, steps, hard = _newton_rows(V, codes, soft, rho, Z)
    return finish_hard_rows(Z_new, P, steps, hard, V, labels, rho)


def _compiled(function: Any) -> Any:
    """Compile on first call, cached on disk where there is a place to write to."""
    settings = {"nogil": True, "fastmath": {"nsz", "arcp", "contract", "reassoc"}}
    try:
        return njit(cache=True, **settings)(function)
    except RuntimeError:  # a read-only installation and no home directory
        return njit(**settings)(function)


@_compiled
def _newton_rows(V: Any, codes: Any, soft: Any, rho: float, Z: Any) -> Any:
    n, K = V.shape
    Z_new, P = np.empty((n, K)), np.empty((n, K))
    steps, hard = np.zeros(n), np.zeros(n, dtype=np.bool_)
    g, z_old, p_old = np.empty(K), np.empty(K), np.empty(K)
    for i in range(n):
        z, p, v = Z_new[i], P[i], V[i]
        v_size = 0.0
        for j in range(K):
            z[j] = Z[i, j]
            v_size = max(v_size, abs(v[j]))
        size_old = np.inf
        for step in range(NEWTON_STEPS + 1):
            top, z_size = z[0], 0.0
            for j in range(K):
                top = max(top, z[j])
                z_size = max(z_size, abs(z[j]))
            total = 0.0
            for j in range(K):
                p[j] = exp(z[j] - top)
                total += p[j]
            inverse = 1.0 / total
            size = 0.0
            for j in range(K):
                p[j] *= inverse
                c = soft[i, j] if len(soft) else (1.0 if codes[i] == j else 0.0)
                g[j] = (p[j] - c) + rho * (z[j] - v[j])
                size = max(size, abs(g[j]))
            if size <= 4.0 * EPS * (1.0 + z_size + rho * (z_size + v_size)):
                break
            if not size < size_old:
                for j in range(K):
                    z[j], p[j] = z_old[j], p_old[j]
                hard[i] = True
                break
            if step == NEWTON_STEPS:
                hard[i] = True
                break
            size_old = size
            steps[i] += 1
            q_total, q_g = 0.0, 0.0
            for j in range(K):
                q = p[j] / (p[j] + rho)
                q_total += q
                q_g += q * g[j]
            common = q_g / (rho * q_total)
            for j in range(K):
                z_old[j], p_old[j] = z[j], p[j]
                z[j] -= (g[j] + p[j] * common) / (p[j] + rho)
    return Z_new, P, steps, hard
