"""The contract of solvers: frozen settings that yield iterates."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Point, Problem
from admm_softmax.solvers.state import State

if TYPE_CHECKING:
    from admm_softmax.solvers.chain import Chain
    from admm_softmax.solvers.least_squares import GramStrategy
    from admm_softmax.solvers.preconditioner import Factory


@dataclass(frozen=True)
class Iterate:
    """One W, with the scalars that the passes over X yielded on the way.

    objective, loss, accuracy, gradient_norm belong to W itself: F, its first term, the
    share of training rows classified correctly, and the largest absolute entry of the
    optimality residual, max|∇F| for a smooth penalty. `details` are the solver's own
    figures, by name.

    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import LBFGS, Problem
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = Problem.of(X, y, alpha=1e-2)
    >>> start, step, *_ = zip(range(2), LBFGS().iterates(problem, None))
    >>> bool(step[1].objective < start[1].objective)
    True
    """

    W: Array
    objective: float
    loss: float
    accuracy: float
    gradient_norm: float
    #: Reads of X since the solver began; `run` counts them.
    passes: float = 0.0
    #: False where the figures above are still missing (SGD); `run` then fills them in.
    measured: bool = True
    #: False where W is that of the iterate before, looked at again (by the next of a chain).
    is_step: bool = True
    #: The solver's own test has been met (ADMM: Boyd's residuals).
    converged: bool = False
    #: The solver cannot lower F any further, usually because of rounding.
    stalled: bool = False
    details: Mapping[str, float] = field(default_factory=dict)
    #: Relative residuals of an inner iteration, step by step (Newton-CG).
    inner_residuals: tuple[float, ...] = ()
    #: What `iterates` needs to go on from here; None where W is enough. `run` keeps it for
    #: checkpoints, and no one else sees it.
    state: State | None = field(default=None, repr=False, compare=False)

    def seen(self, passes: float) -> Iterate:
        """The same iterate after so many reads of X, without its state.

        As `dataclasses.replace`, which checks every field and takes longer than a step on few rows.
        """
        twin = object.__new__(Iterate)
        twin.__dict__.update(self.__dict__, passes=passes, state=None)
        return twin


class Solver(Protocol):
    """A frozen dataclass of settings. It holds no data and no state."""

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield the start, W0 if given, then one iterate per step; `run` decides when to stop.

        A solver that ends by itself ends the run as "stalled".
        """


class Resumable(Solver, Protocol):
    """A solver whose iterates carry a state, and that goes on from one.

    Rows in a state that were too large to store come back as None; the solver makes them anew.
    """

    def iterates(
        self, problem: Problem, W0: Array | None, state: State | None = None
    ) -> Iterator[Iterate]:
        """Yield iterates; with a state, those that came after the iterate it belongs to."""


def resumed(
    solver: Solver, problem: Problem, W: Array | None, state: State | None, *, begun: bool
) -> Generator[Iterate, None, None]:
    """The iterates after one with this W and state.

    begun : whether there was one. If not, these are all iterates from the start at W. If so, and
        it had no state, the solver starts anew at W: the first iterate, W itself, is left out.
    """
    if state is not None:
        yield from cast(Resumable, solver).iterates(problem, W, state)
        return
    iterator = solver.iterates(problem, W)
    if begun:
        next(iterator, None)
    yield from iterator


class Chainable:
    """What solvers have in common: `then`, and sharing factorisations with other fits."""

    def on_factors(self, problem: Problem, share: Callable[[GramStrategy], Factory]) -> Solver:
        """The same solver on factorisations that many fits share, where it has any to share.

        problem : one of those that are fitted; the others have the same L
        share : makes a preconditioner of a W-step strategy, on shared factorisations
        """
        return cast(Solver, self)

    def then(self: Solver, following: Solver, *, after: int | None = None) -> Chain:
        """Run this solver, and hand its iterate and factorisation over to `following`.

        `after` is the number of iterations; None hands over when progress slows.
        """
        from admm_softmax.solvers.chain import Chain  # noqa: PLC0415  (a cycle otherwise)

        return Chain(self, following, after)


def require_smooth(solver: Solver, problem: Problem) -> None:
    """Raise unless the penalty is smooth, for solvers that follow gradients alone."""
    if not problem.penalty.is_smooth:
        raise ValueError(
            f"{type(solver).__name__} needs a smooth penalty, and "
            f"{type(problem.penalty).__name__} is not smooth"
        )


def start_at(problem: Problem, W0: Array | None, dtype: Any = np.float64) -> Array:
    """W0 as a fresh array; without one, the mean of W_ref over the classes.

    Adding one vector to the columns of all classes does not change the loss. Only the penalty
    determines that vector, and it is the mean of W_ref; preconditioners, which approximate the
    Hessian of the loss, would be slow to find it.
    """
    if W0 is not None:
        return np.array(W0, dtype=dtype)
    W: Array = np.zeros(problem.shape, dtype)
    if problem.penalty.reference is not None:
        W += problem.penalty.reference.mean(axis=1, keepdims=True)
    return W


def largest_entry(optimality: Array) -> float:
    """The largest absolute entry, the quantity that `tol` bounds for every solver."""
    return float(np.abs(optimality).max())


def unmeasured(W: Array, *, state: State | None = None, **details: float) -> Iterate:
    """An iterate without figures, of a solver that does not compute F."""
    nan = float("nan")
    return Iterate(W, nan, nan, nan, nan, measured=False, details=details, state=state)


def measure(problem: Problem, iterate: Iterate) -> Iterate:
    """Fill in the figures of an unmeasured iterate. One read of X, not counted as the solver's."""
    if iterate.measured:
        return iterate
    point = problem.at(iterate.W)
    return replace(
        iterate,
        objective=point.objective,
        loss=point.loss,
        accuracy=point.accuracy,
        gradient_norm=point.residual,
        measured=True,
    )


def measured_at(
    point: Point,
    *,
    stalled: bool = False,
    inner_residuals: tuple[float, ...] = (),
    state: State | None = None,
    **details: float,
) -> Iterate:
    """The iterate at a point, with its figures."""
    return Iterate(
        W=point.W,
        objective=point.objective,
        loss=point.loss,
        accuracy=point.accuracy,
        gradient_norm=point.residual,
        stalled=stalled,
        details=details,
        inner_residuals=inner_residuals,
        state=state,
    )
