"""Arrays on disk, under names made of what they were computed from."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from admm_softmax._files import replacing


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
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (MemoryError, OSError):  # says nothing of the file
        raise
    except Exception:  # a damaged header breaks in many ways, and all have one remedy
        return None
    return array if array.shape == shape and array.dtype == dtype else None


def save(path: Path, array: NDArray[Any]) -> None:
    """Keep the array."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part, part.open("xb") as file:
        np.save(file, array)
