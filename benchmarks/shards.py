"""Fit shards of `embedding_shards.py`: seconds per pass, memory, loss and accuracy against passes.

::

    python benchmarks/shards.py FOLDER [--memory-limit 2GB] [--max-iter 20] [--checkpoint FOLDER]

The last shard is held out. With --checkpoint, the same command goes on where it was interrupted.
Writes benchmarks/results/shards.md.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from benchmark_utils.tables import RESULTS, heading, publish

from admm_softmax import LBFGS, RowBlocks, SoftmaxRegression


def memory(field):
    """Bytes of this process, from the kernel: VmHWM is the peak of VmRSS."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


class Report:
    """Prints what is known after every iteration."""

    def __init__(self):
        self.began = time.perf_counter()

    def __call__(self, iterate):
        seconds = time.perf_counter() - self.began
        print(
            f"{seconds:8.1f} s  loss {iterate.loss:.5f}  accuracy {iterate.accuracy:.4f}  "
            f"max|gradient| {iterate.gradient_norm:.2e}  RSS {memory('VmRSS') / 1e9:.2f} GB",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--max-iter", type=int, default=20)
    parser.add_argument("--alpha", type=float, default=1e-5)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--sample", type=int, default=20_000)
    parser.add_argument("--checkpoint", type=Path, default=None)
    options = parser.parse_args()
    *shards, last = sorted(options.folder.glob("x-*.npy"))
    *labels, last_labels = sorted(options.folder.glob("y-*.npy"))
    rows = RowBlocks(shards, memory_limit=options.memory_limit)
    solver = LBFGS(options.pairs, "gram", subsample=min(options.sample, rows.n_rows))
    model = SoftmaxRegression(
        alpha=options.alpha,
        solver=solver,
        max_iter=options.max_iter,
        tol=1e-5,
        keep="last",
        callbacks=Report(),
        checkpoint=options.checkpoint,
    )
    began = time.perf_counter()
    model.fit(rows, labels, X_val=RowBlocks(last, memory_limit="300MB"), y_val=last_labels)
    seconds = time.perf_counter() - began
    history, size = model.history_, sum(path.stat().st_size for path in shards)
    passes = np.diff(history["passes"])
    each = np.diff(history["seconds"])[passes > 0] / passes[passes > 0]
    K, n, d = len(model.classes_), rows.n_rows, rows.n_features
    chosen = sorted({0, 1, 2, 4, 7, 11, 15, 19, 29, len(history) - 1} & set(range(len(history))))
    words = (
        f"{n:,} × {d:,}, K = {K}, {size / 1e9:.1f} GB of float16, memory_limit "
        f"{options.memory_limit}: {np.median(each):.1f} s per pass "
        f"({size / np.median(each) / 1e9:.2f} GB/s, {4e-9 * n * d * K / np.median(each):.0f} "
        f"Gflop/s), peak RSS {memory('VmHWM') / 1e9:.2f} GB, {seconds:.0f} s in all"
    )
    lines = [
        "| passes | seconds | objective | loss | accuracy | held-out loss | held-out accuracy |",
        "|---|---|---|---|---|---|---|",
    ]
    for i in chosen:
        row = {name: history[name][i] for name in ("passes", "seconds", "objective", "loss")}
        lines.append(
            f"| {row['passes']:.0f} | {row['seconds']:.0f} | {row['objective']:.5f} | "
            f"{row['loss']:.5f} | {100 * history['accuracy'][i]:.2f} % | "
            f"{history['val_loss'][i]:.5f} | {100 * history['val_accuracy'][i]:.2f} % |"
        )
    publish(RESULTS / "shards.md", heading("shards.py", words), lines)


if __name__ == "__main__":
    main()
