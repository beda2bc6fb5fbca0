"""One solver after another on the same problem, sharing the Gram matrix and its factor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Chainable, Iterate, Solver, resumed
from admm_softmax.solvers.least_squares import WStep
from admm_softmax.solvers.state import State

#: Progress has slowed when this many iterations have not halved the gradient.
SLOW_AFTER = 5


@dataclass(frozen=True)
class Chain(Chainable):
    """`first` until `after` iterations, or until it slows; then `second` from there.

    The Gram matrix and its factorisation stay with the run, so that "gram"
    preconditioning after ADMM costs nothing: both use ρ XᵀΩX + α LᵀL.

    >>> from admm_softmax import ADMM, LBFGS
    >>> ADMM(rho=0.02).then(LBFGS(preconditioner="gram"), after=10).after
    10
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

    def iterates(
        self, problem: Problem, W0: Array | None, state: State | None = None
    ) -> Iterator[Iterate]:
        """Yield the iterates of the first, then those of the second."""
        at = _Place(W0) if state is None else _Place(**state)
        if not at.handed_over:
            yield from self._first(problem, at)
            at.hand_over(problem)  # also where the first has ended by itself
        else:
            # The second finds in the workspace what the first had left there.
            step = prepared_step(self.first, problem)
            if step is not None and at.rho is not None:
                step.factor(at.rho)
        for iterate in resumed(self.second, problem, at.W, at.inner, begun=at.begun):
            # Its start is the W that the first has left, looked at again.
            is_step = at.begun and iterate.is_step
            at.W, at.inner, at.begun, at.rho = iterate.W, iterate.state, True, _rho_of(problem)
            yield replace(iterate, is_step=is_step, state=vars(at).copy())

    def _first(self, problem: Problem, at: _Place) -> Iterator[Iterate]:
        """The iterates of the first solver, until it has run long enough."""
        slow = _Slowness(at.mark, at.since)
        for iterate in resumed(self.first, problem, at.W, at.inner, begun=at.begun):
            unknown_start = not at.begun and not iterate.measured
            at.steps += at.begun and iterate.is_step
            at.W, at.inner, at.begun = iterate.W, iterate.state, True
            slowed = self.after is None and not unknown_start and slow(iterate.gradient_norm)
            at.mark, at.since = slow.mark, slow.since
            ends = at.steps == self.after or slowed or iterate.stalled
            if ends:
                at.hand_over(problem)
            # The second solver goes on even where the first has converged or stalled.
            yield replace(iterate, converged=False, stalled=False, state=vars(at).copy())
            if ends:
                return

    def prepare(self, problem: Problem) -> WStep | None:
        """The W-step that the chain leaves to a solver after it, if any."""
        first = prepared_step(self.first, problem)
        return prepared_step(self.second, problem) or first


def _rho_of(problem: Problem) -> float | None:
    """The ρ of the factorisation in the workspace, if there is one."""
    kept = problem.workspace.w_step
    return None if kept is None else kept[1].rho


def prepared_step(solver: Solver, problem: Problem) -> WStep | None:
    """The W-step that a solver leaves in the workspace, not factorised; None if it has none."""
    prepare = getattr(solver, "prepare", None)
    return None if prepare is None else prepare(problem)


@dataclass
class _Place:
    """Where a chain is: its state, as a checkpoint keeps it."""

    #: The newest iterate, and the state of the solver that made it.
    W: Array | None
    inner: State | None = None
    #: Whether the solver whose turn it is has yielded its start.
    begun: bool = False
    handed_over: bool = False
    #: Steps of the first solver, and what is known about its progress.
    steps: int = 0
    mark: float = float("inf")
    since: int = 0
    #: Of the factorisation in the workspace, which the first has left.
    rho: float | None = None

    def hand_over(self, problem: Problem) -> None:
        """Let the second solver start at the newest iterate."""
        if not self.handed_over:
            self.handed_over, self.begun, self.inner = True, False, None
            self.rho = _rho_of(problem)
            problem.prepared.last_pass.drop()  # the newest iterate is ahead of it


class _Slowness:
    """True once SLOW_AFTER iterations have passed since the gradient last halved.

    Iterates without a gradient (NaN) count as slow.
    """

    def __init__(self, mark: float, since: int) -> None:
        self.mark, self.since = mark, since

    def __call__(self, gradient_norm: float) -> bool:
        if gradient_norm <= 0.5 * self.mark:
            self.mark, self.since = gradient_norm, 0
        else:
            self.since += 1
        return self.since >= SLOW_AFTER
