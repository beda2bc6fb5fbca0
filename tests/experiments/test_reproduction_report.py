"""The report of the reproduction: tables, figures, and sentences that follow the results."""

from dataclasses import replace

import numpy as np
import pytest

from admm_softmax.experiments import protocol, reproduction_report
from admm_softmax.experiments.paper import METHODS, MNIST
from admm_softmax.experiments.protocol import Problems, compete
from admm_softmax.experiments.reproduce import Options, reproduce
from admm_softmax.solvers import Status, run
from tests.experiments.stand_ins import small_data
from tests.pages import assert_self_contained


def test_a_run_that_diverges_is_shown_up_to_there(results, tmp_path):
    def overflow(problem, solver, **settings):
        result = run(problem, solver, **settings)
        record = dict(list(result.history)[-1])
        result.history.append({**record, "loss": np.nan, "objective": np.nan, "val_loss": np.nan})
        return replace(result, status=Status.DIVERGED)

    problems = Problems.of(small_data(), 1e-3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "run", overflow)
        settings = {"budget": 0.05, "seed": 0, "verbose": False}
        outcome = compete(problems, "SGD", MNIST.solvers(0)["SGD"], **settings)
    assert outcome.status == "diverged"
    assert np.isfinite(outcome.history["loss"]).all()
    reproduction_report.write_report(
        [replace(results, outcomes=[*results.outcomes[:3], outcome])], tmp_path
    )


def test_the_report(small, tmp_path):
    options = Options(budget=0.1, seeds=2, grid_rows=60, grid_iterations=2)
    results = [reproduce(name, tmp_path / name, options) for name in ("mnist", "cifar10")]
    page = reproduction_report.write_report(results, tmp_path)
    html = page.read_text()
    for words in ("97.74 %", "82.90 %", "CG, held to 20 steps", "ADMM-Softmax", "±"):
        assert words in html
    assert_self_contained(html)
    tables = (tmp_path / "tables.md").read_text()
    assert "| ADMM-Softmax | 0.092, 97.74 % |" in tables
    assert "| ADMM-Softmax | 0.590, 82.90 % |" in tables
    names = {path.name for path in tmp_path.glob("*.png")}
    assert {"mnist-time.png", "mnist-newton.png", "mnist-filtered.png", "mnist-images.png"} <= names
    assert {"cifar10-time.png", "cifar10-grid.png", "cifar10-images.png"} <= names


def test_the_verdict_says_who_came_first(results):
    verdict = reproduction_report._verdict(results)
    best = max(results.outcomes, key=lambda o: o.test_accuracy)
    assert verdict.startswith(f"By test accuracy: {best.method}")
    assert ("as in the paper" in verdict) == (best.method == "ADMM-Softmax")


def with_accuracies(results, accuracies):
    """Two seeds with these test accuracies, in percent."""
    outcomes = [
        replace(outcome, seed=seed, test_accuracy=accuracies[outcome.method][seed] / 100)
        for outcome in results.outcomes
        for seed in (0, 1)
    ]
    return replace(results, outcomes=outcomes)


def test_the_verdict_knows_a_tie(results):
    far = dict.fromkeys(METHODS[2:], (90.0, 90.0))
    clear = {"ADMM-Softmax": (97.0, 97.2), "Newton-CG": (95.0, 95.2), **far}
    assert "spread of the seeds" not in reproduction_report._verdict(
        with_accuracies(results, clear)
    )
    close = {"ADMM-Softmax": (97.0, 97.2), "Newton-CG": (97.1, 97.3), **far}
    verdict = reproduction_report._verdict(with_accuracies(results, close))
    assert "Newton-CG comes first here; in the paper it is ADMM-Softmax." in verdict
    assert "0.10 points ahead of ADMM-Softmax, within the spread of the seeds" in verdict


def test_who_leads_when(results):
    history = {"seconds": [4.0, 20.0, 31.0], "val_accuracy": [0.5, 0.7, 0.6]}
    late = {"seconds": [12.0, 31.0], "val_accuracy": [0.8, 0.9]}
    outcomes = [
        replace(outcome, history=late if outcome.method == "SGD" else history)
        for outcome in results.outcomes
    ]
    table = reproduction_report.progress(
        replace(results, outcomes=outcomes, options=Options(budget=30.0))
    )
    assert table.columns == ["method", "3 s", "6 s", "10 s", "20 s", "the end"]
    assert table.rows[0][1:] == ["–", "50.00 %", "50.00 %", "70.00 %", "70.00 %"]
    assert table.rows[3][1:] == ["–", "–", "–", "80.00 %", "90.00 %"]


def test_the_gaps_to_the_paper(results):
    gaps = reproduction_report._gaps(
        with_accuracies(results, dict.fromkeys(METHODS, (97.0, 97.48)))
    )
    assert gaps.endswith("ADMM-Softmax -0.50, Newton-CG +0.78, ℓ-BFGS -0.10, SGD +0.68.")


def test_the_verdict_on_speed(results):
    (own, *_) = results.outcomes
    slow = replace(own, seconds_per_iteration=3.0, iterations=100)
    assert reproduction_report._pace([slow], results).endswith("2.0 times slower.")
    fast = replace(own, seconds_per_iteration=0.5, iterations=12)
    assert "3.0 times faster. There was time for 12 of them" in reproduction_report._pace(
        [fast], results
    )


def test_the_summary_compares_means(results):
    row = results.better[0]
    figures = {"identity": [(0.9, 0.7), (0.8, 0.6)], "the paper's L": [(0.95, 0.5), (0.7, 0.4)]}
    better = [
        replace(row, penalty=name, val_accuracy=val, test_accuracy=test)
        for name, pairs in figures.items()
        for val, test in pairs
    ]
    assert reproduction_report._in_short(replace(results, better=better)).endswith("it is 65.00 %.")


def test_deterioration_is_said_only_where_it_is():
    problems = Problems.of(small_data(), 1e-3)
    solver = MNIST.solvers(0)["Newton-CG"]
    outcome = compete(problems, "Newton-CG", solver, budget=0.2, seed=0, verbose=False)
    worse = replace(outcome, inner_residuals=[[0.5, 0.01], [0.9, 0.8], [0.9, 0.7]])
    assert reproduction_report._deterioration(worse).startswith("Newton-CG deteriorates")
    same = replace(outcome, inner_residuals=[[0.5, 0.01], [], [0.9, 0.01]])
    assert reproduction_report._deterioration(same).startswith("Newton-CG does not")


def test_a_start_alone_has_no_speed(small, tmp_path):
    results = reproduce("mnist", tmp_path, Options(budget=1e-9, seeds=1))
    assert {outcome.iterations for outcome in results.outcomes} == {0}
    reproduction_report.write_report([results], tmp_path)
    assert "give it a larger budget" in reproduction_report._verdict(results)
    assert reproduction_report.speed(results).rows[0][-1] == "–"
