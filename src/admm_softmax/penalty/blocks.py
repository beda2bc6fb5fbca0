"""Penalties that are sums over blocks of W: single entries, or the rows of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._cached import cached_property


@dataclass(frozen=True)
class Blocks:
    """h as a sum over blocks of V = W − W_ref.

    The blocks are single entries, or all entries of the rows that form a group ::

        h = Σ_j l1_j Σ_k |v_jk| + Σ_g l2_g ‖V_g‖,     lower ≤ V ≤ upper

    l1 : one threshold per row
    l2 : one per group; None without groups
    group : the number of each row's group; None where blocks are single entries
    lower, upper : rows × 1 or rows × K; None without bounds, which groups cannot have
    """

    l1: Array
    l2: Array | None = None
    group: Any = None
    lower: Array | None = None
    upper: Array | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether there are bounds."""
        return self.lower is not None or self.upper is not None

    def at(self, rows: Any) -> Blocks:
        """The blocks of some rows, whole groups of them."""
        group, l2 = self.group, self.l2
        if group is not None and l2 is not None:
            kept, group = np.unique(group[rows], return_inverse=True)
            l2 = l2[kept]
        lower, upper = (None if b is None else b[rows] for b in (self.lower, self.upper))
        return Blocks(self.l1[rows], l2, group, lower, upper)

    @cached_property
    def members(self) -> tuple[Any, Any]:
        """The rows, group by group; and where each group begins, and the last ends."""
        sizes = np.bincount(self.group, minlength=len(self._l2))
        order = np.argsort(self.group, kind="stable")
        return order, np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def _has_l1(self) -> bool:
        return bool(self.l1.any())

    def norms(self, V: Array) -> Array:
        """The norm of every group."""
        squares = np.einsum("jk,jk->j", V, V)
        return np.sqrt(np.bincount(self.group, weights=squares, minlength=len(self._l2)))

    @property
    def _l2(self) -> Array:
        assert self.l2 is not None, "these blocks have no groups"
        return self.l2

    def value(self, V: Array) -> float:
        """h; infinite outside the bounds."""
        if self.is_bounded and not np.array_equal(self._clipped(V), V):
            return np.inf
        entries = float((self.l1 @ np.abs(V)).sum()) if self._has_l1 else 0.0
        return entries if self.group is None else entries + float(self._l2 @ self.norms(V))

    def prox(self, V: Array, step: float | Array) -> Array:
        """Shrink every entry, then every group's norm; or clip.

        step : a number, or one per row, equal within a group
        """
        shrunk = soft(V, (step * self.l1)[:, None])
        if self.group is not None:
            return self._scaled_down(shrunk, step)
        return self._clipped(shrunk) if self.is_bounded else shrunk

    def optimality(self, V: Array, G: Array) -> Array:
        """The smallest element of G + ∂h(V), G the gradient of what is smooth.

        An entry's subdifferential is one number where v ≠ 0 and an interval at 0; that of a
        group at zero is a ball, widened by the entries' box.
        """
        l1 = self.l1[:, None]
        if self.group is None:
            found = soft(G, l1)
            here = np.flatnonzero(V)
            if 4 * len(here) > V.size:
                found = np.where(V != 0, G + l1 * np.sign(V), found)
            else:
                found.flat[here] = G.flat[here] + self.l1[here // V.shape[1]] * np.sign(
                    V.flat[here]
                )
            return self._unpushed(V, found) if self.is_bounded else found
        norms = self.norms(V)
        found = self._scaled_down(soft(G, l1) if self._has_l1 else G, 1.0)
        here = np.flatnonzero(norms[self.group])
        own, l1, group = V[here], l1[here], self.group[here]
        signed = G[here] + (self._l2[group] / norms[group])[:, None] * own
        if self._has_l1:
            signed = np.where(own != 0, signed + l1 * np.sign(own), soft(signed, l1))
        found[here] = signed
        return found

    def reach(self, G: Array) -> Array:
        """How near every row at zero is to leaving it: it stays where this is at most 1.

        Rows of a group share their group's figure; free rows have infinity.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.group is None:
                ratio = np.abs(G).max(axis=1) / self.l1
            else:
                # The group stays while ‖soft(G, l1)‖ ≤ l2; the triangle inequality turns that
                # into one number, exact at 1 where one of the two thresholds is zero.
                rest = self.norms(soft(G, self.l1[:, None]))[self.group]
                own = self.norms(G)[self.group]
                total = self._l2[self.group] + own - rest
                ratio = own / total
        return np.where(self.free, np.inf, np.nan_to_num(ratio, nan=0.0, posinf=np.inf))

    @cached_property
    def free(self) -> Any:
        """Whether a row has no threshold."""
        return (self.l1 == 0) & (self._l2[self.group] == 0 if self.group is not None else True)

    def is_constant(self, rows: Array) -> bool:
        """Whether all rows of a group have the same entry here."""
        if self.group is None:
            return True
        return bool((rows == self._of_groups(rows)[self.group]).all())

    def _of_groups(self, rows: Array) -> Array:
        """One entry per group, from one per row."""
        found = np.zeros(len(self._l2))
        found[self.group] = rows
        return found

    def _scaled_down(self, V: Array, step: float | Array) -> Array:
        """Every group's norm smaller by its threshold, and zero below it."""
        steps = self._of_groups(step) if isinstance(step, np.ndarray) else step
        norms, thresholds = self.norms(V), steps * self._l2
        keep = np.where(norms > thresholds, 1.0 - thresholds / np.where(norms > 0, norms, 1.0), 0.0)
        return np.asarray(V * keep[self.group][:, None])

    def _clipped(self, V: Array) -> Array:
        return np.clip(V, self.lower, self.upper)

    def _unpushed(self, V: Array, G: Array) -> Array:
        """G without what pushes against a bound."""
        below = False if self.lower is None else (self.lower >= V) & (G > 0)
        above = False if self.upper is None else (self.upper <= V) & (G < 0)
        return np.where(below | above, 0.0, G)


def soft(V: Array, threshold: Any) -> Array:
    """Every entry moved towards zero by the threshold, and no further.

    >>> soft(np.array([2.0, -0.3]), 0.5)
    array([1.5, 0. ])
    """
    return np.asarray(V - np.clip(V, -threshold, threshold))
