"""The sweep of a linear probe against the one in DINOv3's code, in one run.

Ours is `probe`: all 45 C of DINOv3, choice on validation rows, refit on both, test. The peers are
scikit-learn's LogisticRegression and scikit-learn-intelex's, which DINOv3 patches in, called as
its `eval/log_regression.py` calls them: float64, lbfgs, tol=1e-12, max_iter=1000. They run for
some of the 45 C, evenly spaced in their order, one peer after the other under each C; the times
of the C between are interpolated over log C, and the refit under the best of those C is timed.
Ours runs before them, half way and after them; the median counts.
A smaller max_iter, where it is reached, makes the peers' times lower bounds, and so the ratios.

Ours runs once more on the compared C alone: its choice, validation score and test accuracy
are then set against those of the peers, with a bootstrap interval of the difference.

    python benchmarks/probe_sweep.py embedding-100 --compared 5
    python benchmarks/probe_sweep.py mnist --peers scikit-learn scikit-learn-intelex
"""

import argparse
import time
import warnings
from contextlib import nullcontext

import numpy as np
from benchmark_utils.generators import SHAPES, embedding_like
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from admm_softmax import probe, warm_up
from admm_softmax.experiments.digits import best_threads

CS = np.logspace(-6, 5, 45)
#: Iterations of the fits that warm a peer up and choose its threads.
SHORT = 15
#: How far class means are apart: of 1,000 classes there are only 13 rows each.
DISTANCES = {"embedding-100": 5.0, "embedding-1000": 10.0}


# ---- data: training, validation and test rows ----


