"""Passes over files against reading them, and against the same pass in memory.

::

    python benchmarks/files.py [--gigabytes 1] [--features 1024] [--folder /tmp/admm-softmax-data]

Shards of float32 and of float16 are written, read and deleted. Reading is done in three ways:
`np.load` of one shard after the other; plain reads of 1 MB into the same buffer; and the library's
own reader, which computes nothing. A pass of the library reads and computes, with no block kept
from pass to pass. Where the pass in memory (over as many of the rows, in float32) takes longer than
plain reads, computing binds, and a pass over files cannot be faster than that; otherwise reading
binds. The last column is the speed of a gradient pass over files relative to the slower of the two.
The sides take turns, and the fastest round of each counts: other jobs only ever slow them down.
With --gigabytes beyond the memory of the machine every read comes from the disk; with --cold the
pages of the files are dropped from the page cache before every side. Writes
benchmarks/results/files.md, or files-cold.md. Files that are there already, larger than memory,
once and by some sides alone::

    python benchmarks/files.py --shards FOLDER --sides read memory gradient --rounds 0 --cold
"""

import argparse
import os
import shutil
import time
from pathlib import Path

import numpy as np
from benchmark_utils.tables import RESULTS, heading, publish

from admm_softmax import Problem, RowBlocks
from admm_softmax._parallel import blas_threads
from admm_softmax.design import StreamedDesign
from admm_softmax.kernels import rows

CLASSES = [2, 10, 100]
SIDES = ["load", "read", "reader", "memory", "gradient", "admm"]
#: Enough for blocks and sums.
LIMIT = 100 << 20
#: Rows in memory are at most so many bytes of float32.
IN_MEMORY = 1 << 30


def write(folder, gigabytes, d, dtype):
    """Shards of 256 MB; rows repeat from shard to shard, which no side sees."""
    folder.mkdir(parents=True)
    dtype = np.dtype(dtype)
    n = (256 << 20) // (d * dtype.itemsize)
    X = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32).astype(dtype)
    count = max(1, round(gigabytes * 1e9 / X.nbytes))
    for i in range(count):
        np.save(folder / f"x-{i:04d}.npy", X)
    return sorted(folder.glob("x-*.npy"))


def forget(shards):
    """Drop the pages of these files, and no others, from the page cache."""
    for path in shards:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def load_all(shards):
    for path in shards:
        np.load(path)


def read_all(shards):
    buffer = bytearray(1 << 20)
    for path in shards:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def drain(reader):
    for _ in reader.blocks():
        pass


def least(rounds, before, **sides):
    """The fastest round of each side, the sides taking turns."""
    times = {name: [] for name in sides}
    for k in range(rounds + 1):
        for name, side in sides.items():
            before()
            # As in a run of a solver: threads of BLAS might spin on after a product of W alone,
            # in the way of the side that follows.
            with blas_threads(1):
                begin = time.perf_counter()
                side()
                if k or rounds == 0:  # the first round warms up
                    times[name].append(time.perf_counter() - begin)
    return {name: min(values) for name, values in times.items()}


def measure(shards, K, options):
    """Seconds of each side asked for; those in memory are scaled to all rows."""
    design = StreamedDesign(RowBlocks(shards, memory_limit=LIMIT))
    design.reader.keeps = False
    n, d = design.shape
    problem = Problem.of(design, np.arange(n) % K, n_classes=K)
    W = 0.01 * np.random.default_rng(1).standard_normal(problem.shape)
    admm = rows.admm_without_gradient.bind(rho=0.05, relaxation=1.7, dual_is_zero=0.0)
    # Old and new state of ADMM are in memory.
    stateful = StreamedDesign(RowBlocks(shards, memory_limit=LIMIT + 2 * 8 * n * K))
    stateful.reader.keeps = False
    labels, weights, state = stateful.place(np.arange(n) % K), problem.weights, stateful.zeros(K)
    m = min(n, IN_MEMORY // (4 * d))
    inside = Problem.of(design.rows_at(np.arange(m)), np.arange(m) % K, n_classes=K)
    sides = {
        "load": lambda: load_all(shards),
        "read": lambda: read_all(shards),
        "reader": lambda: drain(design.reader),
        "memory": lambda: inside.at(W),
        "gradient": lambda: problem.at(W),
        "admm": lambda: stateful.fold(W, admm, (labels, weights, state)),
    }
    found = least(
        options.rounds,
        lambda: forget(shards) if options.cold else None,
        **{name: sides[name] for name in SIDES if name in options.sides},
    )
    return {**found, "memory": found["memory"] * n / m}


def row(shards, K, options):
    """One line of the table."""
    size = sum(path.stat().st_size for path in shards) / 1e9
    t = measure(shards, K, options)
    speeds = " | ".join(f"{size / t[name]:.2f}" if name in t else "" for name in SIDES)
    bound = max(t["read"], t["memory"])
    binds = "reading" if bound == t["read"] else "computing"
    kind = np.load(shards[0], mmap_mode="r").dtype
    return (
        f"| {size:.1f} GB {kind} | {K} | {speeds} | {binds} | {100 * bound / t['gradient']:.0f} % |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--features", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--types", nargs="+", default=["float32", "float16"])
    parser.add_argument("--classes", type=int, nargs="+", default=CLASSES)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/admm-softmax-data"))
    parser.add_argument("--shards", type=Path, help="a folder of x-*.npy, instead of writing some")
    parser.add_argument("--sides", nargs="+", default=SIDES)
    options = parser.parse_args()
    lines = [
        "| files | K | `np.load` | plain reads | reader alone | gradient in memory | "
        "gradient over files | ADMM over files | binds | share of what binds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]

    def measure_all(shards):
        for K in options.classes:
            lines.append(row(shards, K, options))
            print(lines[-1], flush=True)

    if options.shards:
        shards = sorted(options.shards.glob("x-*.npy"))
        options.features = np.load(shards[0], mmap_mode="r").shape[1]
        measure_all(shards)
    folder = options.folder / "files-benchmark"
    for dtype in () if options.shards else options.types:
        shutil.rmtree(folder, ignore_errors=True)
        try:
            measure_all(write(folder, options.gigabytes, options.features, dtype))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    words = f"{options.features} columns, GB of the files per second"
    name = "files-cold.md" if options.cold else "files.md"
    publish(RESULTS / name, heading("files.py", words), lines)


if __name__ == "__main__":
    main()
