import numpy as np
import pytest

from admm_softmax.problem import Point
from admm_softmax.solvers.line_search import C1, C2, search


def along(value, slope):
    """A function of one variable as a Problem would evaluate it."""
    calls = []

    def evaluate(W):
        t = float(W[0, 0])
        calls.append(t)
        return Point(W, value(t), value(t), 0.0, np.array([[slope(t)]]), 0.0)

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


def test_huge_slopes_do_not_overflow():
    evaluate, _ = along(lambda t: 1e200 * (t - 1e-3) ** 2, lambda t: 2e200 * (t - 1e-3))
    point, _ = search(evaluate, evaluate(np.zeros((1, 1))), np.ones((1, 1)))
    assert point is not None


def test_an_uphill_direction_finds_nothing():
    evaluate, calls = along(lambda t: t, lambda t: 1.0)
    point, t = search(evaluate, evaluate(np.zeros((1, 1))), np.ones((1, 1)))
    assert (point, t) == (None, 0.0)
    assert len(calls) < 30
