"""The reproduction, on small stand-ins for the images: protocol, what is kept, the report."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from admm_softmax import ADMM, SGD, HessianLBFGS, NewtonCG, operators
from admm_softmax.cli import main
from admm_softmax.datasets import Images
from admm_softmax.experiments import data as data_sets
from admm_softmax.experiments import protocol, reproduction_report
from admm_softmax.experiments import reproduce as module
from admm_softmax.experiments.data import Data, Part, split_rows
from admm_softmax.experiments.paper import CIFAR10, METHODS, MNIST
from admm_softmax.experiments.protocol import Problems, compete
from admm_softmax.experiments.reproduce import Options, choose_alpha, reproduce, write_results
from admm_softmax.features import AlexNetPool5, RandomConvolution
from admm_softmax.solvers import Status, run
from tests.pages import assert_self_contained


def small_data(n=240, d=12):
    random = np.random.default_rng(0)
    centres = random.standard_normal((10, d))

    def part(count, noise):
        y = np.arange(count) % 10
        X = centres[y] + noise * random.standard_normal((count, d))
        return Part(X.astype(np.float32), y)

    L = data_sets._with_intercept(operators.laplacian((3, 4)))
    return Data(part(n, 0.6), part(100, 0.6), part(100, 0.6), L)


def small_images(name):
    labels = np.repeat(np.arange(10), 6)
    shape = (60, 28, 28) if name == "mnist" else (60, 32, 32, 3)
    images = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    names = tuple("abcdefghij")
    return Images(name, "made up", names, images, labels, images, labels)


@pytest.fixture
def small(monkeypatch):
    """Small data instead of the images, everything else as it is."""
    data = small_data()
    loaded = []

    def load(name, seed, options, leaky=False):
        loaded.append("leaky" if leaky else seed)
        return data

    monkeypatch.setattr(module, "_load", load)
    monkeypatch.setattr(data_sets, "load_mnist", lambda data_dir: small_images("mnist"))
    monkeypatch.setattr(module, "GRID", np.logspace(-4, 0, 4))
    monkeypatch.setattr(reproduction_report, "load_mnist", lambda data_dir: small_images("mnist"))
    monkeypatch.setattr(
        reproduction_report, "load_cifar10", lambda data_dir: small_images("cifar10")
    )
    return loaded


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One seed, a short run of each method."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_load", lambda *_: small_data())
        options = Options(budget=0.05, seeds=1)
        return reproduce("mnist", tmp_path_factory.mktemp("results"), options)


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(0).integers(0, 10, 60_000)


def test_the_clean_split_is_one(labels):
    for seed in (0, 1):
        train, validation = split_rows(labels, seed)
        assert len(train) == 40_000
        assert len(np.union1d(train, validation)) == 50_000
        np.testing.assert_array_equal(np.bincount(labels[validation]), np.full(10, 1000))
    assert set(split_rows(labels, 0)[0]) <= set(range(50_000))
    assert not np.array_equal(split_rows(labels, 1)[0], split_rows(labels, 2)[0])


@pytest.mark.parametrize("seed", [0, 1])
def test_the_authors_split_leaks(labels, seed):
    train, validation = split_rows(labels, seed, leaky=True)
    clean, same = split_rows(labels, seed)
    np.testing.assert_array_equal(validation, same)
    assert len(np.unique(train)) == 40_000
    assert 6000 < len(np.intersect1d(train, validation)) < 8000  # most of the 10,000
    assert np.isin(train, np.union1d(clean, validation)).all()


def test_the_papers_settings():
    solvers = MNIST.solvers(seed=2)
    assert tuple(solvers) == METHODS == tuple(MNIST.reported)
    assert solvers["ADMM-Softmax"] == ADMM(rho=40_000 * 1e-7, start="paper")
    assert solvers["Newton-CG"] == NewtonCG(20, 1e-2)
    assert solvers["ℓ-BFGS"] == HessianLBFGS(10, 20, 1e-2)
    sgd = SGD(0.1, batch_size=300, momentum=0.9, nesterov=False, schedule="constant", seed=2)
    assert solvers["SGD"] == sgd
    assert MNIST.alpha == 1e-6
    assert CIFAR10.alpha == 0.1
    assert CIFAR10.solvers(0)["ADMM-Softmax"].rho == pytest.approx(40_000 * 8e-12)
    assert CIFAR10.solvers(2)["SGD"] == replace(sgd, learning_rate=0.01)
    assert [tuple(r) for r in MNIST.reported.values()] == [
        (0.092, 0.9774),
        (0.13, 0.9646),
        (0.093, 0.9734),
        (0.113, 0.9656),
    ]
    assert [tuple(r) for r in CIFAR10.reported.values()] == [
        (0.590, 0.8290),
        (0.534, 0.8158),
        (0.584, 0.8103),
        (0.664, 0.8079),
    ]


def check_operator(L, side, n_maps):
    """Five-point Laplacians with spacing 1 / side and a 1, divided by the number of columns."""
    n = n_maps * side**2
    assert L.shape == (n + 1, n + 1)
    dense = L[: 2 * side**2, : 2 * side**2].toarray() * n / side**2
    np.testing.assert_allclose(np.abs(np.diag(dense)), 4)
    np.testing.assert_allclose(np.abs(dense[0, [1, side]]), 1)
    assert dense[side - 1, side] == 0  # the next line of the image
    assert not dense[: side**2, side**2 :].any()  # another map
    assert L[n, n] == pytest.approx(1 / n)


def test_mnist_as_the_paper_has_it(monkeypatch, labels):
    pixels = np.zeros((60_000, 28, 28), np.uint8)
    pixels[:, 14, 14] = 51
    test = pixels[:20]
    images = Images("mnist", "made up", tuple("abcdefghij"), pixels, labels, test, labels[:20])
    monkeypatch.setattr(data_sets, "load_mnist", lambda data_dir: images)
    monkeypatch.setattr(
        data_sets, "split_rows", lambda *_, leaky: (np.arange(30, 70), np.arange(5))
    )
    data = data_sets.mnist(seed=3)
    assert [part.X.shape for part in (data.train, *data.others)] == [
        (40, 7056),
        (5, 7056),
        (20, 7056),
    ]
    assert data.train.X.dtype == np.float32
    np.testing.assert_array_equal(data.train.y, labels[30:70])
    filters = RandomConvolution(random_state=3).fit(np.zeros((1, 28, 28))).filters_
    maps = data.train.X[0].reshape(9, 28, 28)
    assert np.count_nonzero(maps) == 81
    np.testing.assert_allclose(
        sorted(np.arctanh(maps[maps != 0])), sorted(51 / 255 * filters.ravel()), rtol=1e-4
    )
    check_operator(data.operator, 28, 9)


def test_cifar10_as_the_paper_has_it(monkeypatch):
    labels = np.random.default_rng(1).integers(0, 10, 50_000)
    pixels = np.zeros((50_000, 1, 1, 3), np.uint8)
    images = Images(
        "cifar10", "made up", tuple("abcdefghij"), pixels, labels, pixels[:7], labels[:7]
    )
    monkeypatch.setattr(data_sets, "load_cifar10", lambda data_dir: images)

    def features(images, **_):
        return np.arange(50_000, dtype=np.float32)[:, None], np.zeros((7, 1), np.float32)

    monkeypatch.setattr(data_sets, "alexnet_features", features)
    data = data_sets.cifar10(0)
    np.testing.assert_array_equal(data.train.X[:, 0], np.arange(40_000))  # batches 1 to 4
    np.testing.assert_array_equal(data.validation.X[:, 0], np.arange(40_000, 50_000))
    np.testing.assert_array_equal(data.validation.y, labels[40_000:])
    assert data.test.X.shape == (7, 1)
    check_operator(data.operator, 6, 256)
    other = data_sets.cifar10(1)
    rows = np.concatenate([other.train.X[:, 0], other.validation.X[:, 0]])
    np.testing.assert_array_equal(np.sort(rows), np.arange(50_000))
    assert len(other.train.y) == 40_000
    assert 7000 < np.count_nonzero(other.validation.X[:, 0] < 40_000) < 9000
    np.testing.assert_array_equal(other.train.y, labels[other.train.X[:, 0].astype(int)])


def test_features_of_cifar10_are_standardised_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("ADMM_SOFTMAX_CACHE", str(tmp_path))
    monkeypatch.setattr(data_sets, "alexnet_weights", lambda data_dir: zero_weights())
    seen = []

    def compute(self, images, weights):
        seen.append(len(images))
        return np.random.default_rng(len(images)).random((len(images), 9216), np.float32)

    monkeypatch.setattr(AlexNetPool5, "_compute", compute)
    images = small_images("cifar10")
    images = replace(images, test_images=images.test_images[:5])
    for _ in range(2):
        train, test = data_sets.alexnet_features(images)
        assert (train.shape, test.shape) == ((60, 9216), (5, 9216))
        np.testing.assert_allclose(train.mean(axis=1), 0, atol=1e-5)
        np.testing.assert_allclose(train.std(axis=1), 1, rtol=1e-3)
    assert seen == [60, 5]
    assert len(list((tmp_path / "features").iterdir())) == 2


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
    assert len(stored["made"]) == 13  # four methods and two penalties a seed, and the grid
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
    assert reproduction_report._deterioration(worse).startswith("Newton-CG deteriorates")
    same = replace(outcome, inner_residuals=[[0.5, 0.01], [], [0.9, 0.01]])
    assert reproduction_report._deterioration(same).startswith("Newton-CG does not")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["all", "--budget=0"], "budget must be a number of seconds > 0, got 0"),
        (["all", "--seeds=0"], "seeds must be a whole number ≥ 1, got 0"),
        (["all", "--grid-rows=-3"], "grid_rows must be a whole number ≥ 0, got -3"),
        (["cifar10", "--authors-split"], "--authors-split is for mnist"),
        (["mnist", "--grid-rows=5"], "--grid-rows is for cifar10"),
    ],
)
def test_the_command_refuses(arguments, words, tmp_path, capsys):
    assert main(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_refused_at_once(small, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["reproduce", "mnist", "--out", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err
    assert small == []


def test_ctrl_c_ends_the_command_in_a_line(small, tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(data_sets, "prepare", interrupted)
    assert main(["reproduce", "mnist", "--out", str(tmp_path)]) == 130
    assert "Interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["demo"], ["reproduce", "mnist"]])
def test_the_command_says_what_to_install(command, monkeypatch, capsys, tmp_path):
    for name in ("digits", "reproduction_report"):
        monkeypatch.delitem(sys.modules, f"admm_softmax.experiments.{name}", raising=False)
    monkeypatch.delitem(sys.modules, "admm_softmax.report.page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main([*command, "--out", str(tmp_path)]) == 1
    assert "pip install 'admm-softmax[report]'" in capsys.readouterr().err


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


def test_a_start_alone_has_no_speed(small, tmp_path):
    results = reproduce("mnist", tmp_path, Options(budget=1e-9, seeds=1))
    assert {outcome.iterations for outcome in results.outcomes} == {0}
    reproduction_report.write_report([results], tmp_path)
    assert "give it a larger budget" in reproduction_report._verdict(results)
    assert reproduction_report.speed(results).rows[0][-1] == "–"


def test_results_are_strict_json(results, tmp_path):
    outcome = replace(results.outcomes[0], test_loss=float("nan"))
    written = write_results([replace(results, outcomes=[outcome])], tmp_path).read_text()

    def refuse(constant):
        raise AssertionError(constant)

    json.loads(written, parse_constant=refuse)
