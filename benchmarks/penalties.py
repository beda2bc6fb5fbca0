"""Sparse penalties against the peers: one fit, and a path of 100 penalties.

::

    python benchmarks/penalties.py [SHAPE ...] [--parts count fit lasso groups] [--peers PYTHON]

*One fit.* Everyone minimises mean loss + α ‖W‖₁ with an intercept, at the share of α_max that the
shape says, and is timed until its objective is within 1e-4 of the best found, relatively, from
scratch. How many iterations that takes is found before, untimed, by the part `count`: saga (the
only solver of scikit-learn that takes ‖W‖₁ and several classes) and cyanure run with a doubling
number of iterations, then the last interval is halved down to a twentieth; ours run with a falling
tolerance. A peer whose next run would take longer than `--limit` seconds is stopped, and its gap
then is quoted. Every peer is warmed up and has the better of one and all BLAS threads, chosen by
fits that take 0.3 s or are whole. Ours and a peer take turns, three times, or once where the peer
takes more than a minute, and ours runs once more after them. Medians count.

*Paths.* 100 penalties as `softmax_path(X, y, 100)` chooses them, beside one fit at the smallest.
adelie fits the same penalties of the group lasso. skglm fits K lassos of one class against the
rest: another problem, which stands for speed alone. Both live in an environment of their own,
whose Python `--peers` names, and take turns with ours by the same rule.

Counts and measurements are kept in a file, `--points`, so that shapes and parts may be run one by
one; `--print` writes the tables from it alone.
"""

import argparse
import json
import resource
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from benchmark_utils.elsewhere import Elsewhere, Failed
from benchmark_utils.generators import embedding_like, planted, text_like
from benchmark_utils.peers import WARM_UP, limited, long_enough
from benchmark_utils.tables import RESULTS, heading, publish
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from admm_softmax import Problem, SoftmaxRegression, datasets, penalties, softmax_path
from admm_softmax._parallel import cpu_count
from admm_softmax.experiments.digits import best_threads
from admm_softmax.path.largest_alpha import largest_alpha

GAP = 1e-4
#: The longest run of a peer, in seconds of CPU where iterations are counted; and of adelie and
#: skglm.
LIMIT, PATH_LIMIT = 60.0, 100.0
#: Runs of ours alone up to so many seconds are repeated twice.
SHORT = 5.0
#: A peer that takes more seconds has one turn, others three.
LONG = 60.0
#: Penalties of the path, or classes, that adelie's and skglm's threads are chosen by at least.
FEW, FEW_CLASSES = 20, 1
TOLERANCES = [1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5, 5e-6]


def mnist():
    images = datasets.load_mnist()
    X = images.train_images.reshape(len(images.train_images), -1)[:20_000].astype(np.float32) / 255
    return X, images.train_labels[:20_000].astype(int)


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


DATA = {
    "digits": (digits, 0.01),
    "mnist": (mnist, 0.03),
    "probe": (lambda: embedding_like(8_000, 384, 50), 0.03),
    "wide": (lambda: planted(1_000, 5_000, 5), 0.1),
    "sparse text": (lambda: text_like(10_000, 30_000, 20, 2.7e-3), 0.1),
    "wide sparse": (lambda: planted(2_000, 40_000, 5, 1e-3), 0.1),
    "large text": (lambda: text_like(60_000, 80_000, 50, 1e-3), 0.1),
}


def timed(function):
    began = time.perf_counter()
    found = function()
    return found, time.perf_counter() - began


def median_time(function):
    """The median of three runs, or of the one that was long."""
    seconds = [timed(function)[1]]
    while seconds[0] <= SHORT and len(seconds) < 3:
        seconds.append(timed(function)[1])
    return float(np.median(seconds))


def in_turns(own, peer):
    """What both return, seconds first: ours before, between and after the turns of the peer."""
    mine, theirs = [own()], []
    while len(theirs) < 3 and not (theirs and theirs[0][0] > LONG):
        theirs.append(peer())
        mine.append(own())
    return mine, theirs


def median_seconds(runs):
    return float(np.median([run[0] for run in runs]))


def ours(X, y, alpha, run):
    clf = SoftmaxRegression(alpha=alpha, l1_ratio=1.0, tol=TOLERANCES[run]).fit(X, y)
    return clf.coef_, clf.intercept_


def saga(X, y, alpha, max_iter):
    clf = LogisticRegression(
        C=1 / (X.shape[0] * alpha),
        l1_ratio=1.0,
        solver="saga",
        tol=1e-12,
        max_iter=max_iter,
        random_state=0,
    )
    clf.fit(X, y)
    return clf.coef_, clf.intercept_


def cyanure(X, y, alpha, max_iter):
    from cyanure.estimators import Classifier  # noqa: PLC0415

    clf = Classifier(
        loss="multiclass-logistic",
        penalty="l1",
        lambda_1=alpha,
        fit_intercept=True,
        tol=1e-12,
        max_iter=max_iter,
        verbose=False,
        duality_gap_interval=max(10, max_iter),
    )
    clf.fit(sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X), y)
    W = np.asarray(clf.get_weights()[0] if isinstance(clf.get_weights(), tuple) else clf.coef_)
    return W.reshape(-1, X.shape[1]) if W.shape[-1] == X.shape[1] else W.T, clf.intercept_


