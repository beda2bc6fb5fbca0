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

    A line that was cut off by an interruption is dropped. Without a directory nothing is
    kept.
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
        text = self.file.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self.file.write_text(whole, encoding="utf-8")
        lines = [json.loads(line) for line in whole.splitlines()]
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
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def fingerprint(problems: Sequence[Problem], settings: str) -> str:
    """A digest of the data and penalties of some problems, and of settings."""
    digest = hashlib.blake2b(settings.encode(), digest_size=16)
    for problem in problems:
        X: Any = getattr(problem.design, "X", None)
        parts = [problem.labels, problem.weights, problem.penalty.LtL.data]
        parts += [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
        parts += [] if problem.penalty.reference is None else [problem.penalty.reference]
        digest.update(repr((problem.design.intercept, problem.shape)).encode())
        for part in parts:
            array = np.ascontiguousarray(part)
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(array.view(np.uint8).reshape(-1).data if array.size else b"")
    return digest.hexdigest()
