"""Peers that live in an environment of their own, and wait there for their turns."""

import json
import subprocess
import tempfile
from pathlib import Path
from threading import Timer

import numpy as np


class Failed(Exception):
    """What the peer answered: {"error": …}, or {"stopped": true} after the limit."""


class Elsewhere:
    """sparse_peers.py under another Python: `fit(threads, count)` returns what it answers.

    An answer that takes more than `limit` seconds, and one that is an error, raise `Failed`.
    """

    def __init__(self, python, limit, **data):
        self.python, self.limit, self.data = python, limit, data

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "data.npz"
        np.savez(path, **self.data)
        command = [self.python, Path(__file__).parent / "sparse_peers.py", path]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.folder.cleanup()

    def fit(self, threads, count):
        timer = Timer(self.limit, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps([threads, count]) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:  # the error that ended it may still be there to read
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        answer = json.loads(line) if line else {"stopped": True}
        print("   ", threads, count, answer, flush=True)
        if "seconds" not in answer:
            raise Failed(answer)
        return answer
