"""The sweep of a linear probe against scikit-learn called as DINOv3's code calls it.

Embedding-like features: a power-law spectrum and overlapping classes, so that no C is obviously
best. Ours: `probe`, all 45 C, choice on validation rows, refit on both, test. scikit-learn:
`LogisticRegression(C, tol=1e-12)` in float64 for some of the 45 C, evenly spaced, from whose mean
the time of all 45 and a refit is extrapolated. As published max_iter is 1000; with a smaller one,
where it is reached, scikit-learn's time is a lower bound, and so is the ratio.

    python benchmarks/probe_sweep.py --rows 45000 --columns 768 --classes 100 --compared 5
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

from admm_softmax import probe, warm_up


def embeddings(n, d, K, seed=0, decay=0.6, spread=1.0):
    """Rows around K centres; eigenvalues of noise and centres fall as powers of their rank.

    The covariance of a row about its centre is Q diag(j^−2·decay) Qᵀ; centres are drawn from the
    same covariance, times `spread` over d^(1/4), so that classes overlap.
    """
    rng = np.random.default_rng(seed)
    scale = np.arange(1, d + 1) ** -decay
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    centres = rng.standard_normal((K, d)) * scale * spread / d**0.25
    y = rng.integers(0, K, n)
    X = (rng.standard_normal((n, d), dtype=np.float32) * scale + centres[y]).astype(np.float32)
    return X @ Q, y


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("rows", 45_000), ("columns", 768), ("classes", 100), ("compared", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--spread", type=float, default=1.5)
    parser.add_argument("--max-iter", type=int, default=1000, help="of scikit-learn")
    parser.add_argument("--time-limit", type=float, default=300.0, help="for scikit-learn")
    args = parser.parse_args()
    n, count = args.rows, args.rows // 9
    X, y = embeddings(n + 2 * count, args.columns, args.classes, spread=args.spread)
    train, val, test = (
        (X[part], y[part]) for part in (slice(n), slice(n, n + count), slice(n + count, None))
    )
    warm_up()
    Cs = np.logspace(-6, 5, 45)
    begin = time.perf_counter()
    ours = probe(train, val, test, Cs=Cs)
    seconds = time.perf_counter() - begin
    print(f"ours: {seconds:.1f} s for 45 C, refit and test; C = {ours.C:.3g}", flush=True)
    print(
        f"  validation {ours.val_scores[ours.best]:.4f}, test {ours.test['accuracy']}", flush=True
    )
    X64, began, times = train[0].astype(np.float64), time.perf_counter(), []
    for i in np.linspace(0, 44, args.compared).round().astype(int):
        if times and time.perf_counter() - began + max(times) > args.time_limit:
            print(f"  not run for lack of time: C = {Cs[i]:.3g} and larger ones", flush=True)
            break
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = LogisticRegression(C=Cs[i], tol=1e-12, max_iter=args.max_iter).fit(X64, train[1])
        times.append(time.perf_counter() - begin)
        score = peer.score(*val)
        print(
            f"  scikit-learn C = {Cs[i]:.3g}: {times[-1]:.1f} s, {peer.n_iter_[0]} iterations, "
            f"validation {score:.4f}; ours {ours.val_scores[i]:.4f}",
            flush=True,
        )
    whole = float(np.mean(times)) * 46
    print(f"scikit-learn, at most {args.max_iter} iterations, {len(times)} C extrapolated to 45:")
    print(f"{whole:.0f} s with a refit")
    print(f"ratio {whole / seconds:.1f}")


if __name__ == "__main__":
    main()
