"""The paper's tables and figures, from data to report."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax._checks import check_count, check_real
from admm_softmax.estimators import SoftmaxRegressionCV
from admm_softmax.experiments import data as data_sets
from admm_softmax.experiments.data import Data
from admm_softmax.experiments.paper import METHODS, SETTINGS, Setting
from admm_softmax.experiments.protocol import Outcome, Problems, compete
from admm_softmax.path import Sweep, sweep_rho_alpha
from admm_softmax.problem import Problem
from admm_softmax.report.provenance import describe_machine, describe_versions
from admm_softmax.solvers import Solver

#: Under which the library chooses α itself.
PENALTIES = ("identity", "the paper's L")
#: The grid's values of ρ and of α, the paper's range.
GRID = np.logspace(-16, 3, 20)


@dataclass(frozen=True)
class Options:
    """How much to run.

    budget : seconds a method and seed
    leak : run seed 0 once more, with the authors' MNIST split, whose validation rows mostly
        stay among the training rows
    grid_rows : training rows of the grid; 0 leaves the grid out
    """

    budget: float = 300.0
    seeds: int = 3
    leak: bool = False
    grid_rows: int = 0
    grid_iterations: int = 20
    data_dir: str | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        check_real("budget", self.budget, "a number of seconds > 0", above=0)
        check_count("seeds", self.seeds)
        check_count("grid_iterations", self.grid_iterations)
        if self.grid_rows:
            check_count("grid_rows", self.grid_rows, "a whole number ≥ 0")


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
    """Everything a report needs.

    leaked : seed 0 with the authors' split, where that was asked for
    made : date, machine and versions of each run, by its name
    """

    setting: Setting
    options: Options
    outcomes: list[Outcome]
    leaked: list[Outcome]
    better: list[Better]
    sweep: Sweep | None
    made: dict[str, dict[str, str]]

    def to_json(self) -> dict[str, Any]:
        """As it goes into results.json."""
        grid = None if self.sweep is None else [asdict(c) for c in self.sweep.cells.values()]
        return {
            "settings": _settings(self.setting),
            "options": asdict(self.options),
            "paper": {k: v._asdict() for k, v in self.setting.reported.items()},
            "runs": [outcome.to_json() for outcome in self.outcomes],
            "authors_split": [outcome.to_json() for outcome in self.leaked],
            "better": [asdict(row) for row in self.better],
            "grid": grid,
            "made": self.made,
        }


def reproduce(name: str, out: Path, options: Options) -> Results:
    """Run an experiment, or what is left of it.

    Each finished run is kept in `out/runs`, and not repeated unless its settings changed.
    """
    setting = SETTINGS[name]
    kept = _Kept(out / "runs", options.budget)
    seeds = [_Seed(number, setting, options, out, kept) for number in range(options.seeds)]
    outcomes, better = [], []
    for seed in seeds:
        outcomes += seed.outcomes()
        better += [seed.better(penalty) for penalty in PENALTIES]
        seed.forget()
    leaked = []
    if options.leak:
        leaked = _Seed(0, setting, options, out, kept, leaky=True).outcomes()
    sweep = _grid(name, out, options) if options.grid_rows else None
    return Results(setting, options, outcomes, leaked, better, sweep, kept.made)


def write_results(results: Sequence[Results], out: Path) -> Path:
    """`results.json` in `out`: every figure, with what it depends on."""
    content = {
        "date": date.today().isoformat(),
        "machine": describe_machine(),
        "versions": describe_versions(),
        "experiments": {result.setting.name: result.to_json() for result in results},
    }
    return _write(out / "results.json", _finite(content))


@dataclass(frozen=True, eq=False)
class _Seed:
    """One draw of filters and rows; the data are loaded when a run is left to do."""

    number: int
    setting: Setting
    options: Options
    out: Path
    kept: _Kept
    leaky: bool = False

    @cached_property
    def data(self) -> Data:
        return _load(self.setting.name, self.number, self.out, self.options, self.leaky)

    @cached_property
    def problems(self) -> Problems:
        return Problems.of(self.data, self.setting.alpha)

    def outcomes(self) -> list[Outcome]:
        """Of all methods."""
        return [self._outcome(*pair) for pair in self.setting.solvers(self.number).items()]

    def _outcome(self, method: str, solver: Solver) -> Outcome:
        options = self.options
        found = self.kept(
            f"{self.number}-{_slug(method)}{'-leaky' if self.leaky else ''}",
            f"alpha = {self.setting.alpha:g}, {solver}",
            lambda: compete(
                self.problems,
                method,
                solver,
                budget=options.budget,
                seed=self.number,
                verbose=options.verbose,
            ),
        )
        return Outcome(**found)

    def better(self, penalty: str) -> Better:
        """With α chosen by the library."""
        found = self.kept(
            f"{self.number}-{_slug(penalty)}",
            f"20 alphas, {penalty}",
            lambda: choose_alpha(self.data, penalty, self.number, self.options.verbose),
        )
        return Better(**found)

    def forget(self) -> None:
        """Let the data go, for the next seed's."""
        vars(self).pop("problems", None)
        vars(self).pop("data", None)


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


def prepare(name: str, out: Path, options: Options) -> None:
    """Fetch and make what the runs will need: what is missing is missed now."""
    data_sets.prepare(
        name, data_dir=options.data_dir, cache_dir=out / "features", verbose=options.verbose
    )


def _load(name: str, seed: int, out: Path, options: Options, leaky: bool = False) -> Data:
    if name == "mnist":
        return data_sets.mnist(seed, leaky=leaky, data_dir=options.data_dir)
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


def _settings(setting: Setting) -> dict[str, Any]:
    """What every run of an experiment was given."""
    return {
        "title": setting.title,
        "alpha": setting.alpha,
        "penalty": "(alpha/2) |L W|^2 with the paper's L, intercept included; W_ref = 0, W_0 = 0",
        "methods": {method: str(solver) for method, solver in setting.solvers(0).items()},
        "kept": "the iterate with the best validation accuracy",
        "better": [f"SoftmaxRegressionCV(alphas=20), L = {penalty}" for penalty in PENALTIES],
    }


class _Kept:
    """Finished runs on disk, one file each, a folder for each budget.

    made : date, machine and versions of every run asked for
    """

    def __init__(self, folder: Path, budget: float) -> None:
        self.folder = folder / f"{budget:g}s"
        self.made: dict[str, dict[str, str]] = {}

    def __call__(self, name: str, settings: str, make: Callable[[], Any]) -> Mapping[str, Any]:
        """What is there for these settings, or what `make` makes."""
        path = self.folder / f"{name}.json"
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        if kept is None or kept["made"]["settings"] != settings:
            figures = asdict(make())
            made = {
                "settings": settings,
                "date": date.today().isoformat(),
                "machine": describe_machine(),
                "versions": describe_versions(),
            }
            kept = {"made": made, "figures": figures}
            _write(path, kept)
        self.made[name] = kept["made"]
        figures = kept["figures"]
        assert isinstance(figures, dict)
        return figures


def _finite(content: Any) -> Any:
    """None for what is no number: JSON has no name for it."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _write(path: Path, content: Mapping[str, Any]) -> Path:
    """The whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1), encoding="utf-8")
    os.replace(part, path)
    return path


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in text.lower()).strip("-")


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Over seeds; of one, the deviation is zero."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def order(outcomes: Sequence[Outcome]) -> list[str]:
    """The methods by mean test accuracy, best first."""
    means = {m: np.mean([o.test_accuracy for o in outcomes if o.method == m]) for m in METHODS}
    return sorted(METHODS, key=lambda method: -means[method])
