"""Run by `Elsewhere` in an environment with adelie and skglm: a line of JSON for each it gets.

A line is [threads, count], the answer has "seconds", or "error". With `alphas` in the file of data
adelie fits the first `count` penalties of the multinomial group lasso, a group for each feature.
Its loss is divided by K, and its penalty of a group is α √K ‖W_g‖, so its α is ours over K^1.5.
The whole path has its last "objective" with it. With `alpha` skglm fits a lasso for each of
`count` classes against the rest.
"""

import json
import sys
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

warnings.simplefilter("ignore")


def adelie_path(X, y, alphas):
    import adelie as ad  # noqa: PLC0415

    K = int(y.max()) + 1
    dense, C = np.asfortranarray(X, dtype=np.float64), np.eye(K)[y]

    def path(threads, count):
        began = time.perf_counter()
        state = ad.grpnet(
            X=ad.matrix.dense(dense, method="naive", n_threads=threads),
            glm=ad.glm.multinomial(C, dtype=np.float64),
            groups=None,
            alpha=1.0,
            lmda_path=alphas[:count] / K**1.5,
            early_exit=False,
            progress_bar=False,
            n_threads=threads,
        )
        seconds = time.perf_counter() - began
        if len(state.lmdas) < count:
            return {"error": f"reached {len(state.lmdas)} of {count} penalties"}
        return {"seconds": seconds, "objective": objective(state, alphas[count - 1])}

    def objective(state, alpha):
        W = np.asarray(state.betas[-1].todense()).reshape(X.shape[1], K)
        Z = dense @ W + np.asarray(state.intercepts[-1])
        top = Z.max(axis=1)
        loss = np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top - Z[np.arange(len(y)), y]
        return np.mean(loss) + alpha * np.linalg.norm(W, axis=1).sum()

    return path


def skglm_fits(X, y, alpha):
    from skglm import SparseLogisticRegression  # noqa: PLC0415

    def rest(threads, count):
        began = time.perf_counter()
        with threadpool_limits(threads):
            for k in range(count):
                labels = np.where(y == k, 1, -1)
                SparseLogisticRegression(alpha=alpha, tol=1e-4, fit_intercept=True).fit(X, labels)
        return {"seconds": time.perf_counter() - began}

    return rest


given = np.load(sys.argv[1])
try:
    if "alphas" in given:
        fit = adelie_path(given["X"], given["y"], given["alphas"])
    else:
        fit = skglm_fits(given["X"], given["y"], float(given["alpha"]))
    for line in sys.stdin:
        print(json.dumps(fit(*json.loads(line))), flush=True)
except Exception as error:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"[:200]}), flush=True)
