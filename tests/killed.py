"""Fits that are killed at random moments and started again; run as a script by the tests.

`python -m tests.killed FOLDER CASE=KILLS …` prints, as JSON, how the answers after a kill -9 differ
from the answer without. A moment is a call of a Python function: a child process counts its calls
and sends itself SIGKILL at a given one, so that the same seed kills at the same moments. Children
are forked from a process that has everything imported, which makes each cost milliseconds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import warnings
from itertools import count
from pathlib import Path

import numpy as np

from admm_softmax import (
    ADMM,
    LBFGS,
    SGD,
    HessianLBFGS,
    Newton,
    NewtonCG,
    Problem,
    RowBlocks,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    run,
    softmax_path,
)
from admm_softmax.design import reader
from admm_softmax.solvers.row_space import RowSpace
from tests.problems import make

SOLVERS = {
    "lbfgs": LBFGS(6, "gram"),
    "admm": ADMM(relaxation=1.7, start="smart"),
    "chain": ADMM(relaxation=1.7, start="smart").then(LBFGS(5, "gram"), after=8),
    "newton-cg": NewtonCG(100, None, preconditioner="jacobi"),
    "newton": Newton(),
    "hessian-lbfgs": HessianLBFGS(),
    "sgd": SGD(0.05, batch_size=20, nesterov=True),
    "row-space": RowSpace(LBFGS(5, "gram")).then(LBFGS(5)),
}

#: Where the rows of the cases on files are.
FILES: dict[str, str] = {}


def answer(case, folder):
    """The arrays that a call ends with; checkpoints are written whenever possible."""
    kept = {"checkpoint": folder, "checkpoint_every": 0.0}
    if case.startswith("files-"):
        return answer_on_files(case.removeprefix("files-"), kept)
    if case == "path":
        X, y = make(60, 5, 3)
        path = softmax_path(
            X, y, [1e-1, 1e-2, 1e-3, 1e-4], X_val=X[:30], y_val=y[:30], tol=1e-8, **kept
        )
        return [path.coefs, path.intercepts, path.val_loss]
    if case == "cross-validation":
        X, y = make(60, 5, 3)
        clf = SoftmaxRegressionCV([1e-1, 1e-2, 1e-3], cv=3, tol=1e-8, **kept).fit(X, y)
        return [clf.coef_, clf.intercept_, clf.scores_, clf.coefs_paths_]
    if case == "estimator":
        X, y = make(60, 5, 3)
        clf = SoftmaxRegression(1e-3, tol=1e-8, solver="lbfgs", **kept)
        clf.fit(X, y, X_val=X[:20], y_val=y[:20])
        return [clf.coef_, clf.intercept_, clf.history_["objective"]]
    shape = (12, 40, 3) if case == "row-space" else (60, 5, 3)
    X, y = make(*shape)
    most = 12 if case in ("sgd", "admm") else 200
    result = run(Problem.of(X, y, 1e-3), SOLVERS[case], tol=1e-7, max_iter=most, **kept)
    return [result.W, result.history["objective"], result.history["gradient_norm"]]


def answer_on_files(case, kept):
    """The same for rows in shards, of which a few are in memory at a time."""
    X, y = make(60, 5, 3)
    rows = RowBlocks(FILES["pattern"], memory_limit=20_000)
    if case == "path":
        path = softmax_path(rows, y, [1e-1, 1e-2], X_val=X[:30], y_val=y[:30], tol=1e-8, **kept)
        return [path.coefs, path.intercepts, path.val_loss]
    if case == "cv":
        clf = SoftmaxRegressionCV([1e-1, 1e-2], cv=3, tol=1e-8, **kept).fit(rows, y)
        return [clf.coef_, clf.intercept_, clf.scores_, clf.coefs_paths_]
    most = 12 if case in ("sgd", "admm") else 200
    result = run(Problem.of(rows, y, 1e-3), SOLVERS[case], tol=1e-7, max_iter=most, **kept)
    return [result.W, result.history["objective"], result.history["gradient_norm"]]


def write_shards(folder):
    """The rows in three files, to be read in blocks of a few rows."""
    folder.mkdir()
    for i, part in enumerate(np.split(make(60, 5, 3)[0], [13, 40])):
        np.save(folder / f"x-{i}.npy", part)
    reader.READ_BLOCK_BYTES, reader.LEAST_READ_ROWS = 500, 1
    FILES["pattern"] = str(folder / "x-*.npy")


def in_child(function):
    """Run the function in a forked process; how that ended, as os.waitpid says."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def counted(act):
    """From here on, act(n) at the n-th call of a function, in every thread; None ends it."""
    number = count(1)

    def hook(frame, event, argument):
        if event == "call":
            act(next(number))

    threading.setprofile(hook if act else None)
    sys.setprofile(hook if act else None)


def compared(case, kills, root):
    """Compare `kills` answers after a kill with the answer without."""
    root.mkdir()
    answer(case, None)  # imports what is loaded late
    calls = []
    counted(calls.append)
    expected = answer(case, str(root / "whole"))
    counted(None)
    random = np.random.default_rng(0)
    found = []
    for i in range(kills):
        # A thread that waits for another calls more or fewer functions each time.
        last = 0.8 * len(calls) if case.startswith("files-") else len(calls)
        own, moment = root / str(i), int(random.integers(1, last))

        def killed(own=own, moment=moment):
            counted(lambda n: os.kill(os.getpid(), signal.SIGKILL) if n == moment else None)
            answer(case, str(own))

        status = in_child(killed)
        assert os.WIFSIGNALED(status), f"call {moment} of {len(calls)} was not reached"
        assert os.WTERMSIG(status) == signal.SIGKILL
        had = any(own.glob("*.npz"))
        arrays = answer(case, str(own))
        same = all(
            np.array_equal(a, b, equal_nan=True) for a, b in zip(arrays, expected, strict=True)
        )
        off = max(
            float(np.nanmax(np.abs(a - b))) if a.shape == b.shape else np.inf
            for a, b in zip(arrays, expected, strict=True)
        )
        left = [path.name for path in own.iterdir() if path.name.startswith(".")]
        found.append({"moment": moment, "had": had, "same": same, "off": off, "left": left})
    return found


if __name__ == "__main__":
    warnings.simplefilter("error")
    pairs = [argument.split("=") for argument in sys.argv[2:]]
    root = Path(sys.argv[1])
    root.mkdir(parents=True)
    write_shards(root / "data")
    print(json.dumps({case: compared(case, int(kills), root / case) for case, kills in pairs}))