def embedding(name):
    """Made features with a spectrum that falls; a ninth of the rows validates, as many test."""
    n, d, K, _ = SHAPES["embedding"][name]
    rows = embedding_like(n + 2 * (n // 9), d, K, seed=0, distance=DISTANCES[name])
    return _cut(*rows, n, n // 9)


def mnist(_):
    """Three random convolutions of MNIST's images: 6,000, 1,500 and 10,000 rows of 2,352."""
    from admm_softmax.datasets import load_mnist  # noqa: PLC0415
    from admm_softmax.features import RandomConvolution  # noqa: PLC0415

    images = load_mnist()
    pixels = np.concatenate([images.train_images[:7_500], images.test_images])
    labels = np.concatenate([images.train_labels[:7_500], images.test_labels])
    X = RandomConvolution(3, random_state=0).fit_transform(pixels / np.float32(255))
    return _cut(X, labels, 6_000, 1_500)


def cifar10(_):
    """AlexNet's pool5 of CIFAR-10's images: 12,000, 2,000 and 2,000 rows of 2,304.

    Maps of 6 × 6 are averaged to 3 × 3, and each row is standardised.
    """
    from admm_softmax.datasets import load_cifar10  # noqa: PLC0415
    from admm_softmax.features import AlexNetPool5, standardize_examples  # noqa: PLC0415
    from admm_softmax.storage.folders import cache_folder  # noqa: PLC0415

    images = load_cifar10()
    pixels, labels = images.train_images, images.train_labels
    parts = [
        (pixels[:12_000], labels[:12_000]),
        (pixels[12_000:14_000], labels[12_000:14_000]),
        (images.test_images[:2_000], images.test_labels[:2_000]),
    ]
    network = AlexNetPool5(cache_dir=cache_folder() / "features").fit(pixels[:2])
    maps = [(network.transform(x).reshape(-1, 256, 3, 2, 3, 2), y) for x, y in parts]
    return [(standardize_examples(X.mean(axis=(3, 5)).reshape(len(X), -1)), y) for X, y in maps]


def _cut(X, y, n, count):
    parts = slice(n), slice(n, n + count), slice(n + count, None)
    return [(X[part], y[part]) for part in parts]


DATA = {"embedding-100": embedding, "embedding-1000": embedding, "mnist": mnist, "cifar10": cifar10}


# ---- peers ----


class Peer:
    """A LogisticRegression as DINOv3 calls it, with the better of one thread and all."""

    def __init__(self, name, train, max_iter):
        self.name, self.max_iter, self.kind = name, max_iter, LogisticRegression
        if name == "scikit-learn-intelex":
            from sklearnex.linear_model import LogisticRegression as kind  # noqa: PLC0415

            self.kind = kind
        self.threads = best_threads(lambda threads: self._fit(train, 1.0, SHORT, threads))
        self.seconds, self.scores, self.models = [], [], []

    def _fit(self, rows, C, max_iter, threads):
        model = self.kind(
            solver="lbfgs", C=C, max_iter=max_iter, tol=1e-12, n_jobs=1 if threads == 1 else -1
        )
        limit = threadpool_limits(1) if threads == 1 else nullcontext()
        with limit, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(rows[0], rows[1].astype(np.float64))

    def timed(self, rows, C):
        """The model under C, and the seconds of its fit."""
        begin = time.perf_counter()
        model = self._fit(rows, C, self.max_iter, self.threads)
        return model, time.perf_counter() - begin

    def try_one(self, train, val, C):
        """Fit under C; print, and keep, time and validation accuracy."""
        model, seconds = self.timed(train, C)
        self.seconds.append(seconds)
        self.scores.append(model.score(*val))
        print(
            f"  C = {C:8.3g} {self.name}: {seconds:.1f} s, {model.n_iter_[0]} iterations, "
            f"validation {self.scores[-1]:.4f}",
            flush=True,
        )


def compare(peer, tried, both, test, ours, seconds, same):
    """Refit a peer under its best C, and print it against ours."""
    best = int(np.argmax(peer.scores))
    model, refit = peer.timed(both, tried[best])
    whole = np.interp(np.log(CS), np.log(tried), peer.seconds).sum() + refit
    theirs = model.predict(test[0]) == test[1]
    print(f"{peer.name}, at most {peer.max_iter} iterations, {peer.threads} thread(s):")
    print(f"  {whole:.0f} s for 45 C (from {len(tried)}) and a refit ({refit:.1f} s)")
    print(f"  ratio {whole / seconds:.1f}")
    print(f"  compared C: theirs {tried[best]:.3g}, validation {peer.scores[best]:.4f}")
    print(f"              ours   {same.C:.3g}, validation {same.val_scores[same.best]:.4f}")
    for name, result in (("the compared C", same), ("all 45 C", ours)):
        hits = result.estimator.predict(test[0]) == test[1]
        low, high = _interval(hits.astype(float) - theirs)
        print(
            f"  test, ours from {name}: {hits.mean():.4f}, theirs {theirs.mean():.4f}, "
            f"difference [{low:+.4f}, {high:+.4f}]",
            flush=True,
        )


def _interval(differences, samples=2000):
    """The 95 % percentile interval of their mean over bootstrap samples of the rows."""
    random, n = np.random.default_rng(0), len(differences)
    means = [differences[random.integers(0, n, n)].mean() for _ in range(samples)]
    return np.quantile(means, [0.025, 0.975])


def sweep(train, val, test):
    """Ours over all C, and its seconds."""
    begin = time.perf_counter()
    found = probe(train, val, test, Cs=CS)
    return found, time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", choices=DATA)
    parser.add_argument("--compared", type=int, default=5, help="how many of the 45 C")
    parser.add_argument("--max-iter", type=int, default=1000, help="of the peers")
    parser.add_argument("--peers", nargs="*", default=["scikit-learn", "scikit-learn-intelex"])
    args = parser.parse_args()
    train, val, test = DATA[args.data](args.data)
    print(f"{args.data}: {train[0].shape}, {len(val[1])} and {len(test[1])} rows", flush=True)
    warm_up()
    few = [part[:2000] for part in train]
    probe(few, few, Cs=CS[20:22], samples=0)
    ours, first = sweep(train, val, test)
    seconds = [first]
    print(f"ours: {first:.1f} s for 45 C, refit and test; C = {ours.C:.3g}")
    print(f"  validation {ours.val_scores[ours.best]:.4f}, test {ours.test['accuracy']}")
    places = np.linspace(0, len(CS) - 1, args.compared).round().astype(int)
    print(f"  validation at the compared C: {ours.val_scores[places].round(4)}", flush=True)
    same = probe(train, val, test, Cs=CS[places])
    print(
        f"  of these alone: C = {same.C:.3g}, validation {same.val_scores[same.best]:.4f}, ", end=""
    )
    print(f"test {same.test['accuracy'].value:.4f}", flush=True)
    wide = [(X.astype(np.float64), y) for X, y in (train, val, test)]
    peers = [Peer(name, wide[0], args.max_iter) for name in args.peers]
    for k, C in enumerate(CS[places]):
        if peers and k == len(places) // 2:
            seconds.append(sweep(train, val, test)[1])
        for peer in peers:
            peer.try_one(wide[0], wide[1], C)
    if peers:
        seconds.append(sweep(train, val, test)[1])
    print("ours, seconds:", ", ".join(f"{one:.1f}" for one in seconds))
    both = tuple(np.concatenate(arrays) for arrays in zip(*wide[:2], strict=True))
    for peer in peers:
        compare(peer, CS[places], both, wide[2], ours, float(np.median(seconds)), same)


if __name__ == "__main__":
    main()
