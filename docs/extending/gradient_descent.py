"""A solver of one's own: gradient descent, with the prox of the penalty."""

from dataclasses import dataclass

import numpy as np

from admm_softmax.solvers.base import Chainable, measured_at, start_at


@dataclass(frozen=True)
class GradientDescent(Chainable):
    """W⁺ = prox(W − t ∇(loss + q)(W), t), with t halved until it is short enough.

    Short enough is a quadratic bound on what is smooth, with D = W⁺ − W: ::

        f(W⁺) ≤ f(W) + ⟨∇f(W), D⟩ + ‖D‖² / 2t

    step : t to begin with
    """

    step: float = 1.0

    def iterates(self, problem, W0, state=None):
        """Yield the start, then one iterate per step; each trial reads X once.

        state : that of an earlier iterate, to go on after it
        """
        t = self.step if state is None else state["t"]
        point = problem.at(start_at(problem, W0))
        if state is None:
            yield measured_at(point, state={"t": t})
        while True:
            t *= 1.5  # a step that was once too long may fit later
            while True:
                new = problem.at(problem.penalty.prox(point.W - t * point.gradient, t))
                D = new.W - point.W
                bound = (
                    smooth(problem, point) + np.vdot(point.gradient, D) + np.vdot(D, D) / (2 * t)
                )
                if smooth(problem, new) <= bound + 1e-14 * abs(bound):
                    break
                t *= 0.5
            point = new
            yield measured_at(point, state={"t": t}, step=t)


def smooth(problem, point):
    """The loss and the smooth part of the penalty."""
    return point.loss + problem.penalty.quadratic.value(point.W)
