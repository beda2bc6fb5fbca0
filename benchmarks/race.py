"""How long until F is as low as scikit-learn's lbfgs leaves it with its default tol?

::

    ADMM_SOFTMAX_DATA=FOLDER python benchmarks/race.py [--alpha 1e-3] [--limit 400]
    python benchmarks/race.py --features embedding-100 --out FILE

The paper's MNIST features, 40,000 × 7056 and an intercept, ten classes, float32; or made
embeddings, 45,000 × 768 with a hundred classes. The solvers are those of the benchmark, in
solvers/. Every peer is warmed up by short fits, which also choose between one thread and one per
core, and then runs until it is there: by its own tolerance, or point by point where it can be
stopped, or it gives up after the limit. scikit-learn-intelex and cyanure are restarted with more
and more iterations; between the last two numbers the one that suffices is searched by halves, down
to a twentieth. Each peer has one such run on the clock, as it takes minutes. "auto" runs before,
between and after, up to five times, and its median counts; "admm" runs once. Writes
benchmarks/results/race.md.
"""

import argparse
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmark_utils.tables import RESULTS, heading, publish
from datasets import embedding, images
from objective import Objective
from solvers import cyanure, ours, sklearn, sklearnex, torch

#: The tol that LogisticRegression has by default.
DEFAULT_TOL = 1e-4
#: More iterations are not waited for.
MOST_ITERATIONS = 10_000

#: Features of MNIST's images, and the shape of made ones.
IMAGES, EMBEDDING = ("convolutions", "pixels"), "embedding-100"


def data(features, n_rows):
    """X and y."""
    if features == EMBEDDING:
        return embedding.Dataset.get_instance(shape=EMBEDDING).get_data()
    return images.Dataset.get_instance(set="mnist", features=features, n_rows=n_rows).get_data()


class Outcome(NamedTuple):
    seconds: float
    value: float
    work: str
    threads: int


class Race:
    def __init__(self, X, y, alpha, limit):
        self.limit, self.target = limit, np.inf
        self.judge = Objective.get_instance(alpha=alpha)
        self.judge.set_data(X, y)

    def solver(self, module, **parameters):
        """A solver of the benchmark, warmed up on the data."""
        solver = module.Solver.get_instance(**parameters)
        solver.set_objective(**self.judge.get_objective())
        return solver

    def outcome(self, solver, seconds):
        value = self.judge.evaluate_result(**solver.get_result())["value"]
        return Outcome(seconds, value, solver.work, solver.threads)

    def over(self, outcome):
        return outcome.value <= self.target or outcome.seconds > self.limit

    def once(self, solver):
        """A run until the default tol is met."""
        solver.tol = DEFAULT_TOL
        return self._run(solver, MOST_ITERATIONS)

    def restarted(self, solver, first, step):
        """The run with the fewest iterations that gets there, to a twentieth of them.

        Tried are first, first + step, …, and then the last interval is halved.
        """
        low, high = 0, first
        while not self.over(outcome := self._run(solver, high)):
            low, high = high, high + step
            if high >= MOST_ITERATIONS:
                raise RuntimeError(f"not there after {low} iterations")
        while outcome.value <= self.target and high - low > max(1, high // 20):
            middle = (low + high) // 2
            tried = self._run(solver, middle)
            if tried.value <= self.target:
                high, outcome = middle, tried
            else:
                low = middle
        return outcome

    def stepped(self, solver):
        """One run, judged at every point of its curve while the clock stands still."""
        outcomes, clock = [], {"begin": time.perf_counter()}

        def callback():
            pause = time.perf_counter()
            outcomes.append(self.outcome(solver, pause - clock["begin"]))
            clock["begin"] += time.perf_counter() - pause
            return not self.over(outcomes[-1])

        solver.run(callback)
        return outcomes[-1]

    def _run(self, solver, iterations):
        begin = time.perf_counter()
        solver.run(iterations - 1)  # benchopt counts from zero
        return self.outcome(solver, time.perf_counter() - begin)


def run_all(race, target, only):
    """Outcomes by name, ours between the peers."""
    outcomes = defaultdict(list)

    def record(name, outcome):
        outcomes[name].append(outcome)
        took, value, work, threads = outcome
        print(f"{name}: {took:.1f} s, F = {value:.6f}, {work}, threads: {threads}", flush=True)

    if target is None:
        outcome = race.once(race.solver(sklearn, solver="lbfgs"))
        record("scikit-learn lbfgs, default tol", outcome)
        target = outcome.value
    race.target = target
    peers = {
        "torch LBFGS": lambda: race.stepped(race.solver(torch)),
        "scikit-learn-intelex lbfgs": lambda: race.restarted(race.solver(sklearnex), 100, 50),
        "scikit-learn newton-cg, default tol": lambda: race.once(
            race.solver(sklearn, solver="newton-cg")
        ),
        "cyanure": lambda: race.restarted(race.solver(cyanure), 10, 5),
    }
    auto = race.solver(ours, solver="auto")
    record("admm-softmax auto", race.stepped(auto))
    for name, peer in peers.items():
        if not only or name.startswith(tuple(only)):
            record(name, peer())
            record("admm-softmax auto", race.stepped(auto))
    record("admm-softmax admm", race.stepped(race.solver(ours, solver="admm")))
    return outcomes


def table(outcomes, target):
    """Solvers by their median time."""
    took = {name: float(np.median([o.seconds for o in runs])) for name, runs in outcomes.items()}
    lines = ["| solver | threads | seconds | F | | times ours |", "|---|---|---|---|---|---|"]
    for name in sorted(took, key=took.get):
        first, times = outcomes[name][0], took[name] / took["admm-softmax auto"]
        there = "" if first.value <= target * (1 + 1e-9) else " (not there)"
        lines.append(
            f"| {name} | {first.threads} | {took[name]:.1f}{there} | {first.value:.6f} | "
            f"{first.work} | {times:.1f} |"
        )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--alpha", type=float, default=1e-3)
    parser.add_argument("--limit", type=float, default=400.0)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--features", choices=[*IMAGES, EMBEDDING], default=IMAGES[0])
    parser.add_argument("--target", type=float, help="where lbfgs ended, if that is known")
    parser.add_argument("--only", nargs="*", help="peers whose names begin so")
    parser.add_argument("--out", type=Path, default=RESULTS / "race.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    arrays = data(arguments.features, arguments.rows)
    race = Race(**arrays, alpha=arguments.alpha, limit=arguments.limit)
    outcomes = run_all(race, arguments.target, arguments.only)
    n, d = arrays["X"].shape
    words = (
        f"{n:,} × {d + 1}, K = {arrays['y'].max() + 1}, float32, alpha = {arguments.alpha:g}. "
        "Threads are the better of one and one per core, by short fits. A peer runs once, "
        "a restarted one with up to a twentieth of its iterations too many; auto has the median of "
        "several runs. "
        f"To reach F = {race.target:.6f}:"
    )
    publish(arguments.out, heading("race.py", words), table(outcomes, race.target))


if __name__ == "__main__":
    main()
