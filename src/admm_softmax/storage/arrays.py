"""Arrays on disk, and digests to name them by what they were computed from."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from admm_softmax.storage.atomic import replacing


def digest(arrays: Iterable[NDArray[Any]]) -> str:
    """SHA-256 of the arrays' types, shapes and bytes, in hexadecimal.

    >>> digest([np.zeros(2)]) == digest([np.zeros(2)])
    True
    >>> digest([np.zeros(2)]) == digest([np.zeros((2, 1))])
    False
    """
    total = sha256()
    for array in arrays:
        total.update(f"{array.dtype.str} {array.shape}".encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def load(path: Path, shape: tuple[int, ...], dtype: Any) -> NDArray[Any] | None:
    """The array in the file; None if there is no file, or a damaged one."""
    try:
        with path.open("rb") as file:
            if read_header(file) != (shape, np.dtype(dtype)):
                return None  # before any memory is asked for
            file.seek(0)
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (MemoryError, OSError):  # not the file's fault
        raise
    except Exception:  # a damaged file can raise anything
        return None
    return array


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array that begins here in a file."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def save(path: Path, array: NDArray[Any]) -> None:
    """Write the array to the file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part, part.open("xb") as file:
        write(file, array)


def write(file: IO[bytes], array: NDArray[Any]) -> None:
    """Write the array to an open file; OSError where the disk is full."""
    np.save(_Unbuffered(file), array)


class _Unbuffered:
    """What NumPy writes to by calls of `write`.

    To a file itself it writes past Python, by a buffer of C's; where the disk is full when that
    is emptied at last, no error is raised, and a file that is too short would take the place of
    the old one.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def write(self, data: bytes) -> int:
        """Write all of the bytes, or raise OSError."""
        return self.file.write(data)
