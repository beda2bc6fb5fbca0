"""Cholesky factors that a design holds where its rows are."""

from __future__ import annotations

from typing import Protocol

from admm_softmax._arrays import Array


class Factor(Protocol):
    """A Cholesky factor of a symmetric matrix H that is held elsewhere.

    info : 0, or the order of the first leading minor that is not positive
    rcond : an estimate of H's reciprocal condition number
    """

    info: int
    rcond: float

    def solve(self, B: Array) -> Array:
        """H⁻¹B."""
