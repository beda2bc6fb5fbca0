"""One solver after another on the same problem, sharing what was paid for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Chainable, Iterate, Solver

#: Progress has slowed when so many iterations have not halved the gradient.
PATIENCE = 5


@dataclass(frozen=True)
class Chain(Chainable):
    """`first` until `after` iterations, or until it slows; then `second` from there.

    The Gram matrix and its factorisation stay with the problem, so that "gram"
    preconditioning after ADMM costs nothing: both use ρ XᵀΩX + α LᵀL.
    """

    first: Solver
    second: Solver
    after: int | None = None

    def __post_init__(self) -> None:
        for solver in (self.first, self.second):
            if isinstance(solver, type) or not hasattr(solver, "iterates"):
                raise TypeError(f"a chain is made of solver objects, got {solver!r}")
        if self.after is not None:
            check_count("after", self.after, "at least 1 or None")

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield the iterates of the first, then those of the second."""
        passes = 0.0
        W = W0
        slow = _Slowness()
        for count, iterate in enumerate(self.first.iterates(problem, W0), 1):
            # Whether the first has met its own test or cannot go on: the second can.
            yield replace(iterate, converged=False, stalled=False)
            W, passes = iterate.W, iterate.passes
            slowed = self.after is None and slow(iterate.gradient_norm)
            if count == self.after or slowed or iterate.stalled:
                break
        for iterate in self.second.iterates(problem, W):
            yield replace(iterate, passes=passes + iterate.passes)


class _Slowness:
    """True once PATIENCE iterations have passed since the gradient last halved.

    Iterates that come unmeasured (NaN) count as slow.
    """

    def __init__(self) -> None:
        self.mark = float("inf")
        self.since = 0

    def __call__(self, gradient_norm: float) -> bool:
        if gradient_norm <= 0.5 * self.mark:
            self.mark, self.since = gradient_norm, 0
        else:
            self.since += 1
        return self.since >= PATIENCE
