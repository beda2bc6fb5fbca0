"""Fit a file under a hard limit of memory, run as a process of its own by `test_memory.py`.

    python -m tests.sources.capped_fit FOLDER LIMIT SLACK

Everything is imported, compiled and run once on a small file first: what that takes is not the
data's. From there on the process may take LIMIT + SLACK bytes more, and not one page beyond.
"""

import resource
import sys
from pathlib import Path

import numpy as np

from admm_softmax import ADMM, LBFGS, RowBlocks, SoftmaxRegression
from admm_softmax.design import Design

SOLVERS = {"lbfgs": LBFGS(preconditioner="gram"), "admm": ADMM(rho=0.05)}
STEPS = {"lbfgs": 40, "admm": 12}


def fit(rows, y, name):
    solver = SOLVERS[name]
    return SoftmaxRegression(alpha=1e-2, solver=solver, max_iter=STEPS[name], tol=1e-8).fit(rows, y)


def data_bytes():
    """Private memory that is written to: what RLIMIT_DATA bounds."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if "VmData" in line)


def main(folder, limit, slack):
    Design.compiles = lambda self, columns, **_: True
    folder, limit = Path(folder), int(limit)
    y = np.load(folder / "y.npy")
    for name in SOLVERS:
        fit(RowBlocks(folder / "small.npy", memory_limit=limit), y[:2000], name).predict(
            folder / "small.npy"
        )
    before = data_bytes()
    cap = before + limit + int(slack)
    resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
    rows = RowBlocks(folder / "x.npy", memory_limit=limit)
    for name in SOLVERS:
        np.save(folder / f"{name}.npy", fit(rows, y, name).coef_)
    try:
        np.load(folder / "x.npy")
    except MemoryError:
        print("as an array the file does not fit")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # fits stop after a few iterations
    main(*sys.argv[1:])
