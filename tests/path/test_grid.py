"""The grid over (ρ, α): each cell is ADMM alone, extremes are survived, finished cells are kept."""

import json
import signal

import numpy as np
import pytest

from admm_softmax import ADMM, Problem, operators, penalties, run, sweep_rho_alpha
from admm_softmax.path import grid
from admm_softmax.solvers.least_squares import Cholesky, Spectral
from tests.problems import make

RHOS, ALPHAS = np.logspace(-3, 0, 4), np.logspace(-4, 1, 6)


@pytest.fixture
def problems():
    X, y = make(240, 6, 3)
    L = operators.gradient(6)
    return (
        Problem.of(X[:120], y[:120], operator=L),
        Problem.of(X[120:180], y[120:180], n_classes=3),
        Problem.of(X[180:], y[180:], n_classes=3),
    )


@pytest.mark.parametrize("strategy", ["cholesky", "spectral"])
def test_a_cell_is_admm_alone(problems, strategy, monkeypatch):
    monkeypatch.setattr(
        grid, "eigenproblem_cost", lambda d: 0 if strategy == "spectral" else np.inf
    )
    made = []
    for kind in (Cholesky, Spectral):
        original = kind.prepare
        monkeypatch.setattr(
            kind, "prepare", lambda self, p, o=original: made.append(type(self)) or o(self, p)
        )
    problem, validation, test = problems
    sweep = sweep_rho_alpha(problem, RHOS, ALPHAS, validation=validation, test=test, max_iter=12)
    assert set(made) == {Spectral if strategy == "spectral" else Cholesky}
    for (rho, alpha), cell in sweep.cells.items():
        alone = run(
            problem.with_alpha(alpha),
            ADMM(rho=rho, least_squares="qr"),
            max_iter=12,
            tol=0.0,
            validation=validation,
            monitor="accuracy",
        )
        # Another factorisation, other last digits: which of two equals is kept may differ.
        there = list(alone.history)[cell.kept_iteration]
        assert cell.objective == pytest.approx(there["objective"], rel=1e-8)
        assert cell.val_loss == pytest.approx(there["val_loss"], rel=1e-7)
        best = alone.history["val_accuracy"].max()
        assert abs(cell.val_accuracy - best) <= 1.5 / validation.design.n_rows
        if cell.kept_iteration == alone.kept_iteration:
            assert cell.test_loss == pytest.approx(test.evaluate(alone.W).loss, rel=1e-7)
        H = rho * problem.gram() + alpha * problem.penalty.quadratic.LtL.toarray()
        assert cell.condition == pytest.approx(np.linalg.cond(H), rel=5e-3)


def test_cells_of_one_ratio_share_a_factorisation(problems, monkeypatch):
    problem, validation, _ = problems
    made = []
    original = Cholesky.prepare
    monkeypatch.setattr(
        Cholesky, "prepare", lambda self, p: made.append(p.penalty.alpha) or original(self, p)
    )
    values = np.logspace(-3, 1, 5)
    monkeypatch.setattr(grid, "eigenproblem_cost", lambda d: np.inf)
    before = problem.design.reads
    sweep_rho_alpha(problem, values, values, validation=validation, max_iter=5)
    assert len(made) == len(set(np.round(np.log10(made), 6))) == 9
    # One read for the Gram matrix, then for each diagonal the start and five iterations.
    assert problem.design.reads - before == 1 + 9 * 6


def test_the_papers_extremes(problems):
    problem, validation, test = problems
    values = np.logspace(-16, 3, 8)
    sweep = sweep_rho_alpha(problem, values, values, validation=validation, test=test, max_iter=8)
    statuses = {cell.status for cell in sweep.cells.values()}
    assert statuses <= {"iteration_limit", "stalled", "diverged", "unsolvable"}
    condition = sweep.table("condition")
    assert (condition >= 1).all()
    assert sweep.best.val_accuracy > 0.6
    assert sweep.table("val_accuracy").shape == (8, 8)


def test_cells_that_cannot_be_solved_say_so():
    X, y = make(80, 3, 3)
    twice = np.column_stack([X, X])  # singular but for the penalty
    problem, validation = Problem.of(twice[:40], y[:40]), Problem.of(twice[40:], y[40:])
    sweep = sweep_rho_alpha(problem, [1e3], [1e-16, 1.0], validation=validation, max_iter=3)
    bad, good = sweep.cells[1e3, 1e-16], sweep.cells[1e3, 1.0]
    assert bad.status == "unsolvable"
    assert "Cholesky" in bad.reason
    assert bad.condition == np.inf
    assert np.isnan(bad.val_accuracy)
    assert good.status == "iteration_limit"
    assert sweep.best is good
    assert len(sweep.plot().axes) == 4  # two panels with their colour bars
    alone = sweep_rho_alpha(problem, [1e3], [1e-16], validation=validation, max_iter=3)
    with pytest.raises(ValueError, match="no cell of the grid could be solved"):
        _ = alone.best


