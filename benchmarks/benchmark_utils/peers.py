"""What all solver files share: warming up, the choice of threads, how a curve is sampled.

BLAS's threads can slow a small fit down tenfold, and speed a large one up. So every peer runs
with the better of one thread and one per core, chosen by short fits on the data themselves
before the clock starts; `threads` tells the table which it was.
"""

import time
import warnings
from contextlib import nullcontext
from functools import cache

import numpy as np
import scipy.sparse as sp
from benchopt import BaseSolver
from benchopt.stopping_criterion import NoCriterion
from threadpoolctl import ThreadpoolController

from admm_softmax._parallel import cpu_count
from admm_softmax.experiments.digits import best_threads

#: Iterations of the fits that warm a peer up and choose its threads. Few would weigh the checks of
#: the data, which like threads, as much as the iterations, which may not: on 100,000 × 200 with two
#: classes five of scikit-learn's take as long with one thread as with two, 70 two thirds of it.
WARM_UP = 15
#: Iterations are doubled until such a fit takes so many seconds: checks take some hundredths.
LEAST_SECONDS = 0.3
#: Iterations beyond which they are not: some peers stop by themselves.
MOST_ITERATIONS = 500


@cache
def _pools():
    # Made at the first use, when the peer is loaded; scanning for pools takes milliseconds.
    return ThreadpoolController()


def limited(threads):
    """Hold a peer to one thread; with more it runs as it does by default.

    The limit is on BLAS and OpenMP. The latter is what torch runs on, and where
    scikit-learn-intelex looks for the number of its own threads.
    """
    return _pools().limit(limits=1) if threads == 1 else nullcontext()


def long_enough(fit, first, most=MOST_ITERATIONS):
    """With how many iterations `fit` takes LEAST_SECONDS: `first`, doubled, and at most `most`.

    A fit before them, which warms it up, does not count.
    """
    iterations = min(first, most)
    fit(iterations)
    while True:
        begin = time.perf_counter()
        fit(iterations)
        if iterations == most or time.perf_counter() - begin >= LEAST_SECONDS:
            return iterations
        iterations = min(2 * iterations, most)


class Sampled(BaseSolver):
    """A solver on one data set: `W`, `b`, and `work` in words, after a run."""

    #: Why it does not run on sparse data, if it does not.
    dense_only = None
    #: Points of its curve in the first fit that warms it up; more if that is over at once.
    short = WARM_UP

    def skip(self, X, y, n_classes, alpha):
        if self.dense_only and sp.issparse(X):
            return True, self.dense_only
        return False, None

    def set_objective(self, X, y, n_classes, alpha):
        """Take the data, warm up and choose the threads.

        Not in benchopt's `warm_up`: that one is not timed, but its timeout already runs.
        """
        self.data, self.shape, self.alpha = (X, y), (X.shape[1], n_classes), alpha
        self.W, self.b = np.zeros(self.shape), np.zeros(n_classes)
        self.threads = self.choose_threads()

    def choose_threads(self):
        points = long_enough(lambda points: self.warm_up_with(cpu_count(), points), self.short)
        return best_threads(lambda threads: self.warm_up_with(threads, points), is_warm=True)

    def get_result(self):
        return {"W": self.W, "b": self.b, "threads": self.threads}


class Restarted(Sampled):
    """Restarted with more iterations for every point of its curve: `fit(iterations)`."""

    sampling_strategy = "iteration"
    stopping_criterion = NoCriterion(strategy="iteration")
    unit = "iterations"
    tol = 1e-9

    def warm_up_with(self, threads, points):
        self.threads = threads
        self.run(points - 1)

    def get_next(self, stop_val):
        # Half of the time goes to the last run; summarize.py interpolates between runs.
        return max(stop_val + 1, 2 * stop_val)

    def run(self, n_iter):
        with limited(self.threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.W, self.b, iterations = self.fit(n_iter + 1)
        self.work = f"{iterations} {self.unit}"


class Logistic(Restarted):
    """`kind` is scikit-learn's LogisticRegression or a class like it."""

    settings = {}

    def fit(self, iterations):
        C = 1 / (self.data[0].shape[0] * self.alpha)
        model = self.kind(C=C, tol=self.tol, max_iter=iterations, **self.settings)
        model.fit(*self.data)
        return model.coef_.T, model.intercept_, int(np.max(model.n_iter_))


class Stepped(Sampled):
    """Timed along one run: `steps(callback)` calls back for every point of its curve."""

    sampling_strategy = "callback"
    stopping_criterion = NoCriterion(strategy="callback")
    short = 2

    def warm_up_with(self, threads, points):
        self.threads, left = threads, iter([True] * points)
        self.run(lambda: next(left, False))

    def get_next(self, stop_val):
        return stop_val + 1

    def run(self, callback):
        with limited(self.threads):
            self.steps(callback)
