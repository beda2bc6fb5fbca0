"""Coordinate descent on a quadratic model with a block penalty.

Over V, with D = V − W0 ::

    m(V) = ⟨g, D⟩ + ½ ⟨D, B D⟩ + h(V),     B = I ⊗ (c G + diag(ridge)) − N Qᵀ

G is a Gram matrix of features, the same for all classes, or absent; `diagonal` is its diagonal.
N and Q (here the columns of N Q⁻¹) carry the pairs of a quasi-Newton method. The loops keep
E = (c G + diag(ridge)) D and r = Qᵀ D, so that a derivative costs one row of N, and a change one
row of G. Plain loops: `kernels.compiled.coordinates` compiles them as they are.
"""

from __future__ import annotations

from typing import Any


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
    G: Any, c: float, curvature: Any, ridge: Any, l1: Any, l2: Any, starts: Any,
    g: Any, N: Any, Q: Any, V: Any, E: Any, r: Any, most_sweeps: int, tol: float,
    work: Any,
) -> int:  # fmt: skip
    """Minimise m over groups of rows, by one proximal step per group; returns the sweeps.

    Rows are ordered by group: those of group b are starts[b] … starts[b + 1] − 1.

    g, V, E : d × K;  N, Q : d × K × 2m;  r : 2m
    curvature : one bound per group on B's eigenvalues there
    work : (rows of the largest group) × K
    """
    d, K = V.shape
    n_pairs, dense = r.shape[0], G.shape[0] > 0
    everything = True
    for sweep in range(most_sweeps):
        worst = 0.0
        for b in range(starts.shape[0] - 1):
            first, last = starts[b], starts[b + 1]
            if not everything and not V[first:last].any():
                continue
            H = curvature[b]
            square = 0.0
            for j in range(first, last):
                shrink = l1[j] / H
                for k in range(K):
                    slope = g[j, k] + E[j, k]
                    for i in range(n_pairs):
                        slope -= N[j, k, i] * r[i]
                    target, new = V[j, k] - slope / H, 0.0
                    if target > shrink:
                        new = target - shrink
                    elif target < -shrink:
                        new = target + shrink
                    work[j - first, k] = new
                    square += new * new
            norm, threshold = square**0.5, l2[b] / H
            keep = 1.0 - threshold / norm if norm > threshold else 0.0
            for j in range(first, last):
                moved = False
                for k in range(K):
                    change = keep * work[j - first, k] - V[j, k]
                    work[j - first, k] = change
                    if change != 0.0:
                        moved = True
                        V[j, k] = V[j, k] + change if keep > 0.0 else 0.0
                        worst = max(worst, abs(change) * H)
                        E[j, k] += ridge[j] * change
                        for i in range(n_pairs):
                            r[i] += change * Q[j, k, i]
                if moved and dense:
                    for i in range(d):
                        scaled = c * G[j, i]
                        for k in range(K):
                            E[i, k] += scaled * work[j - first, k]
        if worst <= tol and everything:
            return sweep + 1
        everything = worst <= tol
    return most_sweeps
