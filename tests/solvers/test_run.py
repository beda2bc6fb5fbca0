"""The one loop: clock, stopping, history, the best iterate, callbacks."""

import io
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from admm_softmax import (
    ADMM,
    LBFGS,
    SGD,
    HessianLBFGS,
    Iterate,
    NewtonCG,
    Problem,
    Status,
    run,
)
from admm_softmax.solvers.base import measured_at
from admm_softmax.solvers.history import History
from admm_softmax.solvers.newton import Newton
from admm_softmax.solvers.row_space import RowSpace
from tests.problems import assert_close, make


@dataclass(frozen=True)
class Scripted:
    """A solver that walks along given weights, for ever or to their end."""

    steps: list = field(default_factory=list)
    fails_at: int | None = None
    ends: bool = False

    def iterates(self, problem, W0):
        for k in range(len(self.steps)) if self.ends else count():
            if k == self.fails_at:
                raise KeyboardInterrupt
            W = np.full(problem.shape, float(self.steps[min(k, len(self.steps) - 1)]))
            W[:, 0] = 0.0
            objective = np.nan if np.isnan(W).any() else problem.objective(W)
            yield Iterate(W, objective, objective, 0.5, gradient_norm=1.0 / (k + 1))


class Clock:
    """Stands in for the module time: it moves when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        clock = SimpleNamespace(perf_counter=lambda: self.now)
        monkeypatch.setattr("admm_softmax.solvers.loop.time", clock)


@dataclass(frozen=True)
class Timed:
    """A solver of which every iterate takes two seconds, and the first three more."""

    clock: Clock

    def iterates(self, problem, W0):
        self.clock.now += 3.0
        for iterate in Scripted([0.1]).iterates(problem, W0):
            self.clock.now += 2.0
            yield iterate


@pytest.fixture
def problem():
    X, labels = make(60, 5, 3)
    return Problem.of(X, labels, 0.05)


@pytest.fixture
def validation():
    X, labels = make(40, 5, 3, seed=1)
    return Problem.of(X, labels)


def test_converges_at_tol(problem):
    result = run(problem, ADMM(rho=0.1, gradient_every=1), tol=1e-4)
    assert result.status is Status.CONVERGED
    assert result.status == "converged"
    assert result.iterate.gradient_norm <= 1e-4 < result.history["gradient_norm"][-2]
    assert result.n_iter == len(result.history) - 1 == result.kept_iteration


def test_iteration_limit(problem):
    result = run(problem, ADMM(rho=0.1), tol=0.0, max_iter=7)
    assert (result.status, result.n_iter) == ("iteration_limit", 7)
    assert "max_iter" in result.status.remedy


SOLVERS = {
    "admm": ADMM(rho=0.1),
    "smart admm": ADMM(rho=0.1, start="smart"),
    "lbfgs": LBFGS(),
    "newton-cg": NewtonCG(),
    "newton": Newton(),
    "hessian lbfgs": HessianLBFGS(),
    "sgd": SGD(),
    "chain": ADMM(rho=0.1).then(LBFGS(), after=2),
    "row space": RowSpace(LBFGS()),
}


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("name", SOLVERS)
def test_an_iteration_is_a_step(problem, name, given):
    W0 = np.random.default_rng(0).standard_normal(problem.shape) if given else None
    start = np.zeros(problem.shape) if W0 is None else W0
    none, one, three = (run(problem, SOLVERS[name], W0=W0, tol=0.0, max_iter=k) for k in (0, 1, 3))
    assert_close(none.W, start, 1e-14)
    assert (none.status, none.n_iter, none.kept_iteration) == ("iteration_limit", 0, 0)
    assert none.kept_record["objective"] == pytest.approx(problem.objective(start), rel=1e-12)
    assert (one.n_iter, one.kept_iteration) == (1, 1)
    if given or "admm" not in str(SOLVERS[name]).lower():  # ADMM's first W-step solves for Z = 0
        assert not np.array_equal(one.W, start)
    assert not np.array_equal(three.W, start)
    assert three.n_iter == three.history["iteration"][-1] == 3
    assert three.history["iteration"][0] == 0
    assert three.history["objective"][0] == none.kept_record["objective"]


def test_a_chain_looks_twice_where_it_hands_over(problem):
    history = run(problem, SOLVERS["chain"], tol=0.0, max_iter=4).history
    assert history["iteration"].tolist() == [0, 1, 2, 2, 3, 4]
    assert history["objective"][2] == pytest.approx(history["objective"][3], rel=1e-12)


def test_a_gradient_of_exactly_zero_has_converged_whatever_tol_is():
    X, labels = np.array([[1.0], [-1.0], [-1.0], [1.0]]), [0, 0, 1, 1]
    result = run(Problem.of(X, labels, 1.0), LBFGS(), tol=0.0)
    assert (result.status, result.n_iter) == ("converged", 0)
    assert result.iterate.gradient_norm == 0.0


def test_time_limit_counts_the_solver_and_not_the_monitor(problem, validation, monkeypatch):
    clock = Clock(monkeypatch)

    def slow(iterate):
        clock.now += 50.0

    settings = {"tol": 0.0, "callbacks": [slow], "validation": validation}
    result = run(problem, Timed(clock), time_limit=10.0, **settings)
    assert result.status == "time_limit"
    assert result.history["seconds"].tolist() == [5.0, 7.0, 9.0, 11.0]
    assert "time_limit" in result.status.remedy


def test_a_solver_that_ends_has_stalled(problem):
    result = run(problem, Scripted([0.3, 0.2, 0.1], ends=True), tol=0.0)
    assert (result.status, result.n_iter, result.kept_iteration) == (Status.STALLED, 2, 2)
    assert result.W.max() == 0.1
    assert "tol" in result.status.remedy


def test_any_iterator_will_do(problem):
    class Listed:
        def iterates(self, problem, W0):
            return iter(list(Scripted([0.3, 0.2], ends=True).iterates(problem, W0)))

    result = run(problem, Listed(), tol=0.0)
    assert (result.status, result.n_iter) == (Status.STALLED, 1)


def test_a_solver_that_ends_without_an_iterate_is_named(problem):
    with pytest.raises(RuntimeError, match=r"Scripted\(.*\) ended without an iterate"):
        run(problem, Scripted([], ends=True))


def test_a_run_closes_the_solver(problem):
    closed = []

    class Open:
        def iterates(self, problem, W0):
            try:
                yield from Scripted([0.1]).iterates(problem, W0)
            finally:
                closed.append(True)

    run(problem, Open(), tol=0.0, max_iter=2)
    assert closed == [True]


def test_passes_are_those_of_the_view_that_the_solver_was_given(problem):
    W = np.zeros(problem.shape)
    views = []

    class Reading:
        """Reads X twice for an iterate; an iterate by itself says nothing about passes."""

        def iterates(self, own, W0):
            views.append(own)
            while True:
                own.at(W)
                yield measured_at(own.at(W))

    def reading(iterate):
        problem.at(W)  # a callback's reads are not the solver's

    result = run(problem, Reading(), tol=0.0, max_iter=2, callbacks=reading)
    assert result.history["passes"].tolist() == [2, 4, 6]
    assert problem.design.reads == 9
    run(problem, Reading(), tol=0.0, max_iter=0)
    first, second = views
    assert first.design is not problem.design
    assert first.workspace is not second.workspace
    assert (first.design.reads, second.design.reads) == (6, 2)
    assert first.prepared is problem.prepared
    assert next(Reading().iterates(problem, None)).passes == 0.0


def test_a_callback_can_stop(problem):
    seen = []

    def stop(iterate):
        seen.append(iterate.objective)
        return len(seen) == 3

    result = run(problem, ADMM(rho=0.1), tol=0.0, callbacks=[stop, lambda iterate: None])
    assert (result.status, result.n_iter) == ("stopped", 2)
    assert seen == list(result.history["objective"])


def test_ctrl_c_returns_the_best_so_far(problem, validation):
    result = run(problem, Scripted([0.3, 0.0, 0.5], fails_at=3), tol=0.0, validation=validation)
    assert (result.status, result.n_iter) == ("interrupted", 2)
    assert result.kept_iteration == 1


def test_ctrl_c_in_a_callback_too(problem):
    def interrupt(iterate):
        raise KeyboardInterrupt

    result = run(problem, ADMM(rho=0.1), callbacks=[interrupt])
    assert (result.status, result.n_iter) == ("interrupted", 0)


def test_ctrl_c_before_the_first_iterate_is_passed_on(problem):
    with pytest.raises(KeyboardInterrupt):
        run(problem, Scripted([0.1], fails_at=0))


def test_divergence_keeps_what_was_finite(problem):
    result = run(problem, Scripted([0.1, 0.2, np.nan]), tol=0.0, keep="last")
    assert (result.status, result.n_iter, result.kept_iteration) == ("diverged", 2, 1)
    with pytest.raises(FloatingPointError, match="first iterate of Scripted"):
        run(problem, Scripted([np.nan]))


@pytest.mark.parametrize("monitor", ["loss", "accuracy"])
def test_the_best_validation_iterate_is_kept(problem, validation, monitor):
    solver = ADMM(rho=1e-3)
    settings = {"tol": 0.0, "max_iter": 40, "validation": validation}
    best = run(problem, solver, keep="best", monitor=monitor, **settings)
    scores = best.history[f"val_{monitor}"]
    index = scores.argmin() if monitor == "loss" else scores.argmax()
    assert best.kept_iteration == index
    assert best.kept_record == list(best.history)[index]
    assert getattr(validation.evaluate(best.W), monitor) == pytest.approx(scores[index])
    last = run(problem, solver, keep="last", monitor=monitor, **settings)
    assert last.kept_iteration == 40


def test_without_validation_the_last_is_kept(problem):
    result = run(problem, Scripted([5.0, 3.0, 4.0]), tol=0.0, max_iter=2)
    assert result.kept_iteration == 2
    assert "val_loss" not in result.history.columns


def test_without_validation_nothing_above_the_start_is_kept(problem):
    steps = [0.2, 0.1, 5.0]  # F falls below that at the start, then rises above it
    best = run(problem, Scripted(steps), tol=0.0, max_iter=2)
    assert (best.kept_iteration, best.n_iter) == (1, 2)
    assert best.kept_record == list(best.history)[1]
    last = run(problem, Scripted(steps), tol=0.0, max_iter=2, keep="last")
    assert last.kept_iteration == 2
    assert last.iterate.objective > best.iterate.objective


def test_monitoring_does_not_read_the_training_rows(problem, validation):
    run(problem, ADMM(rho=0.1), tol=0.0, max_iter=5, validation=validation)
    # The Gram matrix and five iterations; ADMM itself does not look at its start, `run` does.
    assert problem.design.reads == 7
    assert validation.design.reads == 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_iter": -1}, "max_iter must be a whole number ≥ 0, got -1"),
        ({"tol": -1.0}, "tol must be a number ≥ 0, got -1.0"),
        ({"tol": np.nan}, "tol must be a number ≥ 0, got nan"),
        ({"time_limit": 0}, "time_limit must be positive or None, got 0"),
        ({"keep": "first"}, "keep must be 'best' or 'last', got 'first'"),
        ({"monitor": "auc"}, "monitor must be 'loss' or 'accuracy', got 'auc'"),
        ({"n_threads": 0}, "n_threads must be at least 1 or None, got 0"),
        ({"W0": np.full((6, 3), np.nan)}, "W0 must be finite, got NaN or infinity"),
        ({"W0": np.zeros((2, 2))}, r"W0 must have the shape \(6, 3\) of W, got \(2, 2\)"),
    ],
)
def test_bad_settings_are_named(problem, settings, message):
    with pytest.raises(ValueError, match=message):
        run(problem, ADMM(), **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_iter": 1.5}, "max_iter must be a whole number ≥ 0, got 1.5 of type float"),
        ({"max_iter": None}, "max_iter must be a whole number ≥ 0, got None"),
        ({"tol": None}, "tol must be a number ≥ 0, got None"),
        ({"tol": "tight"}, "tol must be a number ≥ 0, got 'tight' of type str"),
        ({"time_limit": "1 h"}, "time_limit must be positive or None, got '1 h'"),
    ],
)
def test_settings_of_the_wrong_type_are_named(problem, settings, message):
    with pytest.raises(TypeError, match=message):
        run(problem, ADMM(), **settings)


@pytest.mark.parametrize("answer", [True, np.True_, 1])
def test_anything_true_from_a_callback_stops(problem, answer):
    result = run(problem, ADMM(rho=0.1), callbacks=lambda iterate: answer)
    assert (result.status, result.n_iter) == ("stopped", 0)


COMMON = ["iteration", "seconds", "passes", "objective", "loss", "accuracy", "gradient_norm"]
VALIDATION = ["val_loss", "val_accuracy"]
RESIDUALS = ["primal_residual", "dual_residual", "primal_tolerance", "dual_tolerance"]
COLUMNS = [*COMMON, *VALIDATION, *RESIDUALS, "rho", "newton_steps"]


def test_history_columns_frame_and_records(problem, validation):
    history = run(problem, ADMM(rho=0.1), validation=validation).history
    assert history.columns == COLUMNS
    frame = history.to_frame()
    assert list(frame.columns) == COLUMNS
    assert len(frame) == len(history)
    assert frame["iteration"].dtype.kind == "i"
    np.testing.assert_array_equal(frame["objective"], history["objective"])
    assert history["iteration"].tolist() == list(range(len(history)))
    assert list(history)[1].keys() == set(COLUMNS)
    assert "ADMM(rho=0.1" in repr(history)
    with pytest.raises(KeyError, match="history has no column 'loos'"):
        history["loos"]


@pytest.mark.parametrize("against", ["iteration", "seconds", "passes"])
def test_history_plots_itself(problem, validation, against):
    history = run(problem, ADMM(rho=0.1), validation=validation).history
    figure = history.plot(against)
    visible = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in visible] == [
        "Loss",
        "Accuracy",
        "Largest gradient entry",
        "ADMM residuals",
    ]
    drawn = {line.get_label(): line.get_ydata() for line in visible[0].lines}
    np.testing.assert_array_equal(drawn["objective"], history["objective"])
    np.testing.assert_array_equal(drawn["validation"], history["val_loss"])
    figure.savefig(io.BytesIO())
    with pytest.raises(ValueError, match="against must be"):
        history.plot("time")


def test_history_without_residuals_hides_the_empty_panel():
    history = History("short")
    history.append({"iteration": 1, "objective": 1.0, "accuracy": 0.5, "gradient_norm": 0.1})
    assert sum(axis.get_visible() for axis in history.plot().axes) == 3


def test_silent_unless_asked(problem, capsys):
    run(problem, ADMM(rho=0.1))
    assert capsys.readouterr() == ("", "")
    run(problem, ADMM(rho=0.1), verbose=True)
    assert "converged after" in capsys.readouterr().err