PEERS = {"saga": saga, "cyanure": cyanure}


def quietly(fit, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*args)


def find_count(gap_of, limit):
    """The smallest number of iterations that is good enough, to a twentieth.

    Or the last that was within the limit, where none was; then False comes with it.
    """
    count = 4
    while True:
        began = time.process_time()
        gap = gap_of(count)
        seconds = time.process_time() - began
        print(f"    {count}: {seconds:.2f} s of CPU, gap {gap:.1e}", flush=True)
        if gap <= GAP:
            break
        if 2 * seconds > limit:
            return count, False
        count *= 2
    low, high = count // 2, count
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if gap_of(middle) <= GAP else (middle, high)
    print(f"    {high} are enough", flush=True)
    return high, True


def better_threads(fit, first, most):
    """One or all, for `fit(threads, count)`, where a count of `most` is the whole."""
    count = long_enough(lambda count: fit(cpu_count(), count), first, most)
    return best_threads(lambda threads: fit(threads, count), is_warm=True)


def values(X, y, alpha):
    """F of given coefficients."""
    problem = Problem.of(X, y, alpha, penalty=penalties.Lasso())
    return lambda coef, intercept: float(
        problem.objective(np.vstack([np.asarray(coef).T, np.asarray(intercept)]))
    )


def counts(X, y, alpha, limit):
    """How far everyone must go; the best objective; and what memory ours needed besides X."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    exact = SoftmaxRegression(alpha=alpha, l1_ratio=1.0, tol=1e-6, max_iter=2000).fit(X, y)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    value = values(X, y, alpha)
    goal = value(exact.coef_, exact.intercept_)
    found = {"goal": goal, "nonzero": exact.n_nonzero_, "memory": memory / 1024}
    gaps = (value(*ours(X, y, alpha, run)) / goal - 1 for run in range(len(TOLERANCES)))
    found["ours"] = next(run for run, gap in enumerate(gaps) if gap <= GAP)
    for name, peer in PEERS.items():
        print(f"  {name}", flush=True)
        found[name] = find_count(
            lambda n, fit=peer: value(*quietly(fit, X, y, alpha, n)) / goal - 1, limit
        )
    return found


def one_fit(X, y, alpha, count):
    """Seconds and gaps of all who fit the lasso."""
    value = values(X, y, alpha)

    def measured(fit, run, threads=None):
        with limited(threads):
            result, seconds = timed(lambda: quietly(fit, X, y, alpha, run))
        return seconds, value(*result) / count["goal"] - 1

    def own():
        return measured(ours, count["ours"])

    own()
    mine, found = [], {}
    for name, peer in PEERS.items():
        needed, is_enough = count[name]
        threads = better_threads(lambda t, n, fit=peer: measured(fit, n, t), WARM_UP, needed)
        runs, theirs = in_turns(own, lambda fit=peer, n=needed, t=threads: measured(fit, n, t))
        mine += runs
        found[name] = median_seconds(theirs), theirs[0][1], is_enough
        print(f"  {name}, {threads} thread(s): {found[name]}", flush=True)
    mine = mine or [own()]
    found["ours"] = median_seconds(mine), max(gap for _, gap in mine)
    print(f"  ours: {found['ours']}, {mine}", flush=True)
    return found


def path(X, y, penalty, peers):
    """100 penalties, and one fit at the smallest of them; with adelie if that can."""
    found = {}
    softmax_path(X, y, [1.0, 0.5], penalty=penalty)  # warms up
    walk = softmax_path(X, y, 100, penalty=penalty)
    alpha = walk.alphas[-1]

    def own():
        return timed(lambda: softmax_path(X, y, 100, penalty=penalty))[1]

    found["fit"] = median_time(lambda: SoftmaxRegression(alpha=alpha, penalty=penalty).fit(X, y))
    found |= {"alphas": len(walk.alphas), "range": walk.alphas[0] / alpha, "reads": walk.reads}
    if peers and isinstance(penalty, penalties.GroupLasso) and not sp.issparse(X):
        with Elsewhere(peers, PATH_LIMIT, X=X, y=y, alphas=walk.alphas) as peer:
            found |= beside(peer, own, "adelie", "path", FEW, len(walk.alphas))
        problem = Problem.of(X, y, alpha, penalty=penalty)
        W = np.vstack([walk.coefs[-1].T, walk.intercepts[-1]])
        found["our objective"] = problem.objective(W)
    if "path" not in found:
        found["path"] = median_time(own)
    return found


def beside(elsewhere, own, name, whose, first, most):
    """Seconds of a peer in another environment under `name`, of ours in turns with it `whose`."""
    found = {}
    try:
        threads = better_threads(elsewhere.fit, first, most)
        if name == "adelie":
            found["half"] = elsewhere.fit(threads, most // 2)["seconds"]
        answers = []

        def peer():
            answers.append(elsewhere.fit(threads, most))
            return [answers[-1]["seconds"]]

        mine, theirs = in_turns(lambda: [own()], peer)
    except Failed as failed:
        return found | failed.args[0]
    found |= {whose: median_seconds(mine), name: median_seconds(theirs)}
    return found | {key: answers[0][key] for key in answers[0] if key != "seconds"}


def measure(name, parts, peers, known, limit):
    """Yield what is found out about a shape, part by part."""
    make, share = DATA[name]
    X, y = make()
    size = f"{X.shape[0]:,} × {X.shape[1]:,}, K = {y.max() + 1}"
    alpha = share * largest_alpha(Problem.of(X, y, 1.0, penalty=penalties.Lasso()))
    if "count" in parts:
        known = known | {"size": size, "count": counts(X, y, alpha, limit)}
        yield known
    if "fit" in parts:
        found = one_fit(X, y, alpha, known["count"])
        yield {"fit": found}
        if peers and not sp.issparse(X):
            run = known["count"]["ours"]
            with Elsewhere(peers, PATH_LIMIT, X=X, y=y, alpha=alpha) as peer:
                found |= beside(
                    peer, lambda: timed(lambda: ours(X, y, alpha, run))[1],
                    "skglm", "ours beside skglm", FEW_CLASSES, int(y.max()) + 1,
                )  # fmt: skip
            yield {"fit": found}
    if "lasso" in parts:
        yield {"size": size, "lasso": path(X, y, penalties.Lasso(), None)}
    if "groups" in parts:
        yield {"size": size, "groups": path(X, y, penalties.GroupLasso(), peers)}


def fits_table(points):
    yield "| one fit | ours | saga | cyanure | skglm, one class against the rest | not zero |"
    yield "|---|---|---|---|---|---|"
    for name, point in points.items():
        if "fit" not in point:
            continue
        fit = point["fit"]
        mine = fit["ours"][0]
        cells = [f"{name}: {point['size']}", f"{mine:.3f} s"]
        for peer in ("saga", "cyanure"):
            if peer not in fit:
                cells.append("")
                continue
            seconds, gap, is_enough = fit[peer]
            times = f"{seconds / mine:.1f} ×"
            late = f"stopped after {seconds:.1f} s at a gap of {gap:.1e}: more than {times}"
            cells.append(f"{seconds:.2f} s: {times}" if is_enough else late)
        late = f"more than {PATH_LIMIT:.0f} s" if "stopped" in fit else ""
        if "skglm" in fit:
            mine = fit.get("ours beside skglm", mine)
            late = f"{fit['skglm']:.2f} s: {fit['skglm'] / mine:.1f} ×"
        cells.append(late)
        yield "| " + " | ".join([*cells, str(point["count"]["nonzero"])]) + " |"


def paths_table(points):
    yield "| path | penalties | path | fit at the last | ratio | reads | adelie |"
    yield "|---|---|---|---|---|---|---|"
    for name, point in points.items():
        for kind in ("lasso", "groups"):
            if kind not in point:
                continue
            found = point[kind]
            yield (
                f"| {name}, {kind} | {found['alphas']}, to α_max/{found['range']:.0f} "
                f"| {found['path']:.2f} s | {found['fit']:.2f} s "
                f"| {found['path'] / found['fit']:.1f} | {found['reads']:.0f} | {adelie(found)} |"
            )


def adelie(found):
    if "adelie" in found:
        ours_less = found["objective"] / found["our objective"] - 1
        words = f"{found['adelie']:.2f} s: {found['adelie'] / found['path']:.1f} ×"
        return f"{words}; its last objective less ours, relatively: {ours_less:.0e}"
    if "stopped" in found:
        half = f"; the first 50 took {found['half']:.1f} s" if "half" in found else ""
        return f"more than {PATH_LIMIT:.0f} s: stopped{half}"
    return found.get("error", "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shapes", nargs="*", default=list(DATA))
    parser.add_argument("--parts", nargs="*", default=["count", "fit", "lasso", "groups"])
    parser.add_argument("--fitted-by", nargs="*", default=list(PEERS), help="peers of one fit")
    parser.add_argument("--peers", help="the Python of an environment with adelie and skglm")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a peer's run")
    parser.add_argument("--print", action="store_true", help="only write the tables")
    parser.add_argument("--points", type=Path, default=RESULTS / "penalties.json")
    given = parser.parse_args()
    for name in set(PEERS) - set(given.fitted_by):
        del PEERS[name]
    points = json.loads(given.points.read_text()) if given.points.exists() else {}
    for name in () if given.print else given.shapes:
        print(name, flush=True)
        for found in measure(name, given.parts, given.peers, points.get(name, {}), given.limit):
            points[name] = points.get(name, {}) | found
            given.points.write_text(json.dumps(points, indent=1))
    words = "seconds until the objective is within 1e-4 of the best, and for paths of 100 penalties"
    lines = [*fits_table(points), "", *paths_table(points)]
    publish(RESULTS / "penalties.md", heading("penalties.py", words + "."), lines)


if __name__ == "__main__":
    main()
