"""The z-step: n independent K-dimensional convex problems, solved to rounding.

For each row, with v given and c on the simplex, ::

    minimise  logsumexp(z) − c·z + (ρ/2) ‖z − v‖²
    g(z) = p − c + ρ (z − v),           p = softmax(z)
    H(z) = diag(p + ρ) − p pᵀ

The Hessian is diagonal plus rank one, so Sherman–Morrison solves the Newton system in
O(K). Because Σp = 1 the denominator 1 − pᵀ diag(p+ρ)⁻¹ p equals ρ Σ q with
q = p / (p + ρ): a sum of positive terms, with no cancellation for any ρ ::

    H⁻¹ g = g / (p + ρ) + q (q·g) / (ρ Σq)

Warm-started, two to five steps reach rounding. Far from the solution, or for tiny ρ,
Newton's step can overshoot by 1/ρ. Rows whose gradient does not shrink are handed to a
scalar equation: with λ = logsumexp(z), optimality reads ::

    z_j + p_j / ρ = a_j,   a = v + c/ρ,   p_j = exp(z_j − λ)
    ⇔  p_j = ρ ω(a_j − λ − log ρ),      ω + log ω = x  (Wright's omega function)

and λ is the root of φ(λ) = Σ_j p_j(λ) − 1. As ω is increasing and convex, φ is
decreasing and convex, so Newton from any point left of the root climbs to it and never
passes it: no bracket, no line search. Left of it lies the λ at which the largest p is 1.
"""

from __future__ import annotations

import numpy as np

from admm_softmax._arrays import EPS, Array, Labels
from admm_softmax.kernels.softmax import minus_labels, softmax

#: A warm-started row that has not converged after this many Newton steps is a hard row.
MOST_NEWTON_STEPS = 12
#: Newton on φ needs about log Σp steps, at most log K, and then converges quadratically.
MOST_ROOT_STEPS = 100


def zstep(V: Array, labels: Labels, rho: float, Z: Array) -> tuple[Array, Array, Array]:
    """Solve the z-step for every row of V, starting from Z.

    Returns Z⁺, P = softmax(Z⁺) and the number of Newton steps of each row.

    >>> V = np.zeros((1, 2))
    >>> Z, P, steps = zstep(V, np.array([0]), 1.0, V)
    >>> bool(abs(P - [[1.0, 0.0]] + Z).max() < 1e-15)
    True
    """
    return finish_hard_rows(*_newton(V, labels, rho, Z), V, labels, rho)


def finish_hard_rows(
    Z: Array, P: Array, steps: Array, hard: Array, V: Array, labels: Labels, rho: float
) -> tuple[Array, Array, Array]:
    """Solve the rows that Newton gave up on by the scalar equation; writes into Z, P, steps."""
    rows = np.flatnonzero(hard)
    if len(rows):
        start = _from_scalar_equation(V[rows], labels[rows], rho)
        Z[rows], P[rows], more, _ = _newton(V[rows], labels[rows], rho, start)
        steps[rows] += more
    return Z, P, steps


def _newton(V: Array, labels: Labels, rho: float, Z: Array) -> tuple[Array, Array, Array, Array]:
    """Newton on all rows at once; a row leaves when it converges or stops improving.

    Also returns which rows left unconverged; those hold the best iterate they had.
    """
    n = len(V)
    Z_out, P_out = np.array(Z, dtype=np.float64), np.empty_like(V)
    steps, hard = np.zeros(n), np.zeros(n, dtype=bool)
    rows = np.arange(n)
    z, v, c = Z_out, V, labels
    p, g = _gradient(z, v, c, rho)
    size = np.abs(g).max(axis=1)
    P_out[:] = p
    for _ in range(MOST_NEWTON_STEPS):
        todo = size > _rounding(z, v, rho)
        if not todo.all():
            rows, z, v, c, p, g, size = (a[todo] for a in (rows, z, v, c, p, g, size))
        if not len(rows):
            return Z_out, P_out, steps, hard
        z_new = z - _newton_direction(p, g, rho)
        p_new, g_new = _gradient(z_new, v, c, rho)
        size_new = np.abs(g_new).max(axis=1)
        steps[rows] += 1
        shrunk = size_new < size
        hard[rows[~shrunk]] = True
        rows, z, v, c = rows[shrunk], z_new[shrunk], v[shrunk], c[shrunk]
        p, g, size = p_new[shrunk], g_new[shrunk], size_new[shrunk]
        Z_out[rows], P_out[rows] = z, p
    hard[rows[size > _rounding(z, v, rho)]] = True
    return Z_out, P_out, steps, hard


def _gradient(Z: Array, V: Array, labels: Labels, rho: float) -> tuple[Array, Array]:
    P, _ = softmax(Z)
    return P, minus_labels(P, labels) + rho * (Z - V)


def _newton_direction(P: Array, G: Array, rho: float) -> Array:
    q = P / (P + rho)
    common = np.einsum("ij,ij->i", q, G) / (rho * q.sum(axis=1))
    return np.asarray(G / (P + rho) + q * common[:, None])


def _rounding(Z: Array, V: Array, rho: float) -> Array:
    """The size at which a row's gradient is rounding noise.

    Two sources: the terms of g themselves (p and c are at most 1, then ρz and ρv), and
    the spacing of floats around z, which moves p by as much.
    """
    z, v = np.abs(Z).max(axis=1), np.abs(V).max(axis=1)
    return np.asarray(4.0 * EPS * (1.0 + z + rho * (z + v)))


def _from_scalar_equation(V: Array, labels: Labels, rho: float) -> Array:
    """Solve φ(λ) = 0 by Newton from the left, and return z = λ + log p."""
    from scipy.special import wrightomega  # noqa: PLC0415  (slow to load, and most rows converge)

    a = V - minus_labels(np.zeros_like(V), labels) / rho
    log_rho = np.log(rho)
    lam = a.max(axis=1) - 1.0 / rho
    for _ in range(MOST_ROOT_STEPS):
        omega = wrightomega(a - (lam + log_rho)[:, None])
        excess = rho * omega.sum(axis=1) - 1.0
        step = excess / (rho * (omega / (1.0 + omega)).sum(axis=1))
        lam += np.maximum(step, 0.0)  # a negative step is rounding: the root is reached
        if np.all(step <= 2.0 * EPS * (1.0 + np.abs(lam))):
            break
    x = a - (lam + log_rho)[:, None]
    omega = wrightomega(x)
    # log ω = x − ω loses digits for large x, and log(ω) underflows for small x.
    with np.errstate(divide="ignore"):
        log_omega = np.where(x < 1.0, x - omega, np.log(omega))
    return np.asarray((lam + log_rho)[:, None] + log_omega, dtype=np.float64)
