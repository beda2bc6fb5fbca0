"""The whole path against one fit of scikit-learn's, and cross-validation against its own.

::

    python benchmarks/path.py [--data-dir FOLDER] [--skip-cv]

The paper's MNIST features, 40,000 × 7056 and an intercept, ten classes, float32, L = I.

1. 20 penalties from 1e-1 to 1e-5 with 10,000 validation rows, against one fit of
   LogisticRegression (lbfgs, default tol, as many iterations as it wants) at alpha = 1e-3.
2. Five folds over ten penalties and a refit, against LogisticRegressionCV with the default
   tol, extrapolated from one fold and two penalties in the middle of the range: so many times
   as long for all penalties and folds, without refit, and divided by the number of cores where
   one BLAS thread suits it (n_jobs would run as many folds at once; none of it is counted as
   lost). The second of the two starts warm. Counting the cold start once per fold, and nine
   warm ones like it, gives the cautious figure.

A peer is warmed up by short fits, which also choose between one BLAS thread and one per core.
Ours runs before and after each peer; the median counts. Writes benchmarks/results/path.md.
"""

import argparse
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from benchmark_utils.peers import WARM_UP, limited
from benchmark_utils.tables import RESULTS, heading, publish
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold

from admm_softmax import SoftmaxRegressionCV, softmax_path
from admm_softmax._parallel import cpu_count
from admm_softmax.experiments.data import Part, mnist
from admm_softmax.experiments.digits import best_threads


def timed(function):
    begin = time.perf_counter()
    result = function()
    return result, time.perf_counter() - begin


def race(label, ours, peer, threads):
    """Ours before and after the peer: its result, the seconds, the peer's own outcome."""
    results = []
    for turn in (ours, peer, ours):
        with limited(threads if turn is peer else None):
            results.append(timed(turn))
        print(f"{label}: {turn.__name__} {results[-1][1]:.1f} s", flush=True)
    (mine, first), (other, peers), (_, second) = results
    return mine, float(np.median([first, second])), other, peers


def logistic(X, y, alpha=1e-3, max_iter=10_000):
    return LogisticRegression(C=1 / (len(X) * alpha), max_iter=max_iter).fit(X, y)


def threads_for_lbfgs(X, y, share=1):
    """The better of one BLAS thread and one per core; `share` fits with one run at once."""

    def fit(threads):
        with limited(threads):
            for _ in range(1 if threads == 1 else share):
                logistic(X, y, max_iter=WARM_UP)

    return best_threads(fit)


def words(threads):
    return f"{threads} BLAS thread{'s' if threads > 1 else ''}"


def path_against_one_fit(data):
    X, y, validation = data.train.X, data.train.y, data.validation

    def ours():
        return softmax_path(X, y, np.logspace(-1, -5, 20), X_val=validation.X, y_val=validation.y)

    def lbfgs():
        return logistic(X, y)

    threads = threads_for_lbfgs(X, y)
    path, seconds, peer, peers = race("path", ours, lbfgs, threads)
    best = path.best
    return [
        f"| 20 penalties, 1e-1 to 1e-5, with validation | {seconds:.1f} s | "
        f"{path.reads:.0f} reads of X; best alpha {path.alpha:.1e}: validation loss "
        f"{path.val_loss[best]:.4f}, accuracy {100 * path.val_accuracy[best]:.2f} % |",
        f"| scikit-learn lbfgs, one fit at 1e-3, {words(threads)} | {peers:.1f} s | "
        f"{int(peer.n_iter_[0])} iterations; the path takes {seconds / peers:.2f} of it |",
    ]


def folds_against_folds(data):
    X, y = data.train.X, data.train.y
    alphas = np.logspace(-1, -5, 10)
    folds = list(StratifiedKFold(5).split(X, y))

    def ours():
        return SoftmaxRegressionCV(alphas, cv=folds).fit(X, y)

    def logistic_cv():
        return LogisticRegressionCV(
            Cs=1 / (len(train) * alphas[4:6]), cv=folds[:1], scoring="neg_log_loss",
            max_iter=10_000, refit=False, l1_ratios=(0.0,), use_legacy_attributes=False,
        ).fit(X, y)  # fmt: skip

    train = folds[0][0]
    threads = threads_for_lbfgs(X[train], y[train], share=cpu_count())
    model, seconds, peer, peers = race("folds", ours, logistic_cv, threads)
    at_once = cpu_count() if threads == 1 else 1
    whole = peers / 2 * len(alphas) * len(folds) / at_once
    cold, warm = peer.n_iter_.ravel()
    cautious = peers / (cold + warm) * (cold + (len(alphas) - 1) * warm) * len(folds) / at_once
    return [
        f"| 5 folds × 10 penalties and a refit | {seconds:.1f} s | best alpha "
        f"{model.alpha_:.1e}, log loss {-model.scores_.mean(axis=0).max():.4f}; "
        f"{model.n_iter_.sum()} iterations in all |",
        f"| LogisticRegressionCV, one fold × 2 penalties, {words(threads)} | {peers:.1f} s | "
        f"{cold} and {warm} iterations; 5 × 10 extrapolated, {at_once} at once: {whole:.0f} s, "
        f"{whole / seconds:.0f} times ours; cautiously {cautious:.0f} s, "
        f"{cautious / seconds:.0f} times |",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data-dir", help="folder with MNIST, if it is not to be fetched")
    parser.add_argument("--skip-cv", action="store_true")
    parser.add_argument("--rows", type=int, default=40_000, help="of the 40,000 to train on")
    parser.add_argument("--out", type=Path, default=RESULTS / "path.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    data = mnist(data_dir=arguments.data_dir)
    train = Part(data.train.X[: arguments.rows], data.train.y[: arguments.rows])
    data = replace(data, train=train)
    softmax_path(data.train.X[:5000], data.train.y[:5000], 2)  # loads what was compiled
    lines = ["| what | took | |", "|---|---|---|", *path_against_one_fit(data)]
    if not arguments.skip_cv:
        lines += folds_against_folds(data)
    words = f"{len(train.X):,} × 7057, K = 10, float32, tol = 1e-4 on both sides."
    publish(arguments.out, heading("path.py", words), lines)


if __name__ == "__main__":
    main()
