"""Finished cells of a sweep, kept on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from admm_softmax.storage.folders import LockedFolder
from admm_softmax.storage.identity import Identity, require_same

CELLS_FILE = "cells.jsonl"


class Store(LockedFolder):
    """A file of JSON lines: first the sweep's identity, then one line per finished cell.

    A line that is damaged, or was cut off by an interruption, is dropped. Without a directory
    nothing is kept. A context manager: only one process may use it at a time.

    identity : says what the cells are computed from; a file of another identity is refused
    """

    def __init__(self, directory: str | Path | None, identity: Callable[[], Identity]) -> None:
        super().__init__(directory)
        self.file = None if self.folder is None else self.folder / CELLS_FILE
        #: The cells found in the file.
        self.cells: list[dict[str, Any]] = []
        self._identity = {} if directory is None else identity()

    def _open(self) -> None:
        assert self.file is not None
        if self.file.exists():
            self._read(self._identity)
        else:
            self._append({"sweep": self._identity})

    def add(self, cell: Mapping[str, Any]) -> None:
        """Append a cell to the file."""
        if self.file is not None:
            self._append(cell)

    def _read(self, known: Identity) -> None:
        assert self.file is not None
        content = self.file.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.file, whole)
        first, *others = [_parsed(line) for line in content[:whole].splitlines()] or [None]
        if not whole:
            return self._append({"sweep": known})
        if first is None or "sweep" not in first:
            raise ValueError(
                f"the first line of {self.file} is damaged, so that its sweep cannot be told; "
                "remove it, or choose another directory"
            )
        require_same(first["sweep"], known, self.file)
        self.cells = [line for line in others if line is not None]
        return None

    def _append(self, line: Mapping[str, Any]) -> None:
        assert self.file is not None
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line; None if it is damaged."""
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):  # the latter from brackets by the thousand
        return None
    return parsed if isinstance(parsed, dict) else None
