"""What a solver is: frozen settings that yield iterates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Point, Problem

if TYPE_CHECKING:
    from admm_softmax.solvers.chain import Chain


@dataclass(frozen=True)
class Iterate:
    """One W, and the scalars that the passes over X which made it produced anyway.

    objective, loss, accuracy, gradient_norm belong to W itself: F, its first term, the
    share of training rows classified rightly, and max|∇F|. `passes` counts reads of X
    since the solver began. `details` are the solver's own figures, by name.
    """

    W: Array
    objective: float
    loss: float
    accuracy: float
    gradient_norm: float
    passes: float
    #: False where the figures above are still missing (SGD); `run` then fills them in.
    measured: bool = True
    #: The solver's own test has been met (ADMM: Boyd's residuals).
    converged: bool = False
    #: The solver cannot lower F any further: rounding is in the way.
    stalled: bool = False
    details: Mapping[str, float] = field(default_factory=dict)
    #: Relative residuals of an inner iteration, step by step (Newton-CG).
    inner_residuals: tuple[float, ...] = ()


class Solver(Protocol):
    """A frozen dataclass of settings. It holds no data and no state."""

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield iterates for ever, starting at W0 if given; `run` decides when to stop."""


class Chainable:
    """Gives a solver the method `then`."""

    def then(self: Solver, following: Solver, *, after: int | None = None) -> Chain:
        """Run this solver, and hand its iterate and factorisation over to `following`.

        `after` is the number of iterations; None hands over when progress slows.
        """
        from admm_softmax.solvers.chain import Chain  # noqa: PLC0415  (a cycle otherwise)

        return Chain(self, following, after)


def start_at(problem: Problem, W0: Array | None) -> Array:
    """W0 as a fresh float64 array; without one, the mean of W_ref over the classes.

    The loss cannot see a vector that all classes share. Only the penalty can, which asks
    for W_ref's; and preconditioners that speak of the loss would be slow to find it.
    """
    if W0 is not None:
        return np.array(W0, dtype=np.float64)
    W = np.zeros(problem.shape)
    if problem.penalty.reference is not None:
        W += problem.penalty.reference.mean(axis=1, keepdims=True)
    return W


def gradient_norm(gradient: Array) -> float:
    """max|∇F|, the quantity that `tol` bounds for every solver."""
    return float(np.abs(gradient).max())


def unmeasured(W: Array, passes: float, **details: float) -> Iterate:
    """An iterate of a solver that does not look at F."""
    nan = float("nan")
    return Iterate(W, nan, nan, nan, nan, passes, measured=False, details=details)


def measure(problem: Problem, iterate: Iterate) -> Iterate:
    """Fill in what an unmeasured iterate lacks. One read of X that is not the solver's."""
    if iterate.measured:
        return iterate
    complete = measured_at(problem.at(iterate.W), iterate.passes)
    return replace(complete, converged=iterate.converged, details=iterate.details)


def measured_at(
    point: Point,
    passes: float,
    *,
    stalled: bool = False,
    inner_residuals: tuple[float, ...] = (),
    **details: float,
) -> Iterate:
    """A point as an iterate."""
    return Iterate(
        W=point.W,
        objective=point.objective,
        loss=point.loss,
        accuracy=point.accuracy,
        gradient_norm=gradient_norm(point.gradient),
        passes=passes,
        stalled=stalled,
        details=details,
        inner_residuals=inner_residuals,
    )
