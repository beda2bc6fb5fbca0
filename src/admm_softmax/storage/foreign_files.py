"""Files that others have made: read, or refused with an error that names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from admm_softmax.storage.arrays import read_header

#: How many bytes one compressed byte can stand for: deflate's limit.
DEFLATED = 1032


@contextmanager
def refusing(name: Any, kind: str) -> Iterator[None]:
    """Turn whatever a damaged file raises into ValueError: "`name` is not `kind`"."""
    try:
        yield
    except (FileNotFoundError, ImportError):  # not the file's fault
        raise
    except MemoryError as error:
        # Arrow asks at once for what a damaged header promises; others have checked before.
        if not type(error).__module__.startswith("pyarrow"):
            raise
        raise ValueError(
            f"{name} is not {kind}, or needs more memory than there is: {error}"
        ) from error
    except Exception as error:  # a damaged file can raise anything
        reason = f"{error}".strip() or type(error).__name__
        raise ValueError(f"{name} is not {kind}: {reason}") from error


@contextmanager
def open_npz(path: Path, kind: str = "an .npz file") -> Iterator[Any]:
    """The arrays of an .npz file by name, each of which can be as large as it says."""
    with refusing(path, kind), path.open("rb") as file:
        stored: Any = np.load(file, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            raise ValueError("it holds one array, without a name")
        with stored:
            check_sizes(stored.zip)
            yield stored


def check_sizes(archive: ZipFile) -> None:
    """Raise where an array says it is larger than what is stored of it."""
    for entry in archive.infolist():
        with archive.open(entry) as member:
            shape, dtype = read_header(member)
        room = entry.compress_size * (1 if entry.compress_type == ZIP_STORED else DEFLATED)
        if prod(shape) * dtype.itemsize > min(entry.file_size, room):
            raise ValueError(f"{entry.filename} is too short for an array of shape {shape}")
