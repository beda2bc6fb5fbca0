"""Passes over float16 and bfloat16 against float32, and the memory that they take.

Prints seconds per gradient pass (least and median of several, in turns), the ratio to float32,
the peak of memory above X during passes, and the largest relative difference from the float32
copy: after a pass, and of F and W after a short fit without a Gram matrix.

    python benchmarks/half_precision.py --rows 40000 --columns 7056 --classes 10
"""

import argparse
import threading
import time
from pathlib import Path

import numpy as np

from admm_softmax import LBFGS, Problem, as_design, run
from admm_softmax.design import HalfDesign


class Peak:
    """The most memory that this process has held within a block, above what it held before."""

    def __enter__(self):
        self.before = self.most = resident()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.over.wait(0.002):
            self.most = max(self.most, resident())

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()
        self.bytes = self.most - self.before


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def relative(found, expected):
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("rows", 40_000), ("columns", 7056), ("classes", 10), ("rounds", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    n, d, K = args.rows, args.columns, args.classes
    rng = np.random.default_rng(0)
    X = np.empty((n, d), np.float16)
    for i in range(0, n, 1000):
        X[i : i + 1000] = rng.standard_normal((len(X[i : i + 1000]), d), dtype=np.float32)
    y = rng.integers(0, K, n)
    W = 0.01 * rng.standard_normal((d + 1, K))
    narrow = Problem.of(X, y, 1e-3, n_classes=K)
    small = Problem.of(X[:4000], y[:4000], 1e-3, n_classes=K)
    small.at(W)  # compiled
    with Peak() as passes:
        first = narrow.at(W)
    with Peak() as fits:
        fit = run(narrow, LBFGS(), max_iter=8, tol=0.0)
    wide = X.astype(np.float32)
    bits = (wide.view(np.uint32) >> 16).astype(np.uint16)
    problems = {
        "float32": Problem.of(as_design(wide), y, 1e-3, n_classes=K),
        "float16": narrow,
        "bfloat16": Problem.of(HalfDesign(bits, half="bfloat16"), y, 1e-3, n_classes=K),
    }
    expected = problems["float32"].at(W)
    fit_wide = run(problems["float32"], LBFGS(), max_iter=8, tol=0.0)
    seconds = {name: [] for name in problems}
    for _ in range(args.rounds):
        for name, problem in problems.items():
            begin = time.perf_counter()
            problem.at(W)
            seconds[name].append(time.perf_counter() - begin)
    base = np.min(seconds["float32"]), np.median(seconds["float32"])
    for name, times in seconds.items():
        least, median = np.min(times), np.median(times)
        print(
            f"{name}: {least:.4f} s, {median:.4f} s: {least / base[0]:.2f}, {median / base[1]:.2f}"
        )
    size = X.nbytes
    print(f"above X: a pass {passes.bytes / size:.3f} of X, 8 steps {fits.bytes / size:.3f} of X")
    print(f"gradient: {relative(first.gradient, expected.gradient):.1e} relative")
    print(f"after 8 steps: W {relative(fit.W, fit_wide.W):.1e} relative")


if __name__ == "__main__":
    main()
