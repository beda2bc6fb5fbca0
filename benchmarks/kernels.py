"""What the parts cost, each as a ratio from one run: the passes, the Gram matrix, the z-step.

::

    python benchmarks/kernels.py [--rows 40000] [--features 7056] [--rounds 9] [--passes-only]

The two sides of a ratio take turns and their medians are compared, by four rules of timing ::

    again    the second run in a turn, after a pause of 0.05 s: passes follow passes in a fit
    once     the first run in that turn
    rested   the first run in a turn, after a pause of 0.2 s
    alone    the second run in that turn

BLAS's threads spin after their work, for 0.11 s with NumPy's OpenBLAS on a CPU that counts 2.3 GHz:
after 0.05 s one of them still takes part of a core from the side that comes next; after 0.2 s none
does. So by the last rule NumPy finds its own threads awake, and we find none in our way. The
columns "measured" and "seconds" are by the first rule. NumPy's products have the better of one
thread and all, chosen before. Features are standard normal; neither side cares. Writes
benchmarks/results/kernels.md.
"""

import argparse
import os
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numba import njit
from threadpoolctl import ThreadpoolController

from admm_softmax import ADMM, Problem
from admm_softmax.experiments.digits import best_threads
from admm_softmax.kernels.compiled.programs import zstep
from admm_softmax.report.provenance import describe_machine

K = 10
RULES = ("again", "once", "rested", "alone")
MEASURED = [
    (200_000, 50, 10, "float32"),
    (45_000, 768, 100, "float32"),
    (25_000, 768, 100, "float64"),
    (20_000, 768, 300, "float32"),
    (12_811, 384, 1000, "float32"),
]


@njit(nogil=True, fastmath=True)
def read(x):
    total = np.float32(0)
    for i in range(len(x)):
        total += x[i]
    return total


def median_of(times):
    return {name: float(np.median(values)) for name, values in times.items()}


def medians(rounds, **sides):
    """Seconds of each side, one run per turn and without a pause."""
    times = {name: [] for name in sides}
    for k in range(rounds + 1):
        for name, side in sides.items():
            begin = time.perf_counter()
            side()
            if k:  # the first round warms up
                times[name].append(time.perf_counter() - begin)
    return median_of(times)


def by_rule(rounds, **sides):
    """Seconds of each side by the four rules, "again" first."""
    times = {rule: {name: [] for name in sides} for rule in RULES}

    def run(name, *rules):
        begin = time.perf_counter()
        sides[name]()
        for rule in rules:
            times[rule][name].append(time.perf_counter() - begin)

    for k in range(rounds + 1):
        for pause, rules in ((0.05, ("once", "again")), (0.2, ("rested", "alone"))):
            for name in sides:
                time.sleep(pause)
                for rule in rules:
                    run(name, *([rule] if k else []))  # the first round warms up
    return {rule: median_of(of_rule) for rule, of_rule in times.items()}


def ratios(seconds, over, under):
    """One side's seconds over the other's, by every rule."""
    return [of_rule[over] / of_rule[under] for of_rule in seconds.values()]


def with_better_threads(multiply):
    """The same products of NumPy's, with the better of one thread and all."""
    pools = ThreadpoolController()

    def alone():
        with pools.limit(limits=1):
            return multiply()

    return alone if best_threads(lambda n: alone() if n == 1 else multiply()) == 1 else multiply


def peak_bytes():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def passes(X, problem, rounds, threads):
    W = 0.01 * np.random.default_rng(1).standard_normal(problem.shape)
    W_data, R = W[:-1].astype(X.dtype), np.ones((len(X), K), X.dtype)
    flat, pool = X.ravel(), ThreadPoolExecutor(threads)
    cuts = np.linspace(0, flat.size, 16 * threads + 1).astype(int)
    pieces = [flat[i:j] for i, j in pairwise(cuts)]
    t = by_rule(
        rounds,
        fused=lambda: problem.at(W),
        numpy=with_better_threads(lambda: (X @ W_data, X.T @ R)),
        read=lambda: list(pool.map(read, pieces)),
    )
    what = "fused pass, against NumPy `X @ W` + `X.T @ R`"
    yield what, ratios(t, "numpy", "fused"), "≥ 3.5 × faster", t["again"]
    what = "fused pass, against a read of X by all threads"
    yield what, ratios(t, "fused", "read"), "≤ 2.2", t["again"]


