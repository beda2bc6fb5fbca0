"""Passes of two versions of this library, in turns.

::

    git worktree add ../before COMMIT
    python benchmarks/versions.py ../before . [--rounds 15] [k1000 thin ...]

Each version has a process of its own, which waits while the other's runs. In its turn it makes two
passes, of which the second counts; turns begin with one version and the other. Prints milliseconds
of both, and medians of the ratios, first version / second, of wall time and of CPU time: on a
shared machine the latter leaves out what other jobs took.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

SHAPES = {
    "large": (40_000, 7056, 10, "float32"),
    "thin": (200_000, 50, 10, "float32"),
    "k100": (45_000, 768, 100, "float32"),
    "k100-double": (25_000, 768, 100, "float64"),
    "k300": (20_000, 768, 300, "float32"),
    "k1000": (12_811, 384, 1000, "float32"),
    "k30": (45_000, 768, 30, "float32"),
    "k50": (20_000, 384, 50, "float32"),
}


def wait_for_turns(name):
    """Make two passes for every line that comes, and print the seconds of the second."""
    from admm_softmax import Problem  # noqa: PLC0415  (of the version that PYTHONPATH names)

    n, d, K, dtype = SHAPES[name]
    rng = np.random.default_rng(0)
    problem = Problem.of(rng.standard_normal((n, d), dtype=dtype), np.arange(n) % K, 1e-3)
    W = 0.01 * rng.standard_normal(problem.shape)
    problem.at(W)
    print("ready", flush=True)
    for _ in sys.stdin:
        problem.at(W)
        wall, cpu = time.perf_counter(), time.process_time()
        problem.at(W)
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


def started(tree, name):
    """The process of a version, ready for its first turn."""
    source = str(Path(tree).resolve() / "src")
    process = subprocess.Popen(
        [sys.executable, __file__, "--wait", name],
        env={**os.environ, "PYTHONPATH": source}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    return process


def compare(trees, name, rounds):
    versions = [started(tree, name) for tree in trees]
    times = np.empty((rounds, 2, 2))
    for k in range(rounds):
        for i in (0, 1) if k % 2 else (1, 0):
            versions[i].stdin.write("turn\n")
            versions[i].stdin.flush()
            times[k, i] = [float(word) for word in versions[i].stdout.readline().split()]
    for version in versions:
        version.stdin.close()
        version.wait()
    first, second = 1e3 * np.median(times[:, :, 0], axis=0)
    wall, cpu = np.median(times[:, 0] / times[:, 1], axis=0)
    print(f"| {name} | {first:.1f} | {second:.1f} | {wall:.2f} | {cpu:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("trees", nargs="*", help="two checkouts, then names of shapes")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--wait", choices=SHAPES, help=argparse.SUPPRESS)
    asked = parser.parse_intermixed_args()
    if asked.wait:
        wait_for_turns(asked.wait)
        return
    if len(asked.trees) < 2:
        parser.error("two checkouts are needed")
    print("| pass | first, ms | second, ms | wall time | CPU time |\n|---|---|---|---|---|")
    for name in asked.trees[2:] or SHAPES:
        compare(asked.trees[:2], name, asked.rounds)


if __name__ == "__main__":
    main()
