"""The contract of W-step strategies, and what they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax.problem import Problem


class Breakdown(np.linalg.LinAlgError):
    """A factorisation failed, or would lose every digit. The message says which and why."""


class Solution(NamedTuple):
    """W, and the residual M − (ρ X̃ᵀΩX̃ + α LᵀL) W; None where that is only rounding."""

    W: Array
    residual: Array | None


def sparse_inverse(matrix: Any) -> Callable[[Any], Array]:
    """Return V ↦ matrix⁻¹V for a sparse symmetric matrix; Breakdown if it is singular."""
    diagonal = matrix.diagonal()
    off_diagonal = sp.csr_array(matrix - sp.diags_array(diagonal))
    off_diagonal.eliminate_zeros()
    if off_diagonal.nnz == 0:
        if not diagonal.min() > 0:
            raise Breakdown("the penalty is singular: a column is not penalised")
        inverse = sp.diags_array(1.0 / diagonal)
        return lambda V: inverse @ V
    from scipy.sparse.linalg import splu  # noqa: PLC0415  (slow to load)

    # Scaled to a unit diagonal, so that small pivots mean singularity and not small units.
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    D = sp.diags_array(scale)
    try:
        lu = splu(sp.csc_array(D @ matrix @ D), permc_spec="MMD_AT_PLUS_A")
    except RuntimeError as error:
        raise Breakdown("the penalty is singular") from error
    pivots = np.abs(lu.U.diagonal())
    if pivots.min() < 1e-14 * pivots.max():
        raise Breakdown("the penalty is singular to rounding")

    def solve(V: Any) -> Array:
        dense = V.toarray() if sp.issparse(V) else np.asarray(V)
        return np.asarray(D @ lu.solve(D @ dense))

    return solve


class WStep(Protocol):
    """The W-step of one problem: factorise for a ρ, then solve for many right-hand sides."""

    @property
    def name(self) -> str:
        """The strategy's name."""

    @property
    def corrects(self) -> bool:
        """Whether solutions need a correction by residual rows, which costs one more read."""

    @property
    def rho(self) -> float | None:
        """The ρ of the current factorisation, if any."""

    def factor(self, rho: float) -> None:
        """Prepare for this ρ; raises Breakdown where the strategy cannot."""

    def solve(self, M: Array, start: Array) -> Solution:
        """Solve for M (d × K); iterative strategies begin at `start`."""

    def precondition(self, R: Array) -> Array:
        """Apply the inverse of the matrix, or an approximation of it."""


class StepOfAnother:
    """What a W-step has that passes right-hand sides on to another one, `step`."""

    step: WStep

    @property
    def name(self) -> str:
        """The name of the strategy in use."""
        return self.step.name

    @property
    def corrects(self) -> bool:
        """Whether solutions of the strategy in use need a correction."""
        return self.step.corrects


class Strategy(Protocol):
    """Settings of a W-step: frozen, and without data."""

    def prepare(self, problem: Problem) -> WStep:
        """Read X as the strategy needs (for its Gram matrix, for example), once for all ρ."""


class GramStrategy(Strategy, Protocol):
    """A strategy that can say which d × d matrix it factorises, so that fits can share it."""

    def forms_gram(self, problem: Problem) -> bool:
        """Whether it factorises a d × d matrix, of some rows or of all, as its first choice."""

    def gram_of(self, problem: Problem) -> Any:
        """G, the Gram matrix of these rows, made where it is not there yet. Do not write to it."""

    def has_gram_of(self, problem: Problem) -> bool:
        """Whether G is there already."""
