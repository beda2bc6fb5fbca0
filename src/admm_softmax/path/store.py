"""Finished cells of a sweep, kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax.problem import Problem

FILE = "cells.jsonl"


class Store:
    """A file of lines: first what was swept, then a cell each, in the order they were done.

    A line that is damaged, or was cut off by an interruption, is dropped. Without a directory
    nothing is kept. One process at a time.
    """

    def __init__(self, directory: str | Path | None, what: Callable[[], str]) -> None:
        self.file = None if directory is None else Path(directory) / FILE
        #: Those found there.
        self.cells: list[dict[str, Any]] = []
        if self.file is None:
            return
        known = what()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self.file.exists():
            self._read(known)
        else:
            self._append({"sweep": known})

    def add(self, cell: Mapping[str, Any]) -> None:
        """Keep a cell."""
        if self.file is not None:
            self._append(cell)

    def _read(self, known: str) -> None:
        assert self.file is not None
        content = self.file.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.file, whole)
        lines = [line for line in map(_parsed, content[:whole].splitlines()) if line is not None]
        if not lines:
            return self._append({"sweep": known})
        if lines[0].get("sweep") != known:
            raise ValueError(
                f"{self.file} holds a sweep of other data or settings; choose another directory"
            )
        self.cells = lines[1:]
        return None

    def _append(self, line: Mapping[str, Any]) -> None:
        assert self.file is not None
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _parsed(line: bytes) -> dict[str, Any] | None:
    """A line; None if it is damaged."""
    try:
        parsed = json.loads(line)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def fingerprint(problems: Sequence[Problem], settings: str) -> str:
    """A digest of the data and penalties of some problems, and of settings."""
    digest = hashlib.blake2b(settings.encode(), digest_size=16)
    for problem in problems:
        X: Any = getattr(problem.design, "X", None)
        LtL = problem.penalty.LtL
        parts = [problem.labels, problem.weights, LtL.data, LtL.indices, LtL.indptr]
        parts += [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
        parts += [] if problem.penalty.reference is None else [problem.penalty.reference]
        digest.update(repr((problem.design.intercept, problem.shape)).encode())
        for part in parts:
            array = np.ascontiguousarray(part)
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(array.view(np.uint8).reshape(-1).data if array.size else b"")
    return digest.hexdigest()
