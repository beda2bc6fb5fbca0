"""Passes, parts of fits and whole fits, which several versions of the library time in turns.

Each version is a tree with the library's sources, and has a process of its own that waits while
the others run. A task is named by what it does and on which shape:

    pass-20000x500x10            a pass with the gradient of 20,000 × 500, K = 10, in float32
    pass-20000x500x10-float64    in double
    loaded-300x64x10             the same where compiled code is loaded anyway
    sparse-10000x30000x20        the same over text: sparse rows
    widen-40000x500              rows stored in float16, in single precision
    maps-500x28x13               13 random convolutions of 500 images of 28 × 28, with their tanh
    admm-20000x500x10            an iteration of ADMM
    solve-2000x10                a preconditioner of d × d applied to d × K, in single precision
    factors-60000x100x10-5000    a factor per class from so many rows of embeddings
    fit-20000x60x10              a whole fit of a planted model, α = 1e-4, tol = 1e-5
    embed-60000x100x50           of embeddings, α = 1e-4, tol = 1e-5
    row-1000x4000x5              of ADMM on wide rows, by n × n matrices; `column-…`: by d × d
    path-images, folds-images    20 penalties with the data and tol of FITS; ten with five folds
    coarse-images                four penalties, each a hundredth of the one before

and those of SHAPES and FITS by a name of their own. In its turn a version does the task twice, of
which the second counts, or as often as 20 ms take.
"""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from benchmark_utils.generators import embedding_like, planted, text_like

SHAPES = {
    "large": "pass-40000x7056x10",
    "thin": "pass-200000x50x10",
    "k100": "pass-45000x768x100",
    "k100-double": "pass-25000x768x100-float64",
    "k300": "pass-20000x768x300",
    "k1000": "pass-12811x384x1000",
    "k30": "pass-45000x768x30",
    "k50": "pass-20000x384x50",
}
#: A turn takes at least so many seconds.
LEAST_SECONDS = 0.02
#: Tasks that are whole, and need no other before them in a turn.
WHOLE = ("fit", "embed", "row", "column", "path", "coarse", "folds")


def principal_components():
    """100 principal components of MNIST's images, which are looked for in $ADMM_SOFTMAX_DATA."""
    from admm_softmax.datasets import load_mnist  # noqa: PLC0415  (of the tree, as below)

    images = load_mnist()
    X = images.train_images.reshape(60_000, -1) / 255.0
    X -= X.mean(axis=0)
    X = X @ np.linalg.eigh(X.T @ X)[1][:, -100:]
    return (X / X.std(axis=0)).astype(np.float32), images.train_labels


def small(name, scaled):
    """One of scikit-learn's small data sets, as it is or scaled."""
    from sklearn import datasets  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return (StandardScaler().fit_transform(X) if scaled else X), y


#: Rows and labels, α and tol of whole fits.
FITS = {
    "fit-images": (principal_components, 1e-4, 1e-4),
    "fit-images-tight": (principal_components, 1e-5, 1e-6),
    "fit-tall": (lambda: planted(200_000, 50, 10), 1e-3, 1e-4),
    "fit-tall-two": (lambda: planted(200_000, 50, 2), 1e-4, 1e-4),
    "fit-embedding": (lambda: embedding_like(60_000, 100, 50), 1e-4, 1e-5),
    "fit-embedding-wide": (lambda: embedding_like(20_000, 384, 50), 1e-4, 1e-5),
    "fit-probe": (lambda: embedding_like(45_000, 384, 10), 1e-4, 1e-4),
    "fit-middle": (lambda: planted(20_000, 60, 10), 1e-5, 1e-5),
    "fit-iris": (lambda: small("iris", True), 1e-3, 1e-4),
    "fit-wine": (lambda: small("wine", True), 1e-3, 1e-4),
    "fit-cancer": (lambda: small("breast_cancer", True), 1e-3, 1e-4),
    "fit-digits": (lambda: small("digits", False), 1e-3, 1e-4),
}


def problem_of(X, y, alpha=1e-3):
    from admm_softmax import Problem  # noqa: PLC0415  (of the tree that PYTHONPATH names)

    return Problem.of(X, y, alpha)


def pass_task(problem, loaded=False):
    problem = problem.with_loaded_code() if loaded else problem
    W = 0.01 * np.random.default_rng(1).standard_normal(problem.shape)
    return lambda: problem.at(W)


def drawn(n, d, K, dtype="float32"):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d), dtype=dtype), np.arange(n) % K


def dense_pass(n, d, K, dtype="float32", loaded=False):
    return pass_task(problem_of(*drawn(n, d, K, dtype)), loaded)


def sparse_pass(n, d, K):
    return pass_task(problem_of(*text_like(n, d, K, 2.7e-3)))


def widening(n, d):
    from admm_softmax import as_design  # noqa: PLC0415

    design = as_design(drawn(n, d, 2)[0].astype(np.float16))
    return lambda: design.block(slice(0, n))


def maps(n, side, n_filters):
    from admm_softmax.features import RandomConvolution  # noqa: PLC0415

    images = np.random.default_rng(0).random((n, side, side), dtype=np.float32)
    features = RandomConvolution(n_filters).fit(images)
    return lambda: features.transform(images)


