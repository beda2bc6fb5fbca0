"""Step lengths along a descent direction, each trial one read of X."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.problem import Point
from admm_softmax.solvers.state import State

P = TypeVar("P", bound=Point)
Rule: TypeAlias = Literal["wolfe", "armijo"]

#: Sufficient decrease and curvature constants (Nocedal & Wright, p. 62).
C1, C2 = 1e-4, 0.9
#: The most trials; a convex function along a descent direction needs one or two.
MOST_TRIALS = 25
#: Steps without progress that make a plateau.
PLATEAU_STEPS = 25


def relative_noise(rounding: float) -> float:
    """The relative noise of F, below which its differences say nothing: then slopes decide.

    These are the approximate Wolfe conditions of Hager & Zhang (SIAM J. Optim. 16, 2005).
    Measured: 1e-14 for products in double, 1e-6 in single.
    """
    return max(1e-14, 8.0 * rounding)


def search(
    evaluate: Callable[[Array], P],
    start: Point,
    direction: Array,
    *,
    rule: Rule = "wolfe",
    first: float = 1.0,
    rounding: float = 0.0,
) -> tuple[P | None, float]:
    """Find t with F(W + tD) low enough and, for "wolfe", a slope flat enough.

    Brackets by expansion, then interpolates: cubic through values and slopes, kept inside
    the middle of the bracket (Nocedal & Wright, algorithms 3.5 and 3.6, in one loop).
    `rounding` is that of products with X. Returns None where no trial lowered F.
    """
    # In W's precision once: mixed products would convert it at every use.
    direction = np.asarray(direction, start.W.dtype)
    slope = float(np.vdot(start.gradient, direction))
    noise = relative_noise(rounding) * max(abs(start.objective), 1e-300)
    low, high = _Trial(0.0, start.objective, slope), None
    best: tuple[P | None, float] = (None, 0.0)
    t = first
    for _ in range(MOST_TRIALS):
        if t == 1.0:
            W = start.W + direction
        else:
            W = t * direction
            W += start.W
        point = evaluate(W)
        trial = _Trial(t, point.objective, float(np.vdot(point.gradient, direction)))
        verdict = _judge(trial, start.objective, slope, rule, noise)
        if verdict == "accept":
            return point, t
        lowest = start.objective if best[0] is None else best[0].objective
        if trial.value < lowest:
            best = (point, t)
        if verdict == "too long":
            high = trial
        else:
            low = trial
        t = 4.0 * t if high is None else _interpolate(low, high)
    return best


class Plateau:
    """Says when a descent has ended in rounding: a step failed, or PLATEAU_STEPS steps in a row
    neither lowered F by more than its noise nor reached a smaller gradient.
    """

    def __init__(self, rounding: float) -> None:
        self.noise = relative_noise(rounding)
        self.objective = self.gradient = np.inf
        self.since = 0
        self._best: Point | None = None

    def __call__(self, point: Point, moved: bool) -> bool:
        """Take the newest point into account; True if the descent should end."""
        gradient = point.residual
        lower = point.objective < self.objective - self.noise * abs(point.objective)
        if lower or self._best is None or gradient < self.gradient:
            self._best = point
        if lower or gradient < self.gradient:
            self.since = 0
            self.objective = min(point.objective, self.objective) if lower else self.objective
            self.gradient = min(gradient, self.gradient)
        else:
            self.since += 1
        return not moved or self.since >= PLATEAU_STEPS

    @property
    def state(self) -> State:
        """What `resume` needs."""
        return {
            "objective": self.objective,
            "gradient": self.gradient,
            "since": self.since,
            "W": None if self._best is None else self._best.W,
        }

    def resume(self, state: State, point: Point, evaluate: Callable[[Array], Point]) -> None:
        """Go on from a state, at the newest point."""
        self.objective, self.gradient = state["objective"], state["gradient"]
        self.since, W = state["since"], state["W"]
        if W is not None:
            self._best = point if np.array_equal(W, point.W) else evaluate(W)

    @property
    def best(self) -> Point:
        """The point of smallest gradient since F last fell by more than its noise."""
        assert self._best is not None
        return self._best


class _Trial(NamedTuple):
    t: float
    value: float
    slope: float


def _judge(trial: _Trial, value: float, slope: float, rule: Rule, noise: float) -> str:
    if not np.isfinite(trial.value):
        return "too long"
    decreased = trial.value <= value + C1 * trial.t * slope
    # Within noise of the start the slope tells a decrease: for a quadratic, Armijo's
    # condition is exactly that it has risen to at most (2 C1 − 1) of its first value.
    if not decreased and trial.value <= value + noise:
        decreased = trial.slope <= (2 * C1 - 1) * slope
    if not decreased:
        return "too long"
    if rule == "armijo" or abs(trial.slope) <= -C2 * slope:
        return "accept"
    return "too short" if trial.slope < 0 else "too long"


def _interpolate(low: _Trial, high: _Trial) -> float:
    """The minimiser of the cubic through both ends, away from them; else the middle."""
    width = high.t - low.t
    middle = low.t + 0.5 * width
    if not (np.isfinite(high.value) and np.isfinite(high.slope)):
        return low.t + 0.1 * width
    secant = (high.value - low.value) / width
    # Divided by the largest of the three, so that squares cannot overflow.
    largest = max(abs(low.slope), abs(high.slope), abs(secant), 1e-300)
    s0, s1 = low.slope / largest, high.slope / largest
    d1 = s0 + s1 - 3 * secant / largest
    square = d1 * d1 - s0 * s1
    if not square >= 0:
        return middle
    d2 = float(np.sqrt(square))
    denominator = s1 - s0 + 2 * d2
    if denominator == 0:
        return middle
    t = high.t - width * (s1 + d2 - d1) / denominator
    return float(np.clip(t, low.t + 0.05 * width, high.t - 0.05 * width))
