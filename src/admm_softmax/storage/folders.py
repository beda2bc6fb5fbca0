"""Folders that results are kept in."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Self

fcntl: Any = None
if os.name == "posix":
    import fcntl

#: The file in a folder that is locked.
LOCK_FILE = "lock"


def cache_folder() -> Path:
    """`$ADMM_SOFTMAX_CACHE`, or `admm-softmax` in the user's cache."""
    own = os.environ.get("ADMM_SOFTMAX_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "admm-softmax"


def make_writable(folder: Path) -> None:
    """Create the folder if it is missing; OSError if files cannot be written to it."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


class Lock:
    """A folder for one user at a time; ValueError if it has one already.

    The lock is the kernel's, and ends with the process, however that ends. Where there are no
    such locks (Windows, some network disks), nothing is locked.
    """

    def __init__(self, folder: Path) -> None:
        self._file = (folder / LOCK_FILE).open("ab")
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ValueError(
                f"{folder} is in use by another call: wait for its end, or choose another folder"
            ) from None
        except OSError:  # a disk that has no locks
            pass

    def release(self) -> None:
        """Let others use the folder."""
        if fcntl is not None and not self._file.closed:
            # A process forked in between has the file, too: closing it here is not enough.
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._file.close()


class LockedFolder:
    """What one call keeps in a folder, locked while the call runs; a context manager.

    folder : where; None keeps nothing, and locks nothing
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._lock: Lock | None = None

    def _open(self) -> None:
        """Use what is in the folder, which is locked by now."""

    def _cannot_lock(self, error: OSError) -> None:
        """What to do where the folder cannot be made or written to."""
        raise error

    def __enter__(self) -> Self:
        if self.folder is None:
            return self
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(self.folder)
        except OSError as error:
            self._cannot_lock(error)
            return self
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._lock is not None:
            self._lock.release()
