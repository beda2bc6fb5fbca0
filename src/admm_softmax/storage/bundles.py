"""Numbers, texts and arrays in one file: an .npz with its structure as JSON inside, no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from admm_softmax.storage.atomic import replacing
from admm_softmax.storage.foreign_files import check_sizes

#: The entry of the file that holds the structure.
STRUCTURE = "structure"
#: Stands for an array in the structure, with the name of its entry.
ARRAY = "$array"


class DamagedError(Exception):
    """A file that cannot be read back; the message says why."""


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write mappings, sequences, arrays, numbers, texts and None, whole or not at all.

    An array that occurs several times is stored once.
    """
    arrays: list[NDArray[Any]] = []
    structure = json.dumps(_without_arrays(content, arrays, {})).encode()
    entries: dict[str, Any] = {f"a{i}": array for i, array in enumerate(arrays)}
    entries[STRUCTURE] = np.frombuffer(structure, np.uint8)
    with replacing(path) as part, part.open("xb") as file:
        np.savez(file, **entries)


def read(path: Path) -> dict[str, Any] | None:
    """What `write` has stored, with lists for sequences; None if there is no file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            check_sizes(stored.zip)
            structure = json.loads(stored[STRUCTURE].tobytes())
            content = _with_arrays(structure, stored, {})
    except (FileNotFoundError, NotADirectoryError):
        return None
    except MemoryError:  # not the file's fault
        raise
    except Exception as error:  # a damaged file can raise anything
        raise DamagedError(f"{type(error).__name__}: {error}") from error
    if not isinstance(content, dict):
        raise DamagedError(f"expected names and values, got {type(content).__name__}")
    return content


def _without_arrays(value: Any, arrays: list[NDArray[Any]], known: dict[int, int]) -> Any:
    """The value as JSON can express it; its arrays are appended to a list."""
    if isinstance(value, np.ndarray):
        if id(value) not in known:
            known[id(value)] = len(arrays)
            arrays.append(value)
        return {ARRAY: f"a{known[id(value)]}"}
    if isinstance(value, Mapping):
        return {name: _without_arrays(part, arrays, known) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without_arrays(part, arrays, known) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _with_arrays(value: Any, stored: Mapping[str, Any], known: dict[str, Any]) -> Any:
    """The inverse: what occurred several times is one array again."""
    if isinstance(value, dict):
        if ARRAY in value:
            name = value[ARRAY]
            if name not in known:
                known[name] = stored[name]
            return known[name]
        return {name: _with_arrays(part, stored, known) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_arrays(part, stored, known) for part in value]
    return value
