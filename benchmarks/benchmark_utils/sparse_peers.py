"""Run by benchmarks/penalties.py in an environment with adelie and skglm: lines of JSON.

With `alphas`, adelie fits the multinomial group lasso, a group for each feature. Its loss is
divided by K, and its penalty of a group is α √K ‖W_g‖, so its α is ours over K^1.5. With `alpha`,
skglm fits one lasso for each class against the rest. Each has the better of one and all threads.
"""

import json
import os
import sys
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

warnings.simplefilter("ignore")
#: Penalties of the path that adelie's threads are chosen by.
FEW = 20


def seconds_of(function):
    began = time.perf_counter()
    found = function()
    return found, time.perf_counter() - began


def better_threads(function):
    """1 or as many as there are cores."""
    seconds = {threads: seconds_of(lambda t=threads: function(t))[1] for threads in (1, CORES)}
    return min(seconds, key=seconds.get)


def adelie_path(X, y, alphas):
    import adelie as ad  # noqa: PLC0415

    K = int(y.max()) + 1
    dense, C = np.asfortranarray(X, dtype=np.float64), np.eye(K)[y]

    def path(n_alphas, threads):
        return ad.grpnet(
            X=ad.matrix.dense(dense, method="naive", n_threads=threads),
            glm=ad.glm.multinomial(C, dtype=np.float64),
            groups=None,
            alpha=1.0,
            lmda_path=alphas[:n_alphas] / K**1.5,
            early_exit=False,
            progress_bar=False,
            n_threads=threads,
        )

    path(2, 1)
    threads = better_threads(lambda t: path(FEW, t))
    yield {"half": seconds_of(lambda: path(50, threads))[1]}
    state, seconds = seconds_of(lambda: path(len(alphas), threads))
    if len(state.lmdas) < len(alphas):
        yield {"error": f"reached {len(state.lmdas)} of {len(alphas)} penalties"}
        return
    W = np.asarray(state.betas[-1].todense()).reshape(X.shape[1], K)
    Z = dense @ W + np.asarray(state.intercepts[-1])
    top = Z.max(axis=1)
    loss = np.mean(np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top - Z[np.arange(len(y)), y])
    yield {"adelie": seconds, "objective": loss + alphas[-1] * np.linalg.norm(W, axis=1).sum()}


def skglm_fits(X, y, alpha):
    from skglm import SparseLogisticRegression  # noqa: PLC0415

    def rest(threads):
        with threadpool_limits(threads):
            for k in range(int(y.max()) + 1):
                labels = np.where(y == k, 1, -1)
                SparseLogisticRegression(alpha=alpha, tol=1e-4, fit_intercept=True).fit(X, labels)

    rest(1)
    threads = better_threads(rest)
    yield {"skglm": seconds_of(lambda: rest(threads))[1]}


CORES = os.cpu_count()
given = np.load(sys.argv[1])
if "alphas" in given:
    found = adelie_path(given["X"], given["y"], given["alphas"])
else:
    found = skglm_fits(given["X"], given["y"], float(given["alpha"]))
try:
    for line in found:
        print(json.dumps(line), flush=True)
except Exception as error:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"[:200]}))
