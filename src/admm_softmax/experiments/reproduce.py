"""The paper's experiments: run them, and collect the results that go into the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax._cached import cached_property
from admm_softmax._checks import check_count, check_real
from admm_softmax.estimators import SoftmaxRegressionCV
from admm_softmax.experiments import data as data_sets
from admm_softmax.experiments.data import Data
from admm_softmax.experiments.paper import SETTINGS, Setting
from admm_softmax.experiments.protocol import Outcome, Problems, compete, warm_up
from admm_softmax.path import Cell, Sweep, sweep_rho_alpha
from admm_softmax.problem import Problem
from admm_softmax.report.provenance import provenance
from admm_softmax.solvers import Solver, Status
from admm_softmax.storage.records import Records, write_json

#: Penalties under which the library chooses α itself, and the number of α it tries.
PENALTIES = ("identity", "the paper's L")
N_ALPHAS = 20
#: The grid's values of α, and of ρ as the paper scales it.
GRID = np.logspace(-16, 3, 20)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """How much to run.

    budget : seconds per method and seed
    authors_split : run seed 0 once more, with the authors' MNIST split, whose validation rows
        mostly stay among the training rows
    grid_rows : training rows of the grid; 0 skips the grid
    grid_iterations : iterations of ADMM in each cell
    data_dir : a folder to search before downloading
    verbose : show progress bars
    """

    budget: float = 300.0
    seeds: int = 3
    authors_split: bool = False
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
    """The result on the same features with α chosen by the library."""

    penalty: str
    seed: int
    alpha: float
    seconds: float
    fits: int
    val_accuracy: float
    test_loss: float
    test_accuracy: float


@dataclass(frozen=True)
class Grid:
    """The grid over ρ, as the paper scales it, and α.

    rows : number of training rows, and at most of validation and of test rows
    seconds : since the grid was last started or resumed
    cells : as `Cell.to_json` gives them, with the paper's ρ
    """

    rows: int
    iterations: int
    seconds: float
    cells: list[dict[str, Any]]

    @property
    def sweep(self) -> Sweep:
        """The cells as a Sweep, which can be plotted."""
        cells = {(c.rho, c.alpha): c for c in map(Cell.from_json, self.cells)}
        rhos, alphas = (np.array(sorted(set(values))) for values in zip(*cells, strict=True))
        return Sweep(rhos, alphas, cells, self.seconds)


@dataclass(frozen=True, eq=False)
class Results:
    """Everything a report needs.

    authors_split : seed 0 with the authors' split, where that was asked for
    made : settings, date, machine and versions of each run, by its name
    """

    setting: Setting
    options: Options
    outcomes: list[Outcome]
    authors_split: list[Outcome]
    better: list[Better]
    grid: Grid | None
    made: dict[str, dict[str, str]]

    def to_json(self) -> dict[str, Any]:
        """The content of results.json for this experiment."""
        return {
            "settings": _settings(self.setting),
            "options": asdict(self.options),
            "paper": {k: v._asdict() for k, v in self.setting.reported.items()},
            "runs": [asdict(outcome) for outcome in self.outcomes],
            "authors_split": [asdict(outcome) for outcome in self.authors_split],
            "better": [asdict(row) for row in self.better],
            "grid": None if self.grid is None else asdict(self.grid),
            "made": self.made,
        }


def reproduce(name: str, out: Path, options: Options, say: Say = lambda _: None) -> Results:
    """Run an experiment, or the rest of it; `say` is called with a line when a run starts.

    Each finished run is kept in `out/runs`, and not repeated unless its settings changed.
    """
    setting = SETTINGS[name]
    records = Records(out / "runs", provenance)
    outcomes, better = [], []
    for number in range(options.seeds):
        seed = _Seed(number, setting, options, records, say)
        outcomes += seed.outcomes()
        better += [seed.better(penalty) for penalty in PENALTIES]
    leaky = []
    if options.authors_split:
        leaky = _Seed(0, setting, options, records, say, leaky=True).outcomes()
    grid = _grid(setting, out, options, records, say) if options.grid_rows else None
    return Results(setting, options, outcomes, leaky, better, grid, records.made)


def write_results(results: Sequence[Results], out: Path) -> Path:
    """Write `results.json` to `out`: all results with their settings and provenance."""
    experiments = {result.setting.name: result.to_json() for result in results}
    return write_json(out / "results.json", {**provenance(), "experiments": experiments})


@dataclass(frozen=True, eq=False)
class _Seed:
    """One draw of filters and rows; the data are loaded only if a run is not on disk yet."""

    number: int
    setting: Setting
    options: Options
    records: Records
    say: Say
    leaky: bool = False

    @cached_property
    def data(self) -> Data:
        return _load(self.setting.name, self.number, self.options, self.leaky)

    @cached_property
    def problems(self) -> Problems:
        return Problems.of(self.data, self.setting.alpha)

    def outcomes(self) -> list[Outcome]:
        """One outcome per method."""
        return [self._outcome(*pair) for pair in self.setting.solvers(self.number).items()]

    def _outcome(self, method: str, solver: Solver) -> Outcome:
        budget = self.options.budget
        split = ", the authors' split" if self.leaky else ""

        def make() -> Outcome:
            problems = self.problems
            self.say(f"{self.setting.name}, seed {self.number}{split}: {method}, {budget:g} s")
            return compete(
                problems,
                method,
                solver,
                budget=budget,
                seed=self.number,
                verbose=self.options.verbose,
            )

        folder = f"{budget:g}s-authors-split" if self.leaky else f"{budget:g}s"
        settings = f"alpha = {self.setting.alpha:g}, {solver}, iterations are steps"
        return self.records(Outcome, f"{folder}/{self.number}-{_slug(method)}", settings, make)

    def better(self, penalty: str) -> Better:
        """The result with α chosen by the library."""

        def make() -> Better:
            self.say(f"{self.setting.name}, seed {self.number}: alpha by the library, L {penalty}")
            return choose_alpha(self.data, penalty, self.number, self.options.verbose)

        name = f"better/{self.number}-{_slug(penalty)}"
        return self.records(Better, name, f"{N_ALPHAS} alphas, L = {penalty}", make)


def choose_alpha(data: Data, penalty: str, seed: int, verbose: bool = False) -> Better:
    """Fit a path of penalties, and choose one by the loss on the validation rows."""
    warm_up()
    operator = None if penalty == "identity" else data.operator
    begin = time.perf_counter()
    model = SoftmaxRegressionCV(
        alphas=N_ALPHAS, operator=operator, penalize_intercept=operator is not None, verbose=verbose
    ).fit(data.train.X, data.train.y, X_val=data.validation.X, y_val=data.validation.y)
    seconds = time.perf_counter() - begin
    if model.scores_.size < N_ALPHAS or model.status_ == Status.INTERRUPTED:
        raise KeyboardInterrupt  # the fit catches it and returns part of the path
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


def _load(name: str, seed: int, options: Options, leaky: bool = False) -> Data:
    if name == "mnist":
        return data_sets.mnist(seed, leaky=leaky, data_dir=options.data_dir)
    return data_sets.cifar10(seed, data_dir=options.data_dir, verbose=options.verbose)


def _grid(setting: Setting, out: Path, options: Options, records: Records, say: Say) -> Grid:
    """The grid over (ρ, α) on the first rows, with the paper's L."""
    name = f"grid-{options.grid_rows}-{options.grid_iterations}"

    def make() -> Grid:
        data = _load(setting.name, 0, options)
        say(f"{setting.name}: the grid, {len(GRID)} × {len(GRID)} cells")
        n = min(options.grid_rows, len(data.train.y))
        train = Problem.of(
            data.train.X[:n],
            data.train.y[:n],
            n_classes=10,
            operator=data.operator,
            penalize_intercept=True,
        )
        parts = (Problem.of(part.X[:n], part.y[:n], n_classes=10) for part in data.others)
        validation, test = parts
        sweep = sweep_rho_alpha(
            train,
            n * GRID,
            GRID,
            validation=validation,
            test=test,
            max_iter=options.grid_iterations,
            directory=out / name,
            verbose=options.verbose,
        )
        cells = [
            {**sweep.cells[n * rho, alpha].to_json(), "rho": float(rho)}
            for rho in GRID
            for alpha in GRID
        ]
        return Grid(n, options.grid_iterations, sweep.seconds, cells)

    settings = f"[{GRID[0]:g}, {GRID[-1]:g}]², {len(GRID)} × {len(GRID)}"
    return records(Grid, name, settings, make)


def _settings(setting: Setting) -> dict[str, Any]:
    """The settings that all runs of an experiment share."""
    return {
        "title": setting.title,
        "features": setting.features,
        "alpha": setting.alpha,
        "penalty": "(alpha/2) |L W|^2 with the paper's L, intercept included; W_ref = 0, W_0 = 0",
        "methods": {method: str(solver) for method, solver in setting.solvers(0).items()},
        "kept": "the iterate with the best validation accuracy",
        "better": [f"SoftmaxRegressionCV(alphas={N_ALPHAS}), L = {name}" for name in PENALTIES],
    }


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in text.lower()).strip("-")
