"""The paper's tables and figures, from data to report."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax._parallel import cpu_count
from admm_softmax.estimators import SoftmaxRegressionCV
from admm_softmax.experiments import data as data_sets
from admm_softmax.experiments.data import Data
from admm_softmax.experiments.paper import METHODS, SETTINGS, Setting
from admm_softmax.experiments.protocol import Outcome, Problems, compete
from admm_softmax.path import Sweep, sweep_rho_alpha
from admm_softmax.problem import Problem
from admm_softmax.report.page import describe_versions
from admm_softmax.solvers import Solver

#: Under which the library chooses α itself.
PENALTIES = ("identity", "the paper's L")
#: The grid's values of ρ and of α, the paper's range.
GRID = np.logspace(-16, 3, 20)


@dataclass(frozen=True)
class Options:
    """How much to run.

    budget : seconds a method and seed
    leaky : the authors' MNIST split, whose validation rows mostly stay among the training rows
    grid_rows : training rows of the grid; 0 leaves the grid out
    """

    budget: float = 300.0
    seeds: int = 3
    leaky: bool = False
    grid_rows: int = 0
    grid_iterations: int = 20
    data_dir: str | None = None
    verbose: bool = False


@dataclass(frozen=True)
class Better:
    """What the library makes of the same features when it chooses α itself."""

    penalty: str
    seed: int
    alpha: float
    seconds: float
    fits: int
    val_accuracy: float
    test_loss: float
    test_accuracy: float


@dataclass(frozen=True, eq=False)
class Results:
    """Everything a report needs."""

    setting: Setting
    options: Options
    outcomes: list[Outcome]
    better: list[Better]
    sweep: Sweep | None

    def to_json(self) -> dict[str, Any]:
        """As it goes into results.json."""
        grid = None if self.sweep is None else [asdict(c) for c in self.sweep.cells.values()]
        return {
            "experiment": self.setting.name,
            "date": date.today().isoformat(),
            "machine": f"{platform.machine()}, {cpu_count()} cores",
            "versions": describe_versions(),
            "options": asdict(self.options),
            "paper": {k: v._asdict() for k, v in self.setting.reported.items()},
            "runs": [outcome.to_json() for outcome in self.outcomes],
            "better": [asdict(row) for row in self.better],
            "grid": grid,
        }


def reproduce(name: str, out: Path, options: Options) -> Results:
    """Run an experiment, or what is left of it, and write `results.json` into `out`.

    Each finished run is kept in `out/runs` and not repeated.
    """
    setting = SETTINGS[name]
    kept = _Kept(out / "runs", options)
    outcomes, better = [], []
    for number in range(options.seeds):
        seed = _Seed(number, setting, options, out)
        for method, solver in setting.solvers(number).items():
            found = kept(f"{number}-{_slug(method)}", partial(seed.compete, method, solver))
            outcomes.append(Outcome(**found))
        for penalty in PENALTIES:
            found = kept(f"{number}-{_slug(penalty)}", partial(seed.choose_alpha, penalty))
            better.append(Better(**found))
    sweep = _grid(name, out, options) if options.grid_rows else None
    results = Results(setting, options, outcomes, better, sweep)
    _write(out / "results.json", results.to_json())
    return results


@dataclass(frozen=True, eq=False)
class _Seed:
    """One draw of filters and rows; the data are loaded when a run is left to do."""

    number: int
    setting: Setting
    options: Options
    out: Path

    @cached_property
    def data(self) -> Data:
        return _load(self.setting.name, self.number, self.out, self.options)

    @cached_property
    def problems(self) -> Problems:
        return Problems.of(self.data, self.setting.alpha)

    def compete(self, method: str, solver: Solver) -> Outcome:
        return compete(
            self.problems,
            method,
            solver,
            budget=self.options.budget,
            seed=self.number,
            verbose=self.options.verbose,
        )

    def choose_alpha(self, penalty: str) -> Better:
        return choose_alpha(self.data, penalty, self.number, self.options.verbose)


def choose_alpha(data: Data, penalty: str, seed: int, verbose: bool = False) -> Better:
    """A path of 20 penalties, chosen by the loss on the validation rows."""
    operator = None if penalty == "identity" else data.operator
    begin = time.perf_counter()
    model = SoftmaxRegressionCV(
        alphas=20, operator=operator, penalize_intercept=operator is not None, verbose=verbose
    ).fit(data.train.X, data.train.y, X_val=data.validation.X, y_val=data.validation.y)
    seconds = time.perf_counter() - begin
    return Better(
        penalty=penalty,
        seed=seed,
        alpha=model.alpha_,
        seconds=seconds,
        fits=model.scores_.size,
        val_accuracy=float((model.predict(data.validation.X) == data.validation.y).mean()),
        test_loss=-model.score(data.test.X, data.test.y),
        test_accuracy=float((model.predict(data.test.X) == data.test.y).mean()),
    )


def _load(name: str, seed: int, out: Path, options: Options) -> Data:
    if name == "mnist":
        return data_sets.mnist(seed, leaky=options.leaky, data_dir=options.data_dir)
    return data_sets.cifar10(
        seed, data_dir=options.data_dir, cache_dir=out / "features", verbose=options.verbose
    )


def _grid(name: str, out: Path, options: Options) -> Sweep:
    """The grid over (ρ, α) on the first rows, with the paper's L."""
    data = _load(name, 0, out, options)
    rows = slice(0, options.grid_rows)
    train = Problem.of(
        data.train.X[rows],
        data.train.y[rows],
        n_classes=10,
        operator=data.operator,
        penalize_intercept=True,
    )
    others = [
        Problem.of(part.X[rows], part.y[rows], n_classes=10)
        for part in (data.validation, data.test)
    ]
    return sweep_rho_alpha(
        train,
        GRID,
        GRID,
        validation=others[0],
        test=others[1],
        max_iter=options.grid_iterations,
        directory=out / f"grid-{options.grid_rows}-{options.grid_iterations}",
        verbose=options.verbose,
    )


class _Kept:
    """Finished runs on disk, one file each, under the options that they depend on."""

    def __init__(self, folder: Path, options: Options) -> None:
        split = "-leaky" if options.leaky else ""
        self.folder = folder / f"{options.budget:g}s{split}"

    def __call__(self, name: str, make: Callable[[], Any]) -> Mapping[str, Any]:
        """What is there, or what `make` makes."""
        path = self.folder / f"{name}.json"
        if path.exists():
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found
        made = asdict(make())
        _write(path, made)
        return made


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """The whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1), encoding="utf-8")
    os.replace(part, path)


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in text.lower()).strip("-")


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Over seeds; of one, the deviation is zero."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def order(outcomes: Sequence[Outcome]) -> list[str]:
    """The methods by mean test accuracy, best first."""
    means = {m: np.mean([o.test_accuracy for o in outcomes if o.method == m]) for m in METHODS}
    return sorted(METHODS, key=lambda method: -means[method])
