"""Many two-class targets on one X, against scikit-learn's LogisticRegression on some of them.

Prints the time per target of both, their ratio, and by how much F of ours is above scikit-learn's.

    python benchmarks/many_targets.py --rows 100000 --columns 200 --targets 1000 --compared 20
"""

import argparse
import resource
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

from admm_softmax import MultiOutputSoftmaxRegression, warm_up


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


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("rows", 100_000), ("columns", 200), ("targets", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--compared", type=int, default=20)
    parser.add_argument("--tol", type=float, default=1e-4)
    args = parser.parse_args()
    X, Y = data(args.rows, args.columns, args.targets)
    warm_up()
    small = MultiOutputSoftmaxRegression()
    small.fit(X[:2000], Y[:2000, : args.compared])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    ours = MultiOutputSoftmaxRegression(tol=args.tol).fit(X, Y)
    per_target = (time.perf_counter() - begin) / args.targets
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gaps, seconds = [], []
    for t in range(args.compared):
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = LogisticRegression().fit(X, Y[:, t])
        seconds.append(time.perf_counter() - begin)
        own, other = (
            objective(X, Y[:, t], clf[0].astype(np.float64), float(clf[1]), 1.0)
            for clf in (
                (ours.coef_[t][0], ours.intercept_[t][0]),
                (peer.coef_[0], peer.intercept_[0]),
            )
        )
        gaps.append((own - other) / other)
    mean = float(np.mean(seconds))
    print(
        f"ours {per_target * 1e3:.2f} ms per target, {np.mean(ours.n_iter_):.1f} steps on average"
    )
    print(f"scikit-learn {mean * 1e3:.1f} ms per target, {peer.n_iter_[0]} iterations at the last")
    print(
        f"ratio {mean / per_target:.1f}; F above scikit-learn's, relative: at most {max(gaps):.1e}"
    )
    print(f"peak memory rose by {(after - before) / 1024:.0f} MB; X has {X.nbytes / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