def test_an_interrupted_sweep_goes_on(problems, tmp_path, monkeypatch):
    problem, validation, test = problems
    settings = {"validation": validation, "test": test, "max_iter": 4, "directory": tmp_path}
    whole = sweep_rho_alpha(problem, RHOS, ALPHAS, validation=validation, test=test, max_iter=4)
    original, runs = grid._Work.run, []

    def interrupted(self, pairs, n_ratios):
        runs.append(pairs)
        if len(runs) == 4:
            raise KeyboardInterrupt
        return original(self, pairs, n_ratios)

    monkeypatch.setattr(grid._Work, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep_rho_alpha(problem, RHOS, ALPHAS, **settings)
    file = tmp_path / "cells.jsonl"
    done = sum(len(pairs) for pairs in runs[:3])
    assert len(file.read_text().splitlines()) == 1 + done
    with file.open("a") as stream:
        stream.write('{"rho": 0.1, "al\n{"rho": 0.1, "alp')  # damaged, and cut off in the middle
    sweep = sweep_rho_alpha(problem, RHOS, ALPHAS, **settings)
    assert sum(len(pairs) for pairs in runs[4:]) == len(whole.cells) - done
    for pair, cell in whole.cells.items():
        assert sweep.cells[pair].val_loss == pytest.approx(cell.val_loss, rel=1e-9)
    count = len(runs)
    again = sweep_rho_alpha(problem, RHOS, ALPHAS, **settings)
    assert len(runs) == count
    np.testing.assert_array_equal(again.table("objective"), sweep.table("objective"))
    strict = [line for line in file.read_text().splitlines() if not line.endswith('"al')]
    assert not any("NaN" in line or "Infinity" in line for line in strict)
    assert all(json.loads(line) for line in strict)


@pytest.mark.parametrize(
    "line", ["{}", '{"rho": 0.1}', "[1, 2]", '{"rho": "a", "alpha": 0.1}', "null", "\\xff"]
)
def test_lines_that_are_no_cells_are_dropped(problems, tmp_path, line):
    problem, validation, _ = problems
    settings = {"validation": validation, "max_iter": 2, "directory": tmp_path}
    before = sweep_rho_alpha(problem, [0.1], [0.1, 1.0], **settings)
    file = tmp_path / "cells.jsonl"
    first, *cells = file.read_text().splitlines()
    wrong = json.loads(cells[0]) | {"alpha": None}
    lines = [first, line, json.dumps(wrong), *cells[1:]]
    file.write_text("\n".join(lines) + "\n")
    after = sweep_rho_alpha(problem, [0.1], [0.1, 1.0], **settings)
    np.testing.assert_array_equal(after.table("objective"), before.table("objective"))
    assert len(file.read_text().splitlines()) == len(lines) + 1


def test_a_damaged_first_line_is_said_so(problems, tmp_path):
    problem, validation, _ = problems
    settings = {"validation": validation, "max_iter": 2, "directory": tmp_path}
    sweep_rho_alpha(problem, [0.1], [0.1], **settings)
    file = tmp_path / "cells.jsonl"
    content = file.read_text()
    for damaged in ("{" + content, content.split("\n", 1)[1]):
        file.write_text(damaged)
        with pytest.raises(ValueError, match=r"the first line of .*cells\.jsonl is damaged"):
            sweep_rho_alpha(problem, [0.1], [0.1], **settings)
        assert file.read_text() == damaged
    file.write_text("")
    sweep_rho_alpha(problem, [0.1], [0.1], **settings)  # nothing is lost in an empty file


@pytest.mark.parametrize("change", ["max_iter", "rows", "labels", "penalty"])
def test_a_sweep_of_something_else_is_refused(problems, tmp_path, change):
    problem, validation, _ = problems
    sweep_rho_alpha(problem, [0.1], [0.1], validation=validation, max_iter=2, directory=tmp_path)
    original = problem.design.gather(problem.labels)
    X, y = problem.design.X.copy(), original.copy()
    if change == "rows":
        X[3, 2] += 1e-9
    if change == "labels":
        y[5] = (y[5] + 1) % 3
    L = None if change == "penalty" else operators.gradient(6)
    other = Problem.of(X, y, operator=L)
    max_iter = 3 if change == "max_iter" else 2
    named = {"max_iter": "max_iter was 2, is 3 now", "rows": "X: other", "labels": "y: other"}
    expected = named.get(change, "operator: other values than before")
    with pytest.raises(ValueError, match=rf"belongs to another call \({expected}"):
        sweep_rho_alpha(
            other, [0.1], [0.1], validation=validation, max_iter=max_iter, directory=tmp_path
        )
    same = Problem.of(problem.design.X.copy(), original, operator=operators.gradient(6))
    sweep_rho_alpha(same, [0.1], [0.1], validation=validation, max_iter=2, directory=tmp_path)


def test_operators_of_other_patterns_are_others(problems, tmp_path):
    _, validation, _ = problems
    X, y = problems[0].design.X, problems[0].design.gather(problems[0].labels)
    settings = {"validation": validation, "max_iter": 2, "directory": tmp_path}
    first = Problem.of(X, y, operator=np.diag([1.0, 2, 0, 0, 0, 0]))
    other = Problem.of(X, y, operator=np.diag([0, 0, 0, 0, 1.0, 2]))
    sweep_rho_alpha(first, [1.0], [1.0], **settings)
    with pytest.raises(ValueError, match="operator: other values"):
        sweep_rho_alpha(other, [1.0], [1.0], **settings)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("count", [1, 3])
def test_ctrl_c_ends_a_sweep_and_keeps_no_half_cells(problems, tmp_path, count, monkeypatch):
    problem, validation, _ = problems
    original, calls = grid.run, []

    def pressed(*arguments, **settings):
        calls.append(1)
        late = len(calls) > count

        def press(iterate):
            if late and iterate.passes > 3:
                signal.raise_signal(signal.SIGINT)

        return original(*arguments, **settings, callbacks=press)

    monkeypatch.setattr(grid, "run", pressed)
    rhos = np.logspace(-2, 0, 3)[:count]
    alphas = np.unique([10.0**k * rho for rho in rhos for k in (0, 1)])
    settings = {"validation": validation, "max_iter": 10, "directory": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        sweep_rho_alpha(problem, rhos, alphas, **settings)
    lines = (tmp_path / "cells.jsonl").read_text().splitlines()[1:]
    assert lines
    assert {json.loads(line)["status"] for line in lines} == {"iteration_limit"}


def test_unsolvable_cells_survive_the_disk(tmp_path):
    X, y = make(80, 3, 3)
    twice = np.column_stack([X, X])
    problem, validation = Problem.of(twice[:40], y[:40]), Problem.of(twice[40:], y[40:])
    settings = {"validation": validation, "max_iter": 3, "directory": tmp_path}
    first = sweep_rho_alpha(problem, [1e3], [1e-16], **settings)
    again = sweep_rho_alpha(problem, 1e3, 1e-16, **settings)
    cell = again.cells[1e3, 1e-16]
    assert (cell.status, cell.condition) == ("unsolvable", np.inf)
    assert cell.reason == first.cells[1e3, 1e-16].reason


def test_a_frame_and_a_picture(problems, tmp_path):
    problem, validation, test = problems
    sweep = sweep_rho_alpha(problem, RHOS, ALPHAS, validation=validation, test=test, max_iter=3)
    assert len(sweep.to_frame()) == 24
    figure = sweep.plot()
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    condition = "Condition of the W-step's matrix"
    assert titles[:3] == ["Validation accuracy", "Test accuracy", condition]
    figure.savefig(tmp_path / "grid.png")


def test_bad_grids(problems):
    problem, validation, _ = problems
    with pytest.raises(ValueError, match=r"rhos\[0\] must be positive, got -1"):
        sweep_rho_alpha(problem, [-1], [1], validation=validation)
    with pytest.raises(ValueError, match="alphas must hold at least one number, got none"):
        sweep_rho_alpha(problem, [1], [], validation=validation)
    with pytest.raises(
        TypeError, match="solver must have rho and least_squares, as ADMM has, got 'admm'"
    ):
        sweep_rho_alpha(problem, [1], [1], validation=validation, solver="admm")


def test_a_penalty_with_kinks_is_refused():
    X, y = make(40, 4, 3)
    problem = Problem.of(X, y, 0.1, penalty=penalties.Lasso())
    with pytest.raises(ValueError, match="needs a smooth penalty: under Lasso the matrix"):
        sweep_rho_alpha(problem, [0.5], [0.1], validation=problem)
