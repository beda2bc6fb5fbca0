"""What a pass on a Dask cluster costs, a model of it, and what the model says of larger ones.

::

    python benchmarks/scaling.py [--passes 9]
    unshare -rn sh -c 'ip link set lo up; python benchmarks/scaling.py'   # counts its own bytes

Measured: gradient passes over float32 rows on local clusters of 1 and 2 processes with one thread
each. Seconds are the median of the passes by the clock, the points taking turns: nothing else
should run. CPU seconds, of client and scheduler (one process) plus those of the busiest worker,
stand beside them. Bytes are those that crossed the loopback interface, so nothing else should use
it (hence the second form).
Model, fitted to one part of the points by least relative squares and checked on the others ::

    t = t₀ + τ T + (f n d K + m n d + g n K) / w + s d K P / w + b d K w + network

with T tasks, P partitions, w workers. On a simulated network a message of B = 8 d K bytes takes
λ + B/β: the broadcast sends ⌈log₂(w + 1)⌉ of them one after the other, a task of the tree that
adds up k results waits for k − 1, and the client for one. Tasks of one level wait for λ at the same
time, but a worker's bytes come in one after the other. Writes benchmarks/results/scaling.md.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from math import ceil, log2
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmark_utils.tables import RESULTS, heading, publish
from dask import delayed
from distributed import Client, LocalCluster, rejoin, secede, wait
from scipy.optimize import nnls

from admm_softmax import Problem
from admm_softmax._parallel import blas_threads
from admm_softmax.design.dask import DaskDesign
from admm_softmax.design.dask.cluster import FAN_IN, Cluster

CONSTANTS = ("t₀ (s)", "τ (s per task)", "f", "m", "g", "s", "b")
WITHIN = 0.15
#: Passes that compile and fill caches; and how many there are over a simulated network, whose
#: seconds do not scatter.
WARM_UP, SLOW_PASSES = 2, 5


@dataclass(frozen=True)
class Case:
    """One size, and the network: seconds and bytes per second; 0 leaves it as it is."""

    n: int
    d: int
    K: int
    workers: int = 1
    parts: int = 8
    latency: float = 0.0
    bandwidth: float = float("inf")

    @property
    def is_slow(self):
        """Whether a network is simulated."""
        return bool(np.isfinite(self.bandwidth))

    @property
    def message(self):
        """Bytes of W, and of each partial sum."""
        return 8 * self.d * self.K

    @property
    def levels(self):
        """How many tasks each level of the tree has, and how many results each of them adds."""
        found, left = [], self.parts
        while left > 1:
            found.append((ceil(left / FAN_IN), min(left, FAN_IN)))
            left = ceil(left / FAN_IN)
        return found

    def features(self):
        n, d, K, w = self.n, self.d, self.K, self.workers
        tasks = self.parts + sum(count for count, _ in self.levels)
        products = [n * d * K / w, n * d / w, n * K / w]
        return np.array([1, tasks, *products, d * K * self.parts / w, d * K * w])

    def network(self):
        """Seconds that messages take."""
        hop = self.latency + self.message / self.bandwidth
        total = (ceil(log2(self.workers + 1)) + 1) * hop
        for count, added in self.levels:
            rounds = ceil(count / self.workers)
            total += self.latency + rounds * (added - 1) * self.message / self.bandwidth
        return total

    def row(self):
        words = f"{self.n:,} × {self.d}", self.K, self.workers, self.parts
        net = f"{1e3 * self.latency:g} ms, {self.bandwidth / 1e6:g} MB/s" if self.is_slow else ""
        return [*map(str, words), net]


class Measured(NamedTuple):
    """CPU seconds of client, scheduler and the busiest worker; the median by the clock; bytes."""

    cpu: float
    wall: float
    moved: float


class SlowNetwork(Cluster):
    """A cluster whose messages take their time."""

    def __init__(self, client, case):
        super().__init__(client)
        self.case = case

    def scatter(self, content):
        case = self.case
        time.sleep(ceil(log2(case.workers + 1)) * (case.latency + case.message / case.bandwidth))
        return super().scatter(content)

    def tree(self, futures, add):
        latency, transfer = self.case.latency, self.case.message / self.case.bandwidth

        def slow_add(parts):
            secede()  # who waits for an answer holds up no other task
            time.sleep(latency)
            rejoin()
            time.sleep((len(parts) - 1) * transfer)
            return add(parts)

        return super().tree(futures, slow_add)

    def gather(self, futures):
        found = super().gather(futures)
        time.sleep(self.case.latency + self.case.message / self.case.bandwidth)
        return found


def chunk(seed, n, d):
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def loopback():
    for line in Path("/proc/net/dev").read_text(encoding="ascii").splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split()[1])
    return 0


class Running:
    """One point: its rows on the workers, and what each pass over them took."""

    def __init__(self, client, case):
        self.client, self.case = client, case
        sizes = np.diff(np.linspace(0, case.n, case.parts + 1).astype(int))
        design = DaskDesign([delayed(chunk)(i, int(size), case.d) for i, size in enumerate(sizes)])
        labels = np.random.default_rng(0).integers(0, case.K, case.n)
        self.problem = Problem.of(design, labels, 1e-3, n_classes=case.K)
        held = self.problem.labels.held.futures, self.problem.weights.held.futures
        wait([*design.parts, *held[0], *held[1]])
        if case.is_slow:
            design.cluster = SlowNetwork(client, case)
        self.W = np.random.default_rng(1).standard_normal((case.d + 1, case.K)) / case.d
        self.passes = []

    def run(self, keep=True):
        """One pass."""
        cpu, moved, begin = cpu_seconds(self.client), loopback(), time.perf_counter()
        with blas_threads(1):  # as in a run of a solver, so that no thread of it spins
            self.problem.at(self.W)
        wall, moved = time.perf_counter() - begin, loopback() - moved
        spent = [b - a for a, b in zip(cpu, cpu_seconds(self.client), strict=True)]
        if keep:
            self.passes.append((spent[0] + max(spent[1:]), wall, moved))

    def found(self):
        """The medians."""
        return Measured(*np.median(self.passes, axis=0).tolist())


def cpu_seconds(client):
    """CPU seconds so far: of this process, where the scheduler runs too, and of each worker."""
    return [time.process_time(), *client.run(time.process_time).values()]


def cases():
    """Points to fit, and points held out."""
    base = Case(100_000, 256, 10)
    alone = [replace(base, n=n) for n in (50_000, 100_000, 200_000, 400_000)]
    alone += [replace(base, d=d, n=n) for d, n in ((64, 400_000), (1024, 50_000), (1024, 100_000))]
    alone += [replace(base, K=2, n=400_000), replace(base, K=100, n=50_000)]
    alone += [replace(base, K=100, n=100_000), replace(base, K=400, n=25_000)]
    alone += [replace(base, parts=2), replace(base, parts=32)]
    alone += [replace(base, d=1024, K=100, n=20_000, parts=4)]
    alone += [replace(base, d=512, n=200_000), replace(base, K=30), replace(base, parts=16)]
    two = [replace(case, workers=2) for case in (alone[1], alone[3], alone[6], alone[8], alone[10])]
    two += [replace(base, d=512, K=50, n=50_000, workers=2), replace(two[0], parts=16)]
    held_out = [
        replace(base, n=150_000, d=512),
        replace(base, n=80_000, K=50, parts=16),
        replace(base, n=300_000, workers=2),
        replace(base, n=100_000, d=512, K=30, workers=2),
    ]
    far = replace(base, n=40_000, d=768, K=100, parts=16, workers=2)
    slow = [
        replace(far, latency=latency, bandwidth=bandwidth)
        for latency, bandwidth in ((0.3, 1e9), (0.05, 2e6))
    ]
    return alone + two, held_out + slow


def measured(points, passes, file):
    """All points; those of worker counts in the file, from an earlier run, are not run again.

    Points take turns, a pass at a time: so a machine that is slower for some seconds is so for
    all of them.
    """
    known = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    found = {Case(**case): Measured(*figures) for case, figures in known}
    for workers in sorted({case.workers for case in points if case not in found}):
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address="127.0.0.1:0", memory_limit=None,
            ) as cluster,
            Client(cluster) as client,
            file.open("a") as lines,
        ):  # fmt: skip
            running = [Running(client, case) for case in points if case.workers == workers]
            for number in range(WARM_UP + passes):
                for point in running:
                    if not point.case.is_slow or number < WARM_UP + SLOW_PASSES:
                        point.run(keep=number >= WARM_UP)
            for point in running:
                found[point.case] = point.found()
                print(json.dumps([asdict(point.case), found[point.case]]), file=lines)
                print(point.case, found[point.case], flush=True)
    return found


def fit(found):
    """Coefficients ≥ 0 of least relative squares."""
    A = np.array([case.features() for case in found])
    t = np.array([point.wall for point in found.values()])
    scale = np.abs(A / t[:, None]).max(axis=0)
    coefficients, _ = nnls(A / t[:, None] / scale, np.ones(len(t)))
    return coefficients / scale


def predictions(c, cores=16, bandwidth=1.25e9, latency=2e-4):
    """Larger clusters: workers of so many cores, 10 Gbit/s Ethernet."""
    rows = []
    for name, n, d, K, w in (
        ("ImageNet probe", 1_280_000, 2048, 1000, 8),
        ("ImageNet probe", 1_280_000, 2048, 1000, 32),
        ("a billion rows", 1_000_000_000, 1024, 100, 100),
        ("a billion rows", 1_000_000_000, 1024, 1000, 100),
    ):
        case = Case(n, d, K, w, parts=4 * w, latency=latency, bandwidth=bandwidth)
        x = case.features()
        parts = {
            "products": c[2:5] @ x[2:5] / cores,
            "network": case.network() + c[6] * d * K,
            "tasks": c[:2] @ x[:2],
            "sums": c[5] * x[5] / cores,
        }
        worst = max(parts, key=parts.get)
        moved = case.message * (w + case.parts)
        memory = (n / w) * (d * 4 + 16) / 1e9
        shares = ", ".join(f"{key} {value:.2g}" for key, value in parts.items())
        state = memory + n / w * K * 8 / 1e9
        cells = [
            f"{name}, {n:,} × {d}, K = {K}",
            f"{w} × {cores}",
            f"{moved / 1e9:.2g} GB",
            f"{memory:.2g} GB, ADMM {state:.2g} GB",
            f"{sum(parts.values()):.2g} s: {shares}",
            worst,
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--passes", type=int, default=15, help="per point")
    parser.add_argument("--points", type=Path, default=RESULTS / "scaling.jsonl")
    given = parser.parse_args()
    passes = given.passes
    words = f"gradient passes, float32, {passes} per point"
    title = heading("scaling.py", words)  # before a nanny limits the threads of this process
    to_fit, held_out = cases()
    found = measured([*to_fit, *held_out], passes, given.points)
    c = fit({case: found[case] for case in to_fit})
    lines = [
        "| rows | K | workers | partitions | network | s | CPU s | KB moved | model s | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    errors = []
    for case in [*to_fit, *held_out]:
        point = found[case]
        model = case.features() @ c + (case.network() if case.is_slow else 0.0)
        error = model / point.wall - 1
        if case not in to_fit:
            errors.append(error)
        mark = "fitted" if case in to_fit else f"{100 * error:+.0f} %"
        figures = (
            f"{point.wall:.3f}",
            f"{point.cpu:.3f}",
            f"{point.moved / 1e3:.0f}",
            f"{model:.3f}",
        )
        lines.append(f"| {' | '.join([*case.row(), *figures, mark])} |")
    good = sum(abs(error) <= WITHIN for error in errors)
    lines += [
        "",
        f"Held out: {good} of {len(errors)} points within {WITHIN:.0%}, "
        f"the worst {max(map(abs, errors)):.0%}.",
    ]
    lines += ["", "| coefficient | value |", "|---|---|"]
    lines += [f"| {name} | {value:.3g} |" for name, value in zip(CONSTANTS, c, strict=True)]
    lines += [
        "",
        "| what | workers × cores | moved per pass | memory per worker | a pass | bottleneck |",
        "|---|---|---|---|---|---|",
    ]
    lines += predictions(c)
    publish(RESULTS / "scaling.md", title, lines)


if __name__ == "__main__":
    main()
