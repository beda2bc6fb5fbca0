"""Step lengths satisfy their conditions, also where F is known to its rounding only."""

import numpy as np
import pytest

from admm_softmax.problem import Point
from admm_softmax.solvers.line_search import (
    C1,
    C2,
    PLATEAU_STEPS,
    Plateau,
    relative_noise,
    search,
)


def along(value, slope):
    """A function of one variable as a Problem would evaluate it."""
    calls = []

    def evaluate(W):
        t = float(W[0, 0])
        calls.append(t)
        F, gradient = value(t), np.array([[slope(t)]])
        return Point(
            W=W,
            objective=F,
            loss=F,
            accuracy=0.0,
            loss_gradient=gradient,
            gradient=gradient,
            optimality=gradient,
            curvature=0.0,
        )

    return evaluate, calls


CASES = {
    "quadratic": (lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1)),
    "far minimum": (lambda t: (t - 300) ** 2, lambda t: 2 * (t - 300)),
    "near minimum": (lambda t: (t - 1e-4) ** 2, lambda t: 2 * (t - 1e-4)),
    "exponential": (lambda t: np.exp(20 * t) - 30 * t, lambda t: 20 * np.exp(20 * t) - 30),
    "infinite beyond": (
        lambda t: np.inf if t > 0.3 else (t - 0.2) ** 2,
        lambda t: np.nan if t > 0.3 else 2 * (t - 0.2),
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rule", ["wolfe", "armijo"])
def test_conditions_hold(case, rule):
    value, slope = CASES[case]
    evaluate, calls = along(value, slope)
    start = evaluate(np.zeros((1, 1)))
    point, t = search(evaluate, start, np.ones((1, 1)), rule=rule)
    assert value(t) <= value(0) + C1 * t * slope(0)
    assert point.W[0, 0] == t
    if rule == "wolfe":
        assert abs(slope(t)) <= C2 * abs(slope(0))
    assert len(calls) <= 15


def test_a_good_first_step_costs_one_evaluation():
    evaluate, calls = along(*CASES["quadratic"])
    search(evaluate, evaluate(np.zeros((1, 1))), np.ones((1, 1)))
    assert len(calls) == 2


def test_noise_does_not_stop_a_step_whose_slope_is_right():
    def noisy(t):
        return 1.0 + 1e-18 * (t - 1) ** 2 + (1e-15 if t else 0.0)

    evaluate, _ = along(noisy, lambda t: 2e-18 * (t - 1))
    point, _ = search(evaluate, evaluate(np.zeros((1, 1))), np.ones((1, 1)))
    assert point is not None


@pytest.mark.parametrize("rounding", [np.finfo(np.float32).eps, 0.0])
def test_noise_is_that_of_products_with_x(rounding):
    # A step right by its slope, whose value is higher by some rounding of float32.
    evaluate, _ = along(lambda t: 1.0 + (5e-7 if t else 0.0), lambda t: 2e-9 * (t - 1))
    point, t = search(evaluate, evaluate(np.zeros((1, 1))), np.ones((1, 1)), rounding=rounding)
    assert (point is not None, t) == ((True, 1.0) if rounding else (False, 0.0))


def test_relative_noise():
    assert relative_noise(0.0) == relative_noise(np.finfo(np.float64).eps) == 1e-14
    assert 5e-7 < relative_noise(np.finfo(np.float32).eps) < 2e-6


def test_huge_slopes_do_not_overflow():
    evaluate, _ = along(lambda t: 1e200 * (t - 1e-3) ** 2, lambda t: 2e200 * (t - 1e-3))
    point, _ = search(evaluate, evaluate(np.zeros((1, 1))), np.ones((1, 1)))
    assert point is not None


def test_an_uphill_direction_finds_nothing():
    evaluate, calls = along(lambda t: t, lambda t: 1.0)
    point, t = search(evaluate, evaluate(np.zeros((1, 1))), np.ones((1, 1)))
    assert (point, t) == (None, 0.0)
    assert len(calls) < 30


def points(values, slopes):
    """Points with these objectives and gradients."""
    evaluate, _ = along(lambda t: values[int(t)], lambda t: slopes[int(t)])
    return [evaluate(np.full((1, 1), float(i))) for i in range(len(values))]


def test_a_plateau_is_so_many_steps_without_progress():
    plateau = Plateau(0.0)
    falling = points([3.0, 2.0, 1.0], [1.0, 2.0, 2.0])
    assert [plateau(point, True) for point in falling] == [False] * 3
    # Below the noise of F, and no smaller gradient.
    flat = points([1.0 - 1e-16] * PLATEAU_STEPS, [2.0] * PLATEAU_STEPS)
    assert [plateau(point, True) for point in flat] == [False] * (PLATEAU_STEPS - 1) + [True]
    assert plateau.best is falling[-1]


def test_a_smaller_gradient_is_progress_and_a_failed_step_is_the_end():
    plateau = Plateau(0.0)
    n = 3 * PLATEAU_STEPS
    shrinking = points([1.0] * n, [2.0**-i for i in range(n)])
    assert not any(plateau(point, True) for point in shrinking)
    assert plateau.best is shrinking[-1]
    assert plateau(shrinking[-1], False)


def test_what_is_progress_depends_on_the_rounding():
    steps = points([1.0 - 1e-8 * i for i in range(2 * PLATEAU_STEPS)], [1.0] * 2 * PLATEAU_STEPS)
    double, single = Plateau(0.0), Plateau(float(np.finfo(np.float32).eps))
    assert not any(double(point, True) for point in steps)
    assert [single(point, True) for point in steps][: PLATEAU_STEPS + 1][-1]
