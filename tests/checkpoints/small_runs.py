"""A small problem, a solver without state, and how a run is interrupted and compared."""

from dataclasses import dataclass

import numpy as np

from admm_softmax import Problem
from admm_softmax.solvers.base import measured_at
from tests.problems import make

X, Y = make(60, 5, 3)


def problem(alpha=1e-3, **settings):
    return Problem.of(X, Y, alpha, **settings)


def interrupt_at(number):
    """A callback that presses Ctrl-C at the given iterate."""
    seen = []

    def callback(iterate):
        seen.append(iterate)
        if len(seen) == number:
            raise KeyboardInterrupt

    return callback


def same(a, b):
    np.testing.assert_array_equal(a.W, b.W)
    assert a.status == b.status
    assert (a.n_iter, a.kept_iteration) == (b.n_iter, b.kept_iteration)
    for column in set(b.history.columns) - {"seconds", "passes"}:
        np.testing.assert_array_equal(a.history[column], b.history[column])
    assert a.history.inner_residuals == b.history.inner_residuals


@dataclass(frozen=True)
class Stateless:
    """Gradient steps of a fixed length; W is all there is to know."""

    def iterates(self, data, W0):
        point = data.at(np.zeros(data.shape) if W0 is None else W0)
        while True:
            yield measured_at(point)
            point = data.at(point.W - 0.5 * point.gradient)
