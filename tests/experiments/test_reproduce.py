"""The reproduction, on small stand-ins for the images: protocol, and what is kept."""

import json
from dataclasses import replace

import numpy as np
import pytest

from admm_softmax.experiments import protocol, reproduction_report
from admm_softmax.experiments import reproduce as module
from admm_softmax.experiments.paper import METHODS, MNIST
from admm_softmax.experiments.protocol import Problems, compete
from admm_softmax.experiments.reproduce import Options, choose_alpha, reproduce, write_results
from admm_softmax.solvers import run
from tests.experiments.stand_ins import small_data


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_what_validates_best(method):
    problems = Problems.of(small_data(), 1e-3)
    solver = MNIST.solvers(0)[method]
    outcome = compete(problems, method, solver, budget=1.5, seed=0, verbose=False)
    accuracies = outcome.history["val_accuracy"]
    assert outcome.val_accuracy == pytest.approx(max(accuracies), abs=1e-6)
    assert outcome.kept_iteration == int(np.argmax(accuracies))
    assert outcome.status in ("time_limit", "stalled")
    assert 0.5 < outcome.test_accuracy <= 1
    assert len(outcome.history["seconds"]) == 1 + outcome.iterations
    assert not problems.train.prepared.has_gram  # nothing is left for the next method
    assert any(outcome.inner_residuals) == (method in ("Newton-CG", "ℓ-BFGS"))


def test_results_are_complete_and_not_repeated(small, tmp_path):
    options = Options(budget=0.1, seeds=2, grid_rows=60, grid_iterations=3)
    results = reproduce("mnist", tmp_path, options)
    assert small == [0, 1, 0]  # two seeds, and the grid
    assert len(results.outcomes) == 8
    assert len(results.better) == 4
    assert len(results.grid.sweep.cells) == 16
    assert results.grid.rows == 60
    stored = json.loads(write_results([results], tmp_path).read_text())
    assert {"versions", "machine", "date"} <= set(stored)
    stored = stored["experiments"]["mnist"]
    assert stored["options"]["budget"] == 0.1
    assert stored["settings"]["alpha"] == MNIST.alpha
    assert "rho=0.004" in stored["settings"]["methods"]["ADMM-Softmax"]
    assert stored["paper"]["SGD"]["accuracy"] == 0.9656
    assert stored["runs"][0]["history"]["seconds"]
    assert len(stored["made"]) == 13  # four methods and two penalties per seed, and the grid
    assert {"date", "machine", "versions"} <= set(stored["made"]["0.1s/1-sgd"])
    assert len(stored["grid"]["cells"]) == 16
    again = reproduce("mnist", tmp_path, Options(budget=0.1, seeds=2))
    assert len(small) == 3
    assert again.outcomes == results.outcomes
    again = reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1))
    assert len(small) == 4  # another budget is another run
    assert again.better == results.better[:2]  # which does not depend on it


def test_other_settings_are_another_run(small, tmp_path, monkeypatch):
    reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1))
    reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1))
    assert len(small) == 1
    monkeypatch.setitem(module.SETTINGS, "mnist", replace(MNIST, rho=1e-2))
    results = reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1))
    assert len(small) == 2
    assert "rho=0.01" in results.outcomes[0].solver


def test_the_leak_is_shown_beside_the_clean_split(small, tmp_path):
    options = Options(budget=0.05, seeds=1, authors_split=True)
    results = reproduce("mnist", tmp_path, options)
    assert small == [0, "leaky"]
    assert [outcome.method for outcome in results.authors_split] == list(METHODS)
    table = reproduction_report.leak(results)
    own, leaky = results.outcomes[1], results.authors_split[1]
    assert table.rows[1] == [
        "Newton-CG",
        *(
            f"{100 * accuracy:.2f} %"
            for o in (own, leaky)
            for accuracy in (o.val_accuracy, o.test_accuracy)
        ),
    ]
    assert "authors' split" in reproduction_report._leak(results).heading
    reproduce("mnist", tmp_path, options)
    assert len(small) == 2


def test_the_grid_is_in_the_papers_units(small, tmp_path):
    options = Options(budget=0.05, seeds=1, grid_rows=60, grid_iterations=2)
    grid = reproduce("cifar10", tmp_path, options).grid
    assert {cell["rho"] for cell in grid.cells} == set(module.GRID)
    assert {cell["alpha"] for cell in grid.cells} == set(module.GRID)
    data, (rho, alpha) = small_data(), (1e-4, 1e-4)
    X = np.hstack([data.train.X[:60], np.ones((60, 1))]).astype(np.float64)
    L = data.operator.toarray()
    expected = np.linalg.cond(rho * X.T @ X + alpha * L.T @ L)
    assert grid.sweep.cells[rho, alpha].condition == pytest.approx(expected, rel=0.01)
    whole = reproduce("cifar10", tmp_path, replace(options, grid_rows=9999)).grid
    assert whole.rows == 240  # all there are


def test_half_a_run_is_not_kept(small, tmp_path, monkeypatch):
    def interrupted(*arguments, validation, **settings):
        def press(_):
            raise KeyboardInterrupt

        return run(*arguments, validation=validation, callbacks=press, **settings)

    protocol.warm_up()
    monkeypatch.setattr(protocol, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce("mnist", tmp_path, Options(budget=60, seeds=1))
    assert list(tmp_path.rglob("*.json")) == []


@pytest.mark.parametrize(("fits", "status"), [(7, None), (20, "interrupted")])
def test_half_a_path_is_not_kept(fits, status, monkeypatch):
    def fit(self, *_, **__):
        self.scores_, self.status_ = np.zeros((1, fits)), status
        return self

    protocol.warm_up()

    monkeypatch.setattr(module.SoftmaxRegressionCV, "fit", fit)
    with pytest.raises(KeyboardInterrupt):
        choose_alpha(small_data(), "identity", 0)


def test_results_are_strict_json(results, tmp_path):
    outcome = replace(results.outcomes[0], test_loss=float("nan"))
    written = write_results([replace(results, outcomes=[outcome])], tmp_path).read_text()

    def refuse(constant):
        raise AssertionError(constant)

    json.loads(written, parse_constant=refuse)
