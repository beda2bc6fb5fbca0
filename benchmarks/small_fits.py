"""Small fits against scikit-learn's, threads by size, the first fit, and the time of imports.

    python benchmarks/small_fits.py small --rounds 31
    python benchmarks/small_fits.py threads
    python benchmarks/small_fits.py first
    python benchmarks/small_fits.py imports --beside ../before/src

small : iris, wine and breast cancer as they are and scaled, default settings of both libraries.
    scikit-learn's solvers run with one BLAS thread and with all; the fastest of the six counts.
threads : n_threads=None against one thread and two, idle and beside a process that keeps a core
    busy.
first : 20,000 × 500 with ten classes in three processes that share a cache, empty at first.
imports : fresh processes that load scikit-learn's base classes, then the estimator, then fit iris;
    with `--beside`, in turns with the sources of another version.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import nullcontext
from functools import partial

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import ThreadpoolController

import admm_softmax
from admm_softmax import SoftmaxRegression
from admm_softmax.experiments.digits import PEERS

SMALL = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
SHAPES = {
    "600 × 300, K = 3": (600, 300, 3),
    "5,000 × 20, K = 5": (5_000, 20, 5),
    "20,000 × 50, K = 10": (20_000, 50, 10),
    "5,000 × 192, K = 50": (5_000, 192, 50),
    "3,000 × 800, K = 10": (3_000, 800, 10),
}
FIRST = """
import time
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 500), dtype=np.float32)
y = (X @ rng.standard_normal((500, 10)) + 3 * rng.gumbel(size=(20_000, 10))).argmax(axis=1)
times = [time.perf_counter()]
from admm_softmax import SoftmaxRegression
times.append(time.perf_counter())
for _ in range(2):
    SoftmaxRegression(alpha=1e-3).fit(X, y)
    times.append(time.perf_counter())
from admm_softmax.kernels.compile_clock import compile_seconds
loading, first, second = (b - a for a, b in zip(times, times[1:]))
print(f"import {loading:.2f} s, first fit {first:.2f} s, second {second:.2f} s, "
      f"of the first {compile_seconds():.2f} s compiling")
"""

IMPORTS = """
import sys
import time
times = [(time.perf_counter(), time.process_time())]
def tick():
    times.append((time.perf_counter(), time.process_time()))
import sklearn.base
tick()
from admm_softmax import SoftmaxRegression
tick()
import numpy as np
data = np.load(sys.argv[1])
SoftmaxRegression().fit(data["X"], data["y"]).predict(data["X"])
tick()
print(*np.diff(times, axis=0).T.ravel())
"""


def drawn(n, d, K):
    """Labels drawn from a softmax model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(np.float32)
    return X, (X @ rng.standard_normal((d, K)) + 3 * rng.gumbel(size=(n, K))).argmax(axis=1)


def medians(methods, rounds):
    """Milliseconds by method, all taking turns, after a fit each that does not count.

    Every turn begins with another method: what ran before may leave threads awake, or the cache
    full.
    """
    times, names = {name: [] for name in methods}, list(methods)
    for turn in range(rounds + 1):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            begin = time.perf_counter()
            methods[name]()
            if turn:
                times[name].append(1e3 * (time.perf_counter() - begin))
    return {name: float(np.median(found)) for name, found in times.items()}


def fit_peer(pools, solver, threads, X, y):
    with pools.limit(limits=1) if threads == 1 else nullcontext():
        LogisticRegression(solver=solver, max_iter=1000).fit(X, y)


def compare_small(rounds):
    pools = ThreadpoolController()
    print("| data | ours, ms | fastest of scikit-learn, ms | peer / ours |\n|---|---|---|---|")
    for name, load in SMALL.items():
        X, y = load(return_X_y=True)
        for scaled, rows in (("", X), (", scaled", StandardScaler().fit_transform(X))):
            methods = {"ours": partial(SoftmaxRegression().fit, rows, y)}
            for solver in PEERS:
                for threads in (1, os.cpu_count()):
                    peer = partial(fit_peer, pools, solver, threads, rows, y)
                    methods[f"{solver}, {threads} threads"] = peer
            found = medians(methods, rounds)
            ours = found.pop("ours")
            best = min(found, key=found.get)
            words = f"| {name}{scaled} | {ours:.2f} | {found[best]:.2f} ({best}) "
            print(f"{words}| {found[best] / ours:.2f} |", flush=True)


def compare_threads(rounds):
    data = {name: drawn(*shape) for name, shape in SHAPES.items()}
    data = {"digits": load_digits(return_X_y=True), **data}
    print("| data | a core is busy | None, ms | 1 | 2 | None / best |\n|---|---|---|---|---|---|")
    for busy in (False, True):
        loop = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
        try:
            for name, (X, y) in data.items():
                fits = {
                    n: partial(SoftmaxRegression(alpha=1e-3, n_threads=n).fit, X, y)
                    for n in (None, 1, 2)
                }
                found = medians(fits, rounds)
                cells = " | ".join(f"{found[n]:.1f}" for n in fits)
                ratio = found[None] / min(found[1], found[2])
                print(f"| {name} | {'yes' if busy else 'no'} | {cells} | {ratio:.2f} |", flush=True)
        finally:
            if loop is not None:
                loop.kill()
                loop.wait()


def compare_first():
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        for number in (1, 2, 3):
            print(f"process {number}: ", end="", flush=True)
            subprocess.run([sys.executable, "-c", FIRST], env=environment, check=True)


def compare_imports(rounds, beside):
    """Medians of time, and of processor time, which other work on the machine changes less."""
    sources = {"this": os.path.dirname(os.path.dirname(admm_softmax.__file__))}
    if beside is not None:
        sources["the other"] = beside
    times = {version: [] for version in sources}
    with tempfile.TemporaryDirectory() as folder:
        X, y = load_iris(return_X_y=True)
        command = [sys.executable, "-c", IMPORTS, os.path.join(folder, "iris.npz")]
        np.savez(command[-1], X=X, y=y)
        for turn in range(rounds + 1):
            for version, source in list(sources.items())[:: 1 if turn % 2 else -1]:
                environment = {**os.environ, "PYTHONPATH": source, "PYTHONPYCACHEPREFIX": folder}
                environment.pop("PYTHONDONTWRITEBYTECODE", None)
                printed = subprocess.check_output(command, env=environment, text=True)
                if turn:  # the first writes compiled modules
                    times[version].append([float(word) for word in printed.split()])
    print("| version | | sklearn.base, s | then the estimator, s | then iris, s |")
    print("|---|---|---|---|---|")
    for version, found in times.items():
        middle = np.median(found, axis=0)
        for kind, row in (("time", middle[:3]), ("processor time", middle[3:])):
            print(f"| {version} | {kind} | " + " | ".join(f"{part:.3f}" for part in row) + " |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["small", "threads", "first", "imports"])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--beside", help="src of another version, for imports")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # a peer's warnings decide nothing
    if asked.what == "first":
        compare_first()
    elif asked.what == "imports":
        compare_imports(asked.rounds, asked.beside)
    else:
        (compare_small if asked.what == "small" else compare_threads)(asked.rounds)


if __name__ == "__main__":
    main()