def shapes(rounds):
    """Whole passes with many classes, or few columns, against NumPy's two bare products."""
    for n, d, n_classes, dtype in MEASURED:
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((n, d), dtype=dtype), np.arange(n) % n_classes
        problem, R = Problem.of(X, y, 1e-3), np.ones((n, n_classes), dtype)
        W = 0.01 * rng.standard_normal(problem.shape)
        W_data = W[:-1].astype(dtype)
        t = by_rule(
            rounds,
            fused=lambda problem=problem, W=W: problem.at(W),
            numpy=with_better_threads(lambda X=X, W=W_data, R=R: (X @ W, X.T @ R)),
        )
        what = f"pass {n:,} × {d}, K = {n_classes}, {dtype}, against `X @ W` + `X.T @ R`"
        limit = "≤ 1.5" if d < 100 else "≤ 1.15"
        yield what, ratios(t, "fused", "numpy"), limit, t["again"]


def admm(X, problem, rounds):
    W = 0.01 * np.random.default_rng(1).standard_normal(problem.shape)
    iterates = ADMM(rho=0.02, relaxation=1.7).iterates(problem, None)
    for _ in islice(iterates, 3):
        pass
    t = medians(3 * rounds, admm=lambda: next(iterates), fused=lambda: problem.at(W))
    yield "ADMM iteration, against a fused pass", [t["admm"] / t["fused"]], "≤ 1.6", t


def gram(X, problem):
    Y = X.copy()
    symmetric = with_better_threads(lambda: X.T @ X)
    t = medians(
        2,
        ours=lambda: problem.design.gram(problem.weights, np.float32),
        numpy=symmetric,
        gemm=with_better_threads(lambda: X.T @ Y),
    )
    yield "Gram matrix, against `X.T @ X`", [t["ours"] / t["numpy"]], "≤ 0.6", t
    yield "Gram matrix, against a full product `X.T @ Y`", [t["ours"] / t["gemm"]], "", t
    rows = np.arange(problem.shape[0])
    t2 = medians(
        2,
        ours=lambda: problem.subsample(len(rows), 0).gram(np.float32),
        numpy=symmetric,
    )
    yield (
        f"Gram matrix of {len(rows):,} random rows, against `X.T @ X`",
        [t2["ours"] / t2["numpy"]],
        "",
        t2,
    )


def z_step(rounds, threads):
    rng = np.random.default_rng(0)
    n, rho = 1_000_000, 0.02
    labels, Z = rng.integers(0, K, n), 3 * rng.standard_normal((n, K))
    Z = zstep(Z, labels, rho, Z)[0]
    V = Z + 0.05 * rng.standard_normal((n, K))
    Z = zstep(V, labels, rho, Z)[0]
    V += 0.05 * rng.standard_normal((n, K))
    pool = ThreadPoolExecutor(threads)
    cuts = np.linspace(0, n, 16 * threads + 1).astype(int)
    parts = [slice(i, j) for i, j in pairwise(cuts)]

    def ours():
        list(pool.map(lambda p: zstep(V[p], labels[p], rho, Z[p]), parts))

    t = by_rule(rounds, zstep=ours, exp=lambda: np.exp(V))
    what = "z-step, n = 1,000,000, float64, warm, against one `np.exp`"
    yield what, ratios(t, "zstep", "exp"), "≤ 6", t["again"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--features", type=int, default=7056)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--passes-only", action="store_true", help="print passes; write no file")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    threads = len(os.sched_getaffinity(0))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((arguments.rows, arguments.features), dtype=np.float32)
    y = rng.integers(0, K, len(X))
    problem = Problem.of(X, y, 1e-3)
    columns = ("what", "measured", *RULES[1:], "target", "seconds")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]

    def report(rows):
        for what, by_rule, target, seconds in rows:
            found = [f"{ratio:.2f}" for ratio in by_rule] + [""] * (len(RULES) - len(by_rule))
            details = ", ".join(f"{name} {value:.3f}" for name, value in seconds.items())
            lines.append(f"| {' | '.join([what, *found, target, details])} |")
            print(lines[-1], flush=True)

    report(passes(X, problem, arguments.rounds, threads))
    report(shapes(arguments.rounds))
    if arguments.passes_only:
        return
    before = peak_bytes()
    report(admm(X, problem, arguments.rounds))
    matrices = 2 * 4 * problem.shape[0] ** 2
    above = (peak_bytes() - before - matrices) / X.nbytes
    what = "peak memory of ADMM above X and two d × d matrices, share of X"
    lines.append(f"| {what} | {above:.2f} | | | | ≤ 0.25 | |")
    print(lines[-1], flush=True)
    report(gram(X, problem))
    report(z_step(arguments.rounds, threads))
    shape = f"{len(X):,} × {X.shape[1]}, K = {K}, float32"
    title = f"`python benchmarks/kernels.py` on {describe_machine()}, {date.today()}: {shape}."
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "kernels.md").write_text("\n".join([title, "", *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
