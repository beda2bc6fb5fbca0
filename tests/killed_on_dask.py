"""A fit on a cluster whose client is killed; run as a script by the tests.

`python -m tests.killed_on_dask ADDRESS FOLDER CASE ITERATE CALLS` sends itself SIGKILL after so many
calls of Python functions, counted from the given iterate on.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count

import numpy as np
from dask import delayed
from distributed import Client

from admm_softmax import ADMM, LBFGS, SGD, NewtonCG, Problem, run
from admm_softmax.design.dask import DaskDesign
from tests.problems import make

N, D, K, PARTS = 240, 6, 3, 4
SOLVERS = {
    "lbfgs": LBFGS(5, "gram"),
    "admm": ADMM(rho=0.2, relaxation=1.7),
    "newton-cg": NewtonCG(100, None, preconditioner="jacobi"),
    "sgd": SGD(0.05, batch_size=60),
}


def chunk(p):
    """A partition that a worker can make whenever it is needed."""
    return np.split(make(N, D, K)[0], PARTS)[p]


def problem_on(client, alpha=1e-2, parts=range(PARTS)):
    """The rows of some partitions, with their labels."""
    design = DaskDesign([delayed(chunk)(p) for p in parts], client=client)
    y = np.concatenate([np.split(make(N, D, K)[1], PARTS)[p] for p in parts])
    return Problem.of(design, y, alpha)


def answer(client, case, folder, callbacks=()):
    """The run of one case; checkpoints are written after every iteration."""
    most = 12 if case in ("sgd", "admm") else 200
    return run(
        problem_on(client),
        SOLVERS[case],
        tol=1e-7,
        max_iter=most,
        checkpoint=folder,
        checkpoint_every=0.0,
        callbacks=callbacks,
    )


def killing(iterate_number, calls):
    """A callback that kills this process a little after the given iterate."""
    seen, number = count(1), count(1)

    def hook(frame, event, argument):
        if event == "call" and next(number) == calls:
            os.kill(os.getpid(), signal.SIGKILL)

    def callback(iterate):
        if next(seen) == iterate_number:
            sys.setprofile(hook)

    return callback


if __name__ == "__main__":
    address, folder, case, iterate_number, calls = sys.argv[1:]
    with Client(address) as client:
        answer(client, case, folder, killing(int(iterate_number), int(calls)))
