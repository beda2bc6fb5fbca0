"""Fits that get SIGINT or SIGTERM at any moment, as a script that the tests start.

`python -m tests.trust.signalled FOLDER TRIES` prints, as JSON, what became of each process and of
the same call after it. Children are forked from a process that has everything imported; the signal
comes from outside, between two instructions of whatever runs then.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from tests.killed import answer

CASES = ("estimator", "path", "cross-validation")
#: How a child ends that was interrupted before it had a model.
NO_MODEL = 3


def in_child(case, folder):
    """Fork; the child fits with Python's own handlers, and says by its exit code how that went."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        signal.signal(signal.SIGINT, signal.default_int_handler)
        warnings.simplefilter("ignore")  # of a model that is not finished
        answer(case, str(folder))
        code = 0
    except KeyboardInterrupt:
        code = NO_MODEL
    finally:
        os._exit(code)


def one(case, folder, number, seconds, expected):
    """Send a signal after so many seconds, then make the same call again."""
    pid = in_child(case, folder)
    # Returns early if the child ends first.
    signal.sigtimedwait({signal.SIGCHLD}, seconds)
    os.kill(pid, number)
    status = os.waitpid(pid, 0)[1]
    while signal.sigtimedwait({signal.SIGCHLD}, 0) is not None:
        pass
    arrays = answer(case, str(folder))
    off = max(
        float(np.nanmax(np.abs(a - b))) if a.shape == b.shape else np.inf
        for a, b in zip(arrays, expected, strict=True)
    )
    ended = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    return {"case": case, "signal": number, "ended": ended, "off": off, "left": left}


def main(root, tries):
    """Some of every case and signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    random = np.random.default_rng(0)
    found = []
    for case in CASES:
        root.joinpath(case).mkdir(parents=True)
        answer(case, None)  # imports what is loaded late
        begin = time.perf_counter()
        expected = answer(case, str(root / case / "whole"))
        seconds = time.perf_counter() - begin
        for i in range(tries):
            for number in (signal.SIGINT, signal.SIGTERM):
                folder = root / case / f"{number}-{i}"
                folder.mkdir()
                found.append(one(case, folder, number, random.uniform(0, 0.8 * seconds), expected))
    print(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("error")  # a checkpoint that is called damaged, for one
    main(Path(sys.argv[1]), int(sys.argv[2]))