def admm_iteration(n, d, K):
    from admm_softmax import ADMM  # noqa: PLC0415

    iterates = ADMM(rho=0.02, relaxation=1.7).iterates(problem_of(*drawn(n, d, K)), None)
    return lambda: next(iterates)


def solve(d, K):
    from admm_softmax.solvers.least_squares.cholesky import Cholesky  # noqa: PLC0415

    step = Cholesky("single").prepare(problem_of(*drawn(max(1_000, d // 4), d, 3)))
    step.factor(0.05)
    R = np.random.default_rng(1).standard_normal((d + 1, K))
    return lambda: step.precondition(R)


def factors(n, d, K, n_rows):
    """Making a factor per class, or one where it is of the Gram matrix."""
    from admm_softmax.solvers import class_factors  # noqa: PLC0415
    from admm_softmax.solvers.preconditioner import make_preconditioner  # noqa: PLC0415

    problem = problem_of(*embedding_like(n, d, K), 1e-4)
    shared = make_preconditioner("gram", problem, subsample=5_000)
    shared.refresh(0.05)
    class_factors.LARGEST_SHRINKAGE = 1.0  # whatever they are worth
    made = class_factors.with_class_factors(problem, shared, 5_000, 0)
    origin = class_factors.Origin(np.zeros(problem.shape), int(n_rows))
    return lambda: made._make(origin)


def wide_fit(n, d, K, strategy):
    from admm_softmax import ADMM, run  # noqa: PLC0415

    X, y = planted(n, d, K)

    def fit():
        solver = ADMM(rho=0.02, relaxation=1.7, least_squares=strategy)
        run(problem_of(X, y), solver, max_iter=100, tol=1e-12)

    return fit


def fit(data, alpha=1e-4, tol=1e-5):
    from admm_softmax import SoftmaxRegression  # noqa: PLC0415

    X, y = data[:2]
    return lambda: SoftmaxRegression(alpha, tol=tol).fit(X, y)


def path(name, alphas):
    from admm_softmax import softmax_path  # noqa: PLC0415

    data, _, tol = FITS[f"fit-{name}"]
    X, y = data()[:2]
    return lambda: softmax_path(X, y, alphas, tol=tol)


def folds(name):
    from admm_softmax import SoftmaxRegressionCV  # noqa: PLC0415

    data, _, tol = FITS[f"fit-{name}"]
    X, y = data()[:2]
    return lambda: SoftmaxRegressionCV(np.logspace(-1, -6, 10), cv=5, tol=tol).fit(X, y)


KINDS = {
    "pass": dense_pass,
    "loaded": lambda *shape: dense_pass(*shape, loaded=True),
    "sparse": sparse_pass,
    "widen": widening,
    "maps": maps,
    "admm": admm_iteration,
    "solve": solve,
    "factors": factors,
    "row": lambda *shape: wide_fit(*shape, "woodbury"),
    "column": lambda *shape: wide_fit(*shape, "cholesky"),
    "fit": lambda *shape: fit(planted(*shape)),
    "embed": lambda *shape: fit(embedding_like(*shape)),
}
PATHS = {
    "path": partial(path, alphas=np.logspace(-1, -6, 20)),
    "coarse": partial(path, alphas=np.logspace(0, -6, 4)),
    "folds": folds,
}


def task(name):
    """What this name stands for, as a function to call."""
    if name in FITS:
        data, alpha, tol = FITS[name]
        return fit(data(), alpha, tol)
    kind, _, data = name.partition("-")
    if kind in PATHS:
        return PATHS[kind](data)
    kind, shape, *details = SHAPES.get(name, name).split("-")
    return KINDS[kind](*map(int, shape.split("x")), *details)


def seconds_of(call, count=1):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    return (time.perf_counter() - wall) / count, (time.process_time() - cpu) / count


def wait_for_turns(name):
    """A turn for every line that comes; prints its seconds, of wall and CPU time."""
    call = task(name)
    call()
    count = 1 + int(LEAST_SECONDS / seconds_of(call)[0])
    print("ready", flush=True)
    for _ in sys.stdin:
        if count == 1 and not name.startswith(WHOLE):
            call()
        print(*seconds_of(call, count), flush=True)


def started(tree, name):
    """The process of a tree, ready for its first turn."""
    source = str(Path(tree).resolve() / "src")
    process = subprocess.Popen(
        [sys.executable, __file__, name],
        env={**os.environ, "PYTHONPATH": source}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    if process.stdout.readline() != "ready\n":
        raise RuntimeError(f"{tree} could not do {name}")
    return process


def take_turns(trees, name, rounds):
    """Seconds by round and tree, of wall and CPU time; each round begins with another tree."""
    processes = [started(tree, name) for tree in trees]
    times = np.empty((rounds, len(trees), 2))
    for k in range(rounds):
        for i in np.roll(np.arange(len(trees)), -k):
            processes[i].stdin.write("turn\n")
            processes[i].stdin.flush()
            times[k, i] = [float(word) for word in processes[i].stdout.readline().split()]
    for process in processes:
        process.stdin.close()
        process.wait()
    return times


if __name__ == "__main__":
    wait_for_turns(sys.argv[1])
