"""Many fits in one process, as a script: memory, threads and descriptors must stay flat.

`python -m tests.trust.soak FITS` prints, as JSON, what the process has after a tenth of the fits
and at the end.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from admm_softmax import ADMM, LBFGS, Problem, SoftmaxRegression, SoftmaxRegressionCV, run
from tests.problems import make

X, Y = make(200, 8, 3)
LARGE = make(12_000, 30, 12, dtype=np.float32)


def compiled(folder):
    """A fit in compiled passes, in the pool of threads."""
    SoftmaxRegression(1e-2, max_iter=2, n_threads=2).fit(*LARGE)


def on_file(folder):
    """A fit to rows in a file, read block by block."""
    SoftmaxRegression(1e-2, max_iter=3).fit(folder / "x.npy", Y)


def checkpointed(folder):
    """A fit that writes its state, in a new folder each time."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        SoftmaxRegression(1e-2, checkpoint=own, checkpoint_every=0.0, max_iter=5).fit(X, Y)


def refused(folder):
    """A fit that ends in an error."""
    try:
        SoftmaxRegression(1e-2, solver="admm").fit(X, np.where(Y > 1, None, "a"))
    except ValueError:
        return
    raise AssertionError("labels of None are refused")


KINDS = [
    lambda folder: SoftmaxRegression(1e-2).fit(X, Y),
    lambda folder: SoftmaxRegression(1e-2, l1_ratio=0.5, max_iter=20).fit(X, Y),
    lambda folder: SoftmaxRegression(1e-2, solver="sgd", max_iter=3).fit(sp.csr_array(X), Y),
    lambda folder: SoftmaxRegressionCV([0.1, 1e-2], cv=2, max_iter=20).fit(X, Y),
    lambda folder: run(Problem.of(X, Y, 1e-2), ADMM().then(LBFGS(), after=3), max_iter=10),
    on_file,
    checkpointed,
    refused,
]


def now():
    """Resident memory in bytes, threads and open descriptors of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return {
        "memory": pages * os.sysconf("SC_PAGE_SIZE"),
        "threads": threading.active_count(),
        "tasks": len(os.listdir("/proc/self/task")),
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


def main(fits):
    """Fit, look, fit, and look again."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "x.npy", X)
        seen = []
        for number in range(fits):
            if number in (fits // 10, fits // 2):
                seen.append(now())
            (compiled if number % 20 == 0 else KINDS[number % len(KINDS)])(folder)
        seen.append(now())
    print(json.dumps(seen))


if __name__ == "__main__":
    main(int(sys.argv[1]))
