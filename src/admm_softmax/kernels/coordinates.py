"""Coordinate descent on a quadratic model with a block penalty.

Over V, with D = V − W0 ::

    m(V) = ⟨g, D⟩ + ½ ⟨D, B D⟩ + h(V),     B = I ⊗ (c G + diag(ridge)) − N Qᵀ

G is a Gram matrix of features, the same for all classes, or absent; `diagonal` is its diagonal.
N and Q = N M⁻¹ carry the pairs of a quasi-Newton method. The loops keep
E = (c G + diag(ridge)) D and r = Qᵀ D, so that a derivative costs one row of N, and a change one
row of G. Everything is stored class by class, so that the inner loops run over features or pairs.
Plain loops: `kernels.compiled.coordinates` compiles them as they are.
"""

from __future__ import annotations

from typing import Any


def spread_pairs(S: Any, Y: Any, GS: Any, c: float, ridge: Any, N: Any) -> None:
    """Fill N (K × d × 2m) from the steps, changes of the gradient, and G times the steps.

    S, Y, GS : m × K × d
    """
    m, K, d = S.shape
    for k in range(K):
        for j in range(d):
            for i in range(m):
                own = ridge[j] * S[i, k, j]
                N[k, j, i] = c * GS[i, k, j] + own
                N[k, j, m + i] = Y[i, k, j] + own


def bound_rows(  # noqa: PLR0912  (compiled as one loop)
    base: Any, N: Any, Q: Any, steps: int, v: Any, w: Any, t: Any, bounds: Any
) -> None:
    """The largest eigenvalue of every row's block of B, base_j I − N_j Q_jᵀ, or little more.

    By power iteration; the residual is added to the Rayleigh quotient, as the largest
    eigenvalue is within it once the vector has turned there. A proximal step needs no more: it
    descends with anything above half of the eigenvalue. Classes that the pairs do not reach have
    the base alone.

    N, Q : K × d × 2m;  v, w : K, and t : 2m, to work in
    """
    K, d, n_pairs = N.shape
    for j in range(d):
        widest, most = 0, -1.0
        for k in range(K):
            size = 0.0
            for i in range(n_pairs):
                size += abs(N[k, j, i])
            if size > most:
                widest, most = k, size
        square = 0.0
        for k in range(K):
            w[k] = 0.0
            for i in range(n_pairs):
                w[k] += N[k, j, i] * Q[widest, j, i]
            square += w[k] * w[k]
        shift = 1e-3 * square**0.5
        square = 0.0
        for k in range(K):
            w[k] += shift
            square += w[k] * w[k]
        quotient = 0.0
        for _ in range(steps):
            scale = 1.0 / max(square**0.5, 1e-300)
            for i in range(n_pairs):
                t[i] = 0.0
            for k in range(K):
                v[k] = w[k] * scale
                for i in range(n_pairs):
                    t[i] += v[k] * Q[k, j, i]
            square = quotient = 0.0
            for k in range(K):
                slope = base[j] * v[k]
                for i in range(n_pairs):
                    slope -= N[k, j, i] * t[i]
                w[k] = slope
                square += slope * slope
                quotient += slope * v[k]
        residual = 0.0
        for k in range(K):
            residual += (w[k] - quotient * v[k]) ** 2
        bounds[j] = max(quotient + residual**0.5, base[j])


def descend_entries(  # noqa: PLR0912  (compiled as one loop)
    G: Any, c: float, curvature: Any, ridge: Any, l1: Any, lower: Any, upper: Any,
    g: Any, N: Any, Q: Any, V: Any, E: Any, r: Any, most_sweeps: int, tol: float,
) -> int:  # fmt: skip
    """Minimise m over single entries, in place; returns the number of sweeps.

    g, V, E, curvature : K × d; curvature is the diagonal of B
    N, Q : K × d × 2m;  r : 2m
    lower, upper : K × d, or empty without bounds
    tol : of the largest change times curvature, over a sweep of all entries
    """
    K, d = V.shape
    n_pairs = r.shape[0]
    dense, bounded = G.shape[0] > 0, lower.shape[0] > 0
    everything = True
    for sweep in range(most_sweeps):
        worst = 0.0
        for k in range(K):
            for j in range(d):
                v = V[k, j]
                if not everything and v == 0.0:
                    continue
                slope = g[k, j] + E[k, j]
                for i in range(n_pairs):
                    slope -= N[k, j, i] * r[i]
                H = curvature[k, j]
                target, shrink = v - slope / H, l1[j] / H
                new = 0.0
                if target > shrink:
                    new = target - shrink
                elif target < -shrink:
                    new = target + shrink
                if bounded:
                    new = min(max(new, lower[k, j]), upper[k, j])
                change = new - v
                if change == 0.0:
                    continue
                V[k, j] = new
                worst = max(worst, abs(change) * H)
                E[k, j] += ridge[j] * change
                if dense:
                    scaled = c * change
                    for i in range(d):
                        E[k, i] += scaled * G[j, i]
                for i in range(n_pairs):
                    r[i] += change * Q[k, j, i]
        if worst <= tol and everything:
            return sweep + 1
        everything = worst <= tol
    return most_sweeps


def descend_groups(  # noqa: PLR0912  (compiled as one loop)
    G: Any, c: float, curvature: Any, ridge: Any, l1: Any, l2: Any, members: Any, starts: Any,
    g: Any, N: Any, Q: Any, V: Any, E: Any, r: Any, most_sweeps: int, tol: float,
    work: Any, alive: Any,
) -> int:  # fmt: skip
    """Minimise m over groups of rows, by one proximal step per group; returns the sweeps.

    members : rows, those of group b at starts[b] … starts[b + 1] − 1
    g, V, E : K × d;  N, Q : K × d × 2m;  r : 2m
    curvature : one bound per group on B's eigenvalues there
    work : (rows of the largest group) × K;  alive : whether a group is not zero
    """
    K, d = V.shape
    n_pairs, dense = r.shape[0], G.shape[0] > 0
    everything = True
    for sweep in range(most_sweeps):
        worst = 0.0
        for b in range(starts.shape[0] - 1):
            if not everything and not alive[b]:
                continue
            first, last = starts[b], starts[b + 1]
            H, square = curvature[b], 0.0
            for p in range(first, last):
                j = members[p]
                shrink = l1[j] / H
                for k in range(K):
                    slope = g[k, j] + E[k, j]
                    for i in range(n_pairs):
                        slope -= N[k, j, i] * r[i]
                    target, new = V[k, j] - slope / H, 0.0
                    if target > shrink:
                        new = target - shrink
                    elif target < -shrink:
                        new = target + shrink
                    work[p - first, k] = new
                    square += new * new
            norm, threshold = square**0.5, l2[b] / H
            keep = 1.0 - threshold / norm if norm > threshold else 0.0
            if keep == 0.0 and not alive[b]:
                continue
            alive[b] = keep > 0.0
            for p in range(first, last):
                j = members[p]
                for k in range(K):
                    new = keep * work[p - first, k]
                    change = new - V[k, j]
                    if change == 0.0:
                        continue
                    V[k, j] = new
                    worst = max(worst, abs(change) * H)
                    E[k, j] += ridge[j] * change
                    for i in range(n_pairs):
                        r[i] += change * Q[k, j, i]
                    for i in range(d if dense else 0):
                        E[k, i] += c * change * G[j, i]
        if worst <= tol and everything:
            return sweep + 1
        everything = worst <= tol
    return most_sweeps
