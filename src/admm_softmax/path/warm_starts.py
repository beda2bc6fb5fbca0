"""One penalty after another: each fit starts at an extrapolation of the two before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._interrupts import deferred_interrupt
from admm_softmax.path.fitter import Fitter
from admm_softmax.problem import Problem
from admm_softmax.solvers import Result, Status


@dataclass
class Trail:
    """The last two solutions of a path, with the logarithms of their α."""

    log_alphas: tuple[float, ...] = ()
    solutions: tuple[Array, ...] = ()
    #: Whether the penalty has kinks at zero: no entry then leaves zero, or crosses it.
    has_kinks: bool = False

    def ahead(self, alpha: float) -> Array | None:
        """The solution at α by extrapolation: on a straight line in log α, no further than the
        last two are apart.

        W(α) is smooth, so the error is of the order of the distance in log α squared; that of
        the last solution itself would be of the order of the distance.
        """
        if len(self.solutions) < 2:
            return self.solutions[-1] if self.solutions else None
        (before, last), (W_before, W_last) = self.log_alphas, self.solutions
        share = min((_log(alpha) - last) / (last - before), 1.0)
        if not self.has_kinks:
            return np.asarray(W_last + share * (W_last - W_before))
        here = np.flatnonzero(W_last)  # few, as a rule
        now = W_last.flat[here]
        then = now + share * (now - W_before.flat[here])
        W = np.zeros(W_last.shape)
        W.flat[here] = np.where(then * now > 0, then, 0.0)
        return W

    def add(self, alpha: float, W: Array) -> None:
        """Add the solution at α; only the last two are kept."""
        self.log_alphas = (*self.log_alphas[-1:], _log(alpha))
        self.solutions = (*self.solutions[-1:], W)


def _log(alpha: float) -> float:
    return float(np.log(alpha)) if alpha > 0 else -np.inf


def follow(
    fitter: Fitter,
    problems: Sequence[Problem],
    alphas: Array,
    visit: Callable[[float, list[Result]], bool],
    scales: Sequence[float] | None = None,
) -> list[list[Result]]:
    """Fit all problems under falling penalties; one list of results per α.

    `scales` are factors on α, one per problem; 1 for all by default.

    `visit` sees the results of every α, and ends the path by returning True. So does Ctrl-C:
    what was visited before it is kept.
    """
    trails = [Trail(has_kinks=not problem.penalty.is_smooth) for problem in problems]
    factors = [1.0] * len(problems) if scales is None else scales
    path: list[list[Result]] = []
    for number, alpha in enumerate(alphas):
        here = [p.with_alpha(alpha * scale) for p, scale in zip(problems, factors, strict=True)]
        try:
            starts = [trail.ahead(alpha) for trail in trails]
            results = fitter.fit(here, starts, f"alpha-{number:03d}")
            with deferred_interrupt():  # what is fitted is visited, and kept
                ends = visit(alpha, results)
                path.append(results)
        except KeyboardInterrupt:
            if not path:
                raise
            fitter.scheduler.interrupted = True
            break
        for trail, result in zip(trails, results, strict=True):
            trail.add(alpha, result.W)
        interrupted = any(result.status == Status.INTERRUPTED for result in results)
        if ends or interrupted or fitter.scheduler.interrupted:
            break
    return path


def has_turned(scores: Sequence[float], patience: int | None) -> bool:
    """Whether the last `patience` scores are all worse than the best before them.

    >>> has_turned([0.1, 0.3, 0.2, 0.25], patience=2)
    True
    >>> has_turned([0.1, 0.3, 0.2, 0.3], patience=2)
    False
    """
    if patience is None or len(scores) <= patience:
        return False
    return max(scores[-patience:]) < max(scores[:-patience])
