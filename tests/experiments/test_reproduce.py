"""The reproduction, on small stand-ins for the images: protocol, what is kept, the report."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from admm_softmax import ADMM, HessianLBFGS, NewtonCG, operators
from admm_softmax.cli import main
from admm_softmax.datasets import Images
from admm_softmax.experiments import data as data_sets
from admm_softmax.experiments import reproduce as module
from admm_softmax.experiments import story
from admm_softmax.experiments.data import Data, Part, split_rows
from admm_softmax.experiments.paper import CIFAR10, METHODS, MNIST
from admm_softmax.experiments.protocol import Problems, compete
from admm_softmax.experiments.reproduce import Options, reproduce, write_results

RNG = np.random.default_rng(0)


def small_data(n=240, d=12):
    centres = RNG.standard_normal((10, d))

    def part(count, noise):
        y = np.arange(count) % 10
        X = centres[y] + noise * RNG.standard_normal((count, d))
        return Part(X.astype(np.float32), y)

    L = data_sets._with_intercept(operators.laplacian((3, 4)))
    return Data("mnist", part(n, 0.6), part(100, 0.6), part(100, 0.6), L)


def small_images(name):
    labels = np.repeat(np.arange(10), 6)
    shape = (60, 28, 28) if name == "mnist" else (60, 32, 32, 3)
    images = RNG.integers(0, 256, shape, dtype=np.uint8)
    names = tuple("abcdefghij")
    return Images(name, "made up", names, images, labels, images, labels)


@pytest.fixture
def small(monkeypatch):
    """Small data instead of the images, everything else as it is."""
    data = small_data()
    loaded = []

    def load(name, seed, out, options, leaky=False):
        loaded.append("leaky" if leaky else seed)
        return data

    monkeypatch.setattr(module, "_load", load)
    monkeypatch.setattr(data_sets, "load_mnist", lambda data_dir: small_images("mnist"))
    monkeypatch.setattr(module, "GRID", np.logspace(-4, 0, 4))
    monkeypatch.setattr(story, "load_mnist", lambda data_dir: small_images("mnist"))
    monkeypatch.setattr(story, "load_cifar10", lambda data_dir: small_images("cifar10"))
    return loaded


def test_the_clean_split_is_one():
    labels = RNG.integers(0, 10, 60_000)
    for seed in (0, 1):
        train, validation = split_rows(labels, seed)
        assert len(train) == 40_000
        assert len(np.union1d(train, validation)) == 50_000
        np.testing.assert_array_equal(np.bincount(labels[validation]), np.full(10, 1000))
    assert set(split_rows(labels, 0)[0]) <= set(range(50_000))
    assert not np.array_equal(split_rows(labels, 1)[0], split_rows(labels, 2)[0])


def test_the_authors_split_leaks():
    labels = RNG.integers(0, 10, 60_000)
    train, validation = split_rows(labels, leaky=True)
    assert len(train) == 40_000
    np.testing.assert_array_equal(np.bincount(labels[validation]), np.full(10, 1000))
    assert len(np.intersect1d(train, validation)) > 5000  # most of the 10,000


def test_the_papers_settings():
    solvers = MNIST.solvers(seed=2)
    assert tuple(solvers) == METHODS == tuple(MNIST.reported)
    assert solvers["ADMM-Softmax"] == ADMM(rho=40_000 * 1e-7)
    assert solvers["Newton-CG"] == NewtonCG(20, 1e-2)
    assert solvers["ℓ-BFGS"] == HessianLBFGS(10, 20, 1e-2)
    assert (solvers["SGD"].learning_rate, solvers["SGD"].seed) == (0.1, 2)
    assert CIFAR10.solvers(0)["ADMM-Softmax"].rho == pytest.approx(40_000 * 8e-12)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_what_validates_best(method):
    problems = Problems.of(small_data(), 1e-3)
    solver = MNIST.solvers(0)[method]
    outcome = compete(problems, method, solver, budget=0.3, seed=0, verbose=False)
    accuracies = outcome.history["val_accuracy"]
    assert outcome.val_accuracy == pytest.approx(max(accuracies), abs=1e-6)
    assert outcome.kept_iteration == 1 + int(np.argmax(accuracies))
    assert outcome.status in ("time_limit", "stalled")
    assert 0.5 < outcome.test_accuracy <= 1
    assert len(outcome.history["seconds"]) == outcome.iterations
    assert problems.train.cache == {}  # nothing is left for the next method
    assert any(outcome.inner_residuals) == (method in ("Newton-CG", "ℓ-BFGS"))


def test_results_are_complete_and_not_repeated(small, tmp_path):
    options = Options(budget=0.1, seeds=2, grid_rows=60, grid_iterations=3)
    results = reproduce("mnist", tmp_path, options)
    assert small == [0, 1, 0]  # two seeds, and the grid
    assert len(results.outcomes) == 8
    assert len(results.better) == 4
    assert len(results.sweep.cells) == 16
    stored = json.loads(write_results([results], tmp_path).read_text())
    assert {"versions", "machine", "date"} <= set(stored)
    stored = stored["experiments"]["mnist"]
    assert stored["options"]["budget"] == 0.1
    assert stored["settings"]["alpha"] == MNIST.alpha
    assert "rho=0.004" in stored["settings"]["methods"]["ADMM-Softmax"]
    assert stored["paper"]["SGD"]["accuracy"] == 0.9656
    assert stored["runs"][0]["history"]["seconds"]
    assert len(stored["made"]) == 12  # four methods and two penalties a seed
    assert {"date", "machine", "versions"} <= set(stored["made"]["1-sgd"])
    assert len(stored["grid"]) == 16
    again = reproduce("mnist", tmp_path, Options(budget=0.1, seeds=2))
    assert len(small) == 3
    assert again.outcomes == results.outcomes
    reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1))
    assert len(small) == 4  # another budget is another run


def test_other_settings_are_another_run(small, tmp_path, monkeypatch):
    reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1))
    reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1))
    assert len(small) == 1
    monkeypatch.setitem(module.SETTINGS, "mnist", replace(MNIST, rho=1e-2))
    results = reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1))
    assert len(small) == 2
    assert "rho=0.01" in results.outcomes[0].solver


def test_the_leak_is_shown_beside_the_clean_split(small, tmp_path):
    results = reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1, leak=True))
    assert small == [0, "leaky"]
    assert [outcome.method for outcome in results.leaked] == list(METHODS)
    table = story.leak(results)
    own, leaked = results.outcomes[1], results.leaked[1]
    assert table.rows[1] == [
        "Newton-CG",
        *(
            f"{100 * accuracy:.2f} %"
            for o in (own, leaked)
            for accuracy in (o.val_accuracy, o.test_accuracy)
        ),
    ]
    assert "authors' split" in story._leak(results).heading
    reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1, leak=True))
    assert len(small) == 2


def test_the_report(small, tmp_path):
    options = Options(budget=0.1, seeds=2, grid_rows=60, grid_iterations=2)
    results = [reproduce(name, tmp_path / name, options) for name in ("mnist", "cifar10")]
    page = story.write_report(results, tmp_path)
    html = page.read_text()
    for words in ("97.74 %", "82.90 %", "CG, held to 20 steps", "ADMM-Softmax", "±"):
        assert words in html
    assert "http" not in html.replace("http-equiv", "")
    tables = (tmp_path / "tables.md").read_text()
    assert "| ADMM-Softmax | 0.092, 97.74 % |" in tables
    assert "| ADMM-Softmax | 0.590, 82.90 % |" in tables
    names = {path.name for path in tmp_path.glob("*.png")}
    assert {"mnist-time.png", "mnist-newton.png", "mnist-filtered.png", "mnist-images.png"} <= names
    assert {"cifar10-time.png", "cifar10-grid.png", "cifar10-images.png"} <= names


def test_the_verdict_says_who_came_first(small, tmp_path):
    results = reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1))
    verdict = story._verdict(results)
    best = max(results.outcomes, key=lambda o: o.test_accuracy)
    assert verdict.startswith(f"By test accuracy: {best.method}")
    assert ("as in the paper" in verdict) == (best.method == "ADMM-Softmax")


def test_the_command(small, tmp_path, capsys):
    arguments = ["reproduce", "mnist", "--out", str(tmp_path), "--budget", "0.05", "--seeds", "1"]
    assert main([*arguments, "--quiet"]) == 0
    printed = capsys.readouterr().out
    assert "ADMM-Softmax" in printed
    assert "report.html" in printed
    assert set(json.loads((tmp_path / "results.json").read_text())["experiments"]) == {"mnist"}


def test_deterioration_is_said_only_where_it_is():
    problems = Problems.of(small_data(), 1e-3)
    solver = MNIST.solvers(0)["Newton-CG"]
    outcome = compete(problems, "Newton-CG", solver, budget=0.2, seed=0, verbose=False)
    worse = replace(outcome, inner_residuals=[[0.5, 0.01], [0.9, 0.8], [0.9, 0.7]])
    assert story._deterioration(worse).startswith("Newton-CG deteriorates")
    same = replace(outcome, inner_residuals=[[0.5, 0.01], [], [0.9, 0.01]])
    assert story._deterioration(same).startswith("Newton-CG does not")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--budget", "0", "budget must be a number of seconds > 0, got 0"),
        ("--seeds", "0", "seeds must be a whole number ≥ 1, got 0"),
        ("--grid-rows", "-3", "grid_rows must be a whole number ≥ 0, got -3"),
    ],
)
def test_the_command_refuses(option, value, words, tmp_path, capsys):
    assert main(["reproduce", "all", "--out", str(tmp_path), f"{option}={value}"]) == 1
    assert words in capsys.readouterr().err


def test_what_is_missing_is_missed_before_the_first_run(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data_sets, "load_cifar10", lambda data_dir: small_images("cifar10"))
    monkeypatch.setattr(data_sets, "alexnet_weights", lambda data_dir: zero_weights())
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["reproduce", "all", "--out", str(tmp_path), "--quiet"]) == 1
    assert "AlexNetPool5 needs torch: pip install" in capsys.readouterr().err
    assert small == []


def zero_weights():
    shapes = [(64, 3, 11, 11), (192, 64, 5, 5), (384, 192, 3, 3), (256, 384, 3, 3)]
    shapes.append((256, 256, 3, 3))
    return {
        f"{name}{k}": np.zeros(size, np.float32)
        for k, shape in enumerate(shapes)
        for name, size in (("weight", shape), ("bias", shape[:1]))
    }


def test_a_single_iteration_has_no_speed(small, tmp_path):
    results = reproduce("mnist", tmp_path, Options(budget=1e-9, seeds=1))
    assert {outcome.iterations for outcome in results.outcomes} == {1}
    story.write_report([results], tmp_path)
    assert "times faster" not in story._verdict(results)
    assert story.speed(results).rows[0][-1] == "–"


def test_results_are_strict_json(small, tmp_path):
    results = reproduce("mnist", tmp_path, Options(budget=0.05, seeds=1))
    outcome = replace(results.outcomes[0], test_loss=float("nan"))
    written = write_results([replace(results, outcomes=[outcome])], tmp_path).read_text()

    def refuse(constant):
        raise AssertionError(constant)

    json.loads(written, parse_constant=refuse)
