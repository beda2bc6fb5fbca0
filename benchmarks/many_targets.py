"""Many two-class targets on one X, against scikit-learn's LogisticRegression on some of them.

Prints the time per target of both, their ratio, and by how much F of ours is above scikit-learn's,
which runs with the better of one thread and all. Ours runs before the peer, between two halves of
its targets, and after it; the median counts. The memory that ours takes is measured first.

    python benchmarks/many_targets.py --rows 100000 --columns 200 --targets 1000 --compared 20
    python benchmarks/many_targets.py --memory-limit 40MB --compared 0
"""

import argparse
import resource
import time
import warnings
from contextlib import nullcontext

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from admm_softmax import MultiOutputSoftmaxRegression, warm_up
from admm_softmax.experiments.digits import best_threads


def data(n, d, T, seed=0):
    """Correlated features of unit variance, and labels from a noisy linear rule of each target."""
    rng = np.random.default_rng(seed)
    mix = rng.standard_normal((d, d)) * np.arange(1, d + 1) ** -0.5
    X = (rng.standard_normal((n, d), dtype=np.float32) @ mix.T).astype(np.float32)
    X /= X.std(axis=0)
    Y = np.empty((n, T), np.int8)
    for t in range(T):
        score = X @ (rng.standard_normal(d).astype(np.float32) / np.sqrt(d))
        Y[:, t] = score + rng.logistic(size=n) > rng.normal()
    return X, Y


def objective(X, y, w, b, C):
    """scikit-learn's objective per row, in double precision."""
    scores = X.astype(np.float64) @ w + b
    return np.logaddexp(0, -(2.0 * y - 1) * scores).mean() + 0.5 / (C * len(y)) * (w @ w)


def peer_fit(X, y, threads, max_iter=100):
    """scikit-learn with its own settings, on one thread or on all."""
    with threadpool_limits(1) if threads == 1 else nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LogisticRegression(max_iter=max_iter).fit(X, y)


def compare(X, Y, fit_ours, count):
    """Fit scikit-learn to some of the targets, ours in between, and print both."""
    threads = best_threads(lambda threads: peer_fit(X, Y[:, 0], threads))
    gaps, seconds, own_seconds = [], [], []
    for t in range(count):
        if t == count // 2:
            own_seconds.append(fit_ours()[1])
        begin = time.perf_counter()
        peer = peer_fit(X, Y[:, t], threads)
        seconds.append(time.perf_counter() - begin)
        gaps.append((t, peer.coef_[0], peer.intercept_[0]))
    ours, last = fit_ours()
    own_seconds.append(last)
    above = []
    for t, coef, intercept in gaps:
        own, other = (
            objective(X, Y[:, t], w.astype(np.float64), float(b), 1.0)
            for w, b in ((ours.coef_[t][0], ours.intercept_[t][0]), (coef, intercept))
        )
        above.append((own - other) / other)
    mean = float(np.mean(seconds))
    print(f"scikit-learn {mean * 1e3:.1f} ms per target on {threads} thread(s), from {count}")
    return mean, max(above), own_seconds


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("rows", 100_000), ("columns", 200), ("targets", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--compared", type=int, default=20)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--memory-limit", default=None)
    args = parser.parse_args()
    X, Y = data(args.rows, args.columns, args.targets)
    warm_up()
    settings = {"tol": args.tol, "memory_limit": args.memory_limit}
    MultiOutputSoftmaxRegression(**settings).fit(X[:2000], Y[:2000, :20])

    def fit_ours():
        begin = time.perf_counter()
        model = MultiOutputSoftmaxRegression(**settings).fit(X, Y)
        return model, (time.perf_counter() - begin) / args.targets

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ours, per_target = fit_ours()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"ours {per_target * 1e3:.2f} ms per target, {np.mean(ours.n_iter_):.1f} steps on average"
    )
    print(
        f"peak memory rose by {(after - before) / 1024:.0f} MB; X has {X.nbytes / 1e6:.0f} MB",
        flush=True,
    )
    if args.compared:
        peer, above, more = compare(X, Y, fit_ours, args.compared)
        own = [per_target, *more]
        print("ours, ms per target:", ", ".join(f"{1e3 * seconds:.2f}" for seconds in own))
        print(f"ratio {peer / np.median(own):.1f}", end="; ")
        print(f"F above scikit-learn's, relative: at most {above:.1e}")


if __name__ == "__main__":
    main()
