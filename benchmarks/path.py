"""The whole path against one fit of scikit-learn's, and cross-validation against its own.

::

    python benchmarks/path.py [--data-dir FOLDER] [--skip-cv]

The paper's MNIST features, 40,000 × 7056 and an intercept, ten classes, float32, L = I.

1. 20 penalties from 1e-1 to 1e-5 with 10,000 validation rows, against one fit of
   LogisticRegression (lbfgs, default tol, as many iterations as it wants) at alpha = 1e-3.
2. Five folds over ten penalties and a refit, against LogisticRegressionCV(n_jobs=2) with the
   default tol, extrapolated from one fold and two penalties in the middle of the range: so
   many times as long for all penalties and folds, half of that on two cores, without refit.
   The second of the two starts warm. Counting the cold start once a fold, and nine warm ones
   like it, gives the cautious figure.

Ours runs before and after each peer; the median counts. Writes benchmarks/results/path.md.
"""

import argparse
import time
import warnings
from datetime import date
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold

from admm_softmax import SoftmaxRegressionCV, softmax_path
from admm_softmax.experiments.data import mnist
from admm_softmax.report.provenance import describe_machine


def timed(function):
    begin = time.perf_counter()
    result = function()
    return result, time.perf_counter() - begin


def race(label, ours, peer):
    """Ours before and after the peer: its result, the seconds, the peer's own outcome."""
    results = []
    for turn in (ours, peer, ours):
        result, seconds = timed(turn)
        results.append((result, seconds))
        print(f"{label}: {turn.__name__} {seconds:.1f} s", flush=True)
    (mine, first), (other, peers), (_, second) = results
    return mine, float(np.median([first, second])), other, peers


def path_against_one_fit(data):
    X, y, validation = data.train.X, data.train.y, data.validation

    def ours():
        return softmax_path(X, y, np.logspace(-1, -5, 20), X_val=validation.X, y_val=validation.y)

    def lbfgs():
        return LogisticRegression(C=1 / (len(X) * 1e-3), max_iter=10_000).fit(X, y)

    path, seconds, peer, peers = race("path", ours, lbfgs)
    best = path.best
    return [
        f"| 20 penalties, 1e-1 to 1e-5, with validation | {seconds:.1f} s | "
        f"{path.reads:.0f} reads of X; best alpha {path.alpha:.1e}: validation loss "
        f"{path.val_loss[best]:.4f}, accuracy {100 * path.val_accuracy[best]:.2f} % |",
        f"| scikit-learn lbfgs, one fit at 1e-3 | {peers:.1f} s | {int(peer.n_iter_[0])} "
        f"iterations; the path takes {seconds / peers:.2f} of it |",
    ]


def folds_against_folds(data):
    X, y = data.train.X, data.train.y
    alphas = np.logspace(-1, -5, 10)
    folds = list(StratifiedKFold(5).split(X, y))

    def ours():
        return SoftmaxRegressionCV(alphas, cv=folds).fit(X, y)

    def logistic_cv():
        train = len(folds[0][0])
        return LogisticRegressionCV(
            Cs=1 / (train * alphas[4:6]), cv=folds[:1], n_jobs=2, scoring="neg_log_loss",
            max_iter=10_000, refit=False, l1_ratios=(0.0,), use_legacy_attributes=False,
        ).fit(X, y)  # fmt: skip

    model, seconds, peer, peers = race("folds", ours, logistic_cv)
    whole = peers / 2 * len(alphas) * len(folds) / 2
    cold, warm = peer.n_iter_.ravel()
    cautious = peers / (cold + warm) * (cold + (len(alphas) - 1) * warm) * len(folds) / 2
    return [
        f"| 5 folds × 10 penalties and a refit | {seconds:.1f} s | best alpha "
        f"{model.alpha_:.1e}, log loss {-model.scores_.mean(axis=0).max():.4f}; "
        f"{model.n_iter_.sum()} iterations in all |",
        f"| LogisticRegressionCV(n_jobs=2), one fold × 2 penalties | {peers:.1f} s | "
        f"{cold} and {warm} iterations; 5 × 10 extrapolated: {whole:.0f} s, {whole / seconds:.0f} "
        f"times ours; cautiously {cautious:.0f} s, {cautious / seconds:.0f} times |",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data-dir", help="folder with MNIST, if it is not to be fetched")
    parser.add_argument("--skip-cv", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    data = mnist(data_dir=arguments.data_dir)
    softmax_path(data.train.X[:5000], data.train.y[:5000], 2)  # loads what was compiled
    lines = [
        f"`python benchmarks/path.py` on {describe_machine()}, {date.today()}: "
        "40,000 × 7057, K = 10, float32, tol = 1e-4 on both sides.",
        "",
        "| what | took | |",
        "|---|---|---|",
        *path_against_one_fit(data),
        *([] if arguments.skip_cv else folds_against_folds(data)),
    ]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "path.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
