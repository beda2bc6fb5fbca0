"""Passes and fits of two versions of this library, in turns.

::

    git worktree add ../before COMMIT
    python benchmarks/versions.py ../before . [--rounds 15] [k1000 thin fit-tall ...]

Names are those of `turns.py`; without any, its SHAPES. Prints milliseconds of both, and medians of
the ratios, first version / second, of wall time and of CPU time: on a shared machine the latter
leaves out what other jobs took.
"""

import argparse

import numpy as np
from turns import SHAPES, take_turns


def compare(trees, name, rounds):
    times = take_turns(trees, name, rounds)
    first, second = 1e3 * np.median(times[:, :, 0], axis=0)
    wall, cpu = np.median(times[:, 0] / times[:, 1], axis=0)
    print(f"| {name} | {first:.2f} | {second:.2f} | {wall:.2f} | {cpu:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("trees", nargs="*", help="two checkouts, then names of tasks")
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_intermixed_args()
    if len(asked.trees) < 2:
        parser.error("two checkouts are needed")
    print("| pass or fit | first, ms | second, ms | wall time | CPU time |\n|---|---|---|---|---|")
    for name in asked.trees[2:] or SHAPES:
        compare(asked.trees[:2], name, asked.rounds)


if __name__ == "__main__":
    main()
