"""The one loop: clock, stopping, history, the best iterate, callbacks."""

import io
import time
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import pytest
from rich.console import Console

from admm_softmax import ADMM, Iterate, Problem, Status, run
from admm_softmax.solvers.history import History
from admm_softmax.solvers.progress import Progress
from tests.problems import make


@dataclass(frozen=True)
class Scripted:
    """A solver that walks along given weights."""

    steps: list = field(default_factory=list)
    pause: float = 0.0
    fails_at: int | None = None

    def iterates(self, problem, W0):
        for k in count():
            if k == self.fails_at:
                raise KeyboardInterrupt
            time.sleep(self.pause)
            W = np.full(problem.shape, float(self.steps[min(k, len(self.steps) - 1)]))
            W[:, 0] = 0.0
            objective = np.nan if np.isnan(W).any() else problem.objective(W)
            yield Iterate(W, objective, objective, 0.5, gradient_norm=1.0 / (k + 1), passes=k + 1)


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
    assert result.n_iter == len(result.history) == result.kept_iteration


def test_iteration_limit(problem):
    result = run(problem, ADMM(rho=0.1), tol=0.0, max_iter=7)
    assert (result.status, result.n_iter) == ("iteration_limit", 7)
    assert "max_iter" in result.status.remedy


def test_time_limit_counts_the_solver_and_not_the_monitor(problem):
    def slow(iterate):
        time.sleep(0.05)

    result = run(problem, Scripted([0.1], pause=0.002), tol=0.0, time_limit=0.02, callbacks=[slow])
    assert result.status == "time_limit"
    # Ten pauses at most; if the callbacks' time counted, the first iteration would be the last.
    assert 3 <= result.n_iter <= 10
    seconds = result.history["seconds"]
    assert np.all(np.diff(seconds) > 0)
    assert np.diff(seconds).max() < 0.05


def test_a_callback_can_stop(problem):
    seen = []

    def stop(iterate):
        seen.append(iterate.objective)
        return len(seen) == 3

    result = run(problem, ADMM(rho=0.1), tol=0.0, callbacks=[stop, lambda iterate: None])
    assert (result.status, result.n_iter) == ("stopped", 3)
    assert seen == list(result.history["objective"])


def test_ctrl_c_returns_the_best_so_far(problem, validation):
    result = run(problem, Scripted([0.3, 0.0, 0.5], fails_at=3), tol=0.0, validation=validation)
    assert (result.status, result.n_iter) == ("interrupted", 3)
    assert result.kept_iteration == 2


def test_ctrl_c_in_a_callback_too(problem):
    def interrupt(iterate):
        raise KeyboardInterrupt

    result = run(problem, ADMM(rho=0.1), callbacks=[interrupt])
    assert (result.status, result.n_iter) == ("interrupted", 1)


def test_ctrl_c_before_the_first_iterate_is_passed_on(problem):
    with pytest.raises(KeyboardInterrupt):
        run(problem, Scripted([0.1], fails_at=0))


def test_divergence_keeps_what_was_finite(problem):
    result = run(problem, Scripted([0.1, 0.2, np.nan]), tol=0.0)
    assert (result.status, result.n_iter, result.kept_iteration) == ("diverged", 3, 2)
    with pytest.raises(FloatingPointError, match="first iterate of Scripted"):
        run(problem, Scripted([np.nan]))


@pytest.mark.parametrize("monitor", ["loss", "accuracy"])
def test_the_best_validation_iterate_is_kept(problem, validation, monitor):
    solver = ADMM(rho=1e-3)
    settings = {"tol": 0.0, "max_iter": 40, "validation": validation}
    best = run(problem, solver, keep="best", monitor=monitor, **settings)
    scores = best.history[f"val_{monitor}"]
    index = scores.argmin() if monitor == "loss" else scores.argmax()
    assert best.kept_iteration == index + 1
    assert getattr(validation.evaluate(best.W), monitor) == pytest.approx(scores[index])
    last = run(problem, solver, keep="last", monitor=monitor, **settings)
    assert last.kept_iteration == 40


def test_without_validation_the_last_is_kept(problem):
    result = run(problem, Scripted([0.0, 5.0]), tol=0.0, max_iter=2)
    assert result.kept_iteration == 2
    assert "val_loss" not in result.history.columns


def test_monitoring_does_not_read_the_training_rows(problem, validation):
    run(problem, ADMM(rho=0.1), tol=0.0, max_iter=5, validation=validation)
    assert problem.design.reads == 6
    assert validation.design.reads == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_iter": 0}, "max_iter must be a whole number ≥ 1, got 0"),
        ({"tol": -1.0}, "tol must be a number ≥ 0, got -1.0"),
        ({"tol": np.nan}, "tol must be a number ≥ 0, got nan"),
        ({"time_limit": 0}, "time_limit must be positive or None, got 0"),
        ({"keep": "first"}, "keep must be 'best' or 'last', got 'first'"),
        ({"monitor": "auc"}, "monitor must be 'loss' or 'accuracy', got 'auc'"),
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
        ({"max_iter": 1.5}, "max_iter must be a whole number ≥ 1, got 1.5 of type float"),
        ({"max_iter": None}, "max_iter must be a whole number ≥ 1, got None"),
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
    assert (result.status, result.n_iter) == ("stopped", 1)


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
    assert next(iter(history))["iteration"] == 1
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


RECORD = {"iteration": 3, "objective": 0.5, "gradient_norm": 1e-3, "val_accuracy": 0.9}


def test_progress_on_a_terminal_is_a_bar():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with Progress(True, 10, console=console) as progress:
        progress.update(RECORD)
        progress.finish("converged", RECORD)
    text = console.file.getvalue()
    assert "1/10" in text
    assert "converged after 3 iterations" in text
    assert "90.00 %" in text


def test_progress_elsewhere_is_a_few_lines(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=False, width=120)
    monkeypatch.setattr("admm_softmax.solvers.progress.SECONDS_BETWEEN_LINES", 0.0)
    with Progress(True, 10, console=console) as progress:
        progress.update(RECORD)
        progress.finish("converged", RECORD)
    assert console.file.getvalue().splitlines() == [
        "iteration 1 of 10: objective 0.5, gradient 1.0e-03, validation 90.00 %",
        "converged after 3 iterations: objective 0.5, gradient 1.0e-03, validation 90.00 %",
    ]


def test_progress_counts_seconds_where_time_is_limited(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=False, width=120)
    monkeypatch.setattr("admm_softmax.solvers.progress.SECONDS_BETWEEN_LINES", 0.0)
    with Progress(True, 1000, 2.5, console) as progress:
        for seconds in (0.4, 1.9, 7.0):
            progress.update({**RECORD, "seconds": seconds})
    starts = [line.partition(":")[0] for line in console.file.getvalue().splitlines()]
    assert starts == ["second 0 of 3", "second 1 of 3", "second 3 of 3"]


def test_silent_unless_asked(problem, capsys):
    run(problem, ADMM(rho=0.1))
    assert capsys.readouterr() == ("", "")
    run(problem, ADMM(rho=0.1), verbose=True)
    assert "converged after" in capsys.readouterr().err
