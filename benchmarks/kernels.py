"""What the parts cost, each as a ratio from one run: the passes, the Gram matrix, the z-step.

::

    python benchmarks/kernels.py [--rows 40000] [--features 7056] [--rounds 9]

The two sides of a ratio take turns and their medians are compared. In its turn a side runs twice,
and the second time counts: passes follow passes in a fit, and what the other side left behind
(BLAS's spinning threads, its data in the cache) belongs to neither. Features are standard normal;
neither side cares. Writes benchmarks/results/kernels.md.
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

from admm_softmax import ADMM, Problem
from admm_softmax.kernels.compiled.programs import zstep
from admm_softmax.report.provenance import describe_machine

K = 10
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


def medians(rounds, *, repeat=True, **sides):
    """Seconds of each side, the sides taking turns, after a pause for BLAS's threads to rest."""
    times = {name: [] for name in sides}
    for k in range(rounds + 1):
        for name, side in sides.items():
            if repeat:
                time.sleep(0.1)
                side()
            begin = time.perf_counter()
            side()
            if k:  # the first round warms up
                times[name].append(time.perf_counter() - begin)
    return {name: float(np.median(values)) for name, values in times.items()}


def peak_bytes():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def passes(X, problem, rounds, threads):
    W = 0.01 * np.random.default_rng(1).standard_normal(problem.shape)
    W_data, R = W[:-1].astype(X.dtype), np.ones((len(X), K), X.dtype)
    flat, pool = X.ravel(), ThreadPoolExecutor(threads)
    cuts = np.linspace(0, flat.size, 16 * threads + 1).astype(int)
    pieces = [flat[i:j] for i, j in pairwise(cuts)]
    t = medians(
        rounds,
        fused=lambda: problem.at(W),
        numpy=lambda: (X @ W_data, X.T @ R),
        read=lambda: list(pool.map(read, pieces)),
    )
    yield (
        "fused pass, against NumPy `X @ W` + `X.T @ R`",
        t["numpy"] / t["fused"],
        "≥ 3.5 × faster",
        t,
    )
    yield "fused pass, against a read of X by all threads", t["fused"] / t["read"], "≤ 2.2", t


def shapes(rounds):
    """Whole passes with many classes, or few columns, against NumPy's two bare products."""
    for n, d, n_classes, dtype in MEASURED:
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((n, d), dtype=dtype), np.arange(n) % n_classes
        problem, R = Problem.of(X, y, 1e-3), np.ones((n, n_classes), dtype)
        W = 0.01 * rng.standard_normal(problem.shape)
        W_data = W[:-1].astype(dtype)
        t = medians(
            rounds,
            fused=lambda problem=problem, W=W: problem.at(W),
            numpy=lambda X=X, W=W_data, R=R: (X @ W, X.T @ R),
        )
        what = f"pass {n:,} × {d}, K = {n_classes}, {dtype}, against `X @ W` + `X.T @ R`"
        yield what, t["fused"] / t["numpy"], "≤ 1.5" if d < 100 else "≤ 1.15", t


def admm(X, problem, rounds):
    W = 0.01 * np.random.default_rng(1).standard_normal(problem.shape)
    iterates = ADMM(rho=0.02, relaxation=1.7).iterates(problem, None)
    for _ in islice(iterates, 3):
        pass
    t = medians(3 * rounds, repeat=False, admm=lambda: next(iterates), fused=lambda: problem.at(W))
    yield "ADMM iteration, against a fused pass", t["admm"] / t["fused"], "≤ 1.6", t


def gram(X, problem):
    Y = X.copy()
    t = medians(
        2,
        repeat=False,
        ours=lambda: problem.design.gram(problem.weights, np.float32),
        numpy=lambda: X.T @ X,
        gemm=lambda: X.T @ Y,
    )
    yield "Gram matrix, against `X.T @ X`", t["ours"] / t["numpy"], "≤ 0.6", t
    yield "Gram matrix, against a full product `X.T @ Y`", t["ours"] / t["gemm"], "", t
    rows = np.arange(problem.shape[0])
    t2 = medians(
        2,
        repeat=False,
        ours=lambda: problem.subsample(len(rows), 0).gram(np.float32),
        numpy=lambda: X.T @ X,
    )
    yield (
        f"Gram matrix of {len(rows):,} random rows, against `X.T @ X`",
        t2["ours"] / t2["numpy"],
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

    t = medians(rounds, zstep=ours, exp=lambda: np.exp(V))
    yield (
        "z-step, n = 1,000,000, float64, warm, against one `np.exp`",
        t["zstep"] / t["exp"],
        "≤ 6",
        t,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--features", type=int, default=7056)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    threads = len(os.sched_getaffinity(0))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((arguments.rows, arguments.features), dtype=np.float32)
    y = rng.integers(0, K, len(X))
    problem = Problem.of(X, y, 1e-3)
    lines = ["| what | measured | target | seconds |", "|---|---|---|---|"]

    def report(rows):
        for what, ratio, target, seconds in rows:
            details = ", ".join(f"{name} {value:.3f}" for name, value in seconds.items())
            lines.append(f"| {what} | {ratio:.2f} | {target} | {details} |")
            print(lines[-1], flush=True)

    report(passes(X, problem, arguments.rounds, threads))
    report(shapes(arguments.rounds))
    before = peak_bytes()
    report(admm(X, problem, arguments.rounds))
    matrices = 2 * 4 * problem.shape[0] ** 2
    above = (peak_bytes() - before - matrices) / X.nbytes
    what = "peak memory of ADMM above X and two d × d matrices, share of X"
    lines.append(f"| {what} | {above:.2f} | ≤ 0.25 | |")
    print(lines[-1], flush=True)
    report(gram(X, problem))
    report(z_step(arguments.rounds, threads))
    shape = f"{len(X):,} × {X.shape[1]}, K = {K}, float32"
    title = f"`python benchmarks/kernels.py` on {describe_machine()}, {date.today()}: {shape}."
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "kernels.md").write_text("\n".join([title, "", *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
