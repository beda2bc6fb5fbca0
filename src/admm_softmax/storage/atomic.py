"""Files that are written whole or not at all."""

from __future__ import annotations

import glob
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

#: Seconds after which a part that nobody writes to any more was left by a process that is gone.
LEFT_AFTER = 3600.0


def remove_leftovers(path: Path) -> None:
    """Remove parts of `path` that a killed process has left."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*"):
        try:
            if re.fullmatch("[0-9a-f]{32}", part.suffix[1:]) and _age(part) > LEFT_AFTER:
                part.unlink()
        except OSError:
            pass  # gone already, or not ours to remove


def _age(path: Path) -> float:
    return time.time() - path.stat().st_mtime


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which then replaces `path`; removed after an error.

    What was written reaches the disk before the file takes its name, so that even after a power
    cut the name stands for the old content or for the new one.
    """
    remove_leftovers(path)
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def remove_parts(folder: Path) -> None:
    """Remove the temporary files that killed processes have left in a folder.

    Only for a folder that no other process writes to at the same time.
    """
    for part in folder.glob(".*." + "[0-9a-f]" * 32):
        part.unlink(missing_ok=True)
