"""A folder of checkpoints: what fits need to go on after their process has ended."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from admm_softmax.storage import bundles
from admm_softmax.storage.atomic import remove_parts
from admm_softmax.storage.folders import LockedFolder
from admm_softmax.storage.identity import Identity, require_same

#: Of the files' content. A file of another format is refused.
CHECKPOINT_FORMAT = 2

T = TypeVar("T")


class Checkpoints(LockedFolder):
    """A folder that one call uses, with one file per fit (`Slot`); a context manager.

    Nothing is ever half written: a file has its old content or its new one. While the folder is
    in use, it is locked. A folder that cannot be written to is warned about once, and nothing is
    kept.

    folder : where; None keeps nothing
    every : seconds between two writes of the same file at least, except for the last
    identity : says what the call computes, and from what; called if there is a folder. Files
        of another identity are refused.
    """

    def __init__(
        self, folder: str | Path | None, every: float, identity: Callable[[], Identity]
    ) -> None:
        super().__init__(folder)
        self.every = every
        self.identity = {} if folder is None else {"format": CHECKPOINT_FORMAT, **identity()}
        self.has_warned = False

    def _open(self) -> None:
        assert self.folder is not None
        try:
            remove_parts(self.folder)
        except OSError as error:
            self._cannot_lock(error)

    def _cannot_lock(self, error: OSError) -> None:
        self.warn(f"cannot write to the checkpoint folder {self.folder}", error)

    def slot(self, name: str) -> Slot:
        """The place of one fit."""
        return Slot(self, name)

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """What is stored under a name (numbers, arrays, lists), else what `make` returns."""
        slot = self.slot(name)
        found: T | None = slot.load(lambda content: content["value"])
        if found is None:
            found = make()
            slot.save({"value": found})
        return found

    def warn(self, what: str, error: BaseException) -> None:
        """Warn, the first time, that the call goes on without checkpoints."""
        if not self.has_warned:
            self.has_warned = True
            warnings.warn(f"{what} ({error}); going on without", RuntimeWarning, stacklevel=2)


class Slot:
    """The file of one fit."""

    def __init__(self, owner: Checkpoints, name: str) -> None:
        self.owner = owner
        self.path = None if owner.folder is None else owner.folder / f"{name}.npz"
        self._written = time.monotonic()

    def load(self, decode: Callable[[dict[str, Any]], T]) -> T | None:
        """What is stored, decoded; None if there is nothing.

        A damaged file is warned about and then counts as nothing; one of another identity is
        refused with ValueError.
        """
        if self.path is None:
            return None
        try:
            stored = bundles.read(self.path)
            if stored is None:
                return None
            require_same(stored.get("identity"), self.owner.identity, self.path)
            return self._decoded(stored, decode)
        except bundles.DamagedError as error:
            warnings.warn(
                f"checkpoint {self.path} is damaged ({error}); starting afresh",
                RuntimeWarning,
                stacklevel=2,
            )
            return None

    @staticmethod
    def _decoded(stored: dict[str, Any], decode: Callable[[dict[str, Any]], T]) -> T:
        try:
            return decode(stored["content"])
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise bundles.DamagedError(f"{type(error).__name__}: {error}") from error

    def due(self) -> bool:
        """Whether it is time to write again."""
        return self.path is not None and time.monotonic() - self._written >= self.owner.every

    def save(self, content: Mapping[str, Any]) -> None:
        """Write, or warn that this is not possible."""
        if self.path is None:
            return
        try:
            bundles.write(self.path, {"identity": self.owner.identity, "content": content})
        except OSError as error:
            self.owner.warn(f"cannot write the checkpoint {self.path}", error)
        self._written = time.monotonic()
