"""Passes and fits of two versions of this library, in turns.

::

    git worktree add ../before COMMIT
    python benchmarks/versions.py ../before . [--rounds 15] [k1000 thin fit-tall ...]

Each version has a process of its own, which waits while the other's runs. In its turn it makes two
passes, of which the second counts, or one fit; turns begin with one version and the other. Prints
milliseconds of both, and medians of the ratios, first version / second, of wall time and of CPU
time: on a shared machine the latter leaves out what other jobs took. "images" are looked for in
$ADMM_SOFTMAX_DATA, as 100 principal components.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from benchmark_utils.generators import embedding_like, planted

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


def principal_components():
    from admm_softmax.datasets import load_mnist  # noqa: PLC0415

    images = load_mnist()
    X = images.train_images.reshape(60_000, -1) / 255.0
    X -= X.mean(axis=0)
    X = X @ np.linalg.eigh(X.T @ X)[1][:, -100:]
    return (X / X.std(axis=0)).astype(np.float32), images.train_labels


#: Rows, labels, α and tol of whole fits.
FITS = {
    "fit-images": (principal_components, 1e-4, 1e-4),
    "fit-images-tight": (principal_components, 1e-5, 1e-6),
    "fit-tall": (lambda: planted(200_000, 50, 10), 1e-3, 1e-4),
    "fit-tall-two": (lambda: planted(200_000, 50, 2), 1e-4, 1e-4),
    "fit-embedding": (lambda: embedding_like(60_000, 100, 50), 1e-4, 1e-5),
    "fit-embedding-wide": (lambda: embedding_like(20_000, 384, 50), 1e-4, 1e-5),
    "fit-middle": (lambda: planted(20_000, 60, 10), 1e-5, 1e-5),
}


def pass_of(name):
    """Makes two passes, and returns the seconds of the second."""
    from admm_softmax import Problem  # noqa: PLC0415  (of the version that PYTHONPATH names)

    n, d, K, dtype = SHAPES[name]
    rng = np.random.default_rng(0)
    problem = Problem.of(rng.standard_normal((n, d), dtype=dtype), np.arange(n) % K, 1e-3)
    W = 0.01 * rng.standard_normal(problem.shape)

    def turn():
        problem.at(W)
        return seconds_of(lambda: problem.at(W))

    return turn


def fit_of(name):
    """Makes one fit, and returns its seconds."""
    from admm_softmax import SoftmaxRegression  # noqa: PLC0415  (of the version, as above)

    data, alpha, tol = FITS[name]
    X, y = data()[:2]
    return lambda: seconds_of(lambda: SoftmaxRegression(alpha, tol=tol).fit(X, y))


def seconds_of(call):
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def wait_for_turns(name):
    """A turn for every line that comes; prints its seconds."""
    turn = pass_of(name) if name in SHAPES else fit_of(name)
    turn()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(*turn(), flush=True)


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
    parser.add_argument("--wait", choices=[*SHAPES, *FITS], help=argparse.SUPPRESS)
    asked = parser.parse_intermixed_args()
    if asked.wait:
        wait_for_turns(asked.wait)
        return
    if len(asked.trees) < 2:
        parser.error("two checkouts are needed")
    print("| pass or fit | first, ms | second, ms | wall time | CPU time |\n|---|---|---|---|---|")
    for name in asked.trees[2:] or SHAPES:
        compare(asked.trees[:2], name, asked.rounds)


if __name__ == "__main__":
    main()
