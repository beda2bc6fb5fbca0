"""What kind of source something is: by its type, or by the name of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from glob import glob, has_magic
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax.sources.arrays import ArrayRows
from admm_softmax.sources.base import Source
from admm_softmax.sources.containers import hdf5_rows, zarr_rows
from admm_softmax.sources.files import memmap_rows, npy_rows, safetensors_rows
from admm_softmax.sources.iterators import IteratedRows
from admm_softmax.sources.parquet import ParquetRows
from admm_softmax.sources.shards import Shards

_PARQUET = (".parquet", ".pq")
#: By suffix, how one file is opened, given `key`.
_FILES: dict[str, Callable[[Any, Any], Source]] = {
    ".npy": lambda path, key: npy_rows(path),
    ".safetensors": safetensors_rows,
    ".h5": hdf5_rows,
    ".hdf5": hdf5_rows,
    ".zarr": zarr_rows,
}


def is_path(X: Any) -> bool:
    """Whether this is a path or a pattern."""
    return isinstance(X, str | PathLike)


def is_dataset(X: Any) -> bool:
    """Whether this is a data set of h5py, zarr or pyarrow; asked without loading any of them."""
    kind = type(X)
    package, name = kind.__module__.split(".")[0], kind.__name__
    return (
        (package == "h5py" and name == "Dataset")
        or (package == "zarr" and name == "Array")
        or (package == "pyarrow" and "Dataset" in name)
    )


def is_file_like(X: Any) -> bool:
    """Whether X stands for rows in files: paths, patterns, lists of them, data sets, sources."""
    if is_path(X) or isinstance(X, Source) or is_dataset(X):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(map(is_path, X))


def paths_of(X: Any) -> list[Path]:
    """The files that a path, a pattern or a list of them stands for; patterns in sorted order."""
    if not is_path(X):
        return [path for each in X for path in paths_of(each)]
    text = fspath(X)
    if not has_magic(text) or Path(text).exists():
        if not Path(text).exists():
            raise FileNotFoundError(f"there is no file {text}")
        return [Path(text)]
    found = sorted(glob(text))
    if not found:
        raise FileNotFoundError(f"no file matches {text}")
    return [Path(path) for path in found]


def is_parquet(X: Any) -> bool:
    """Whether X stands for Parquet files."""
    if is_dataset(X):
        return type(X).__module__.startswith("pyarrow")
    if is_path(X) or (isinstance(X, list | tuple) and X and all(map(is_path, X))):
        return all(path.suffix.lower() in _PARQUET for path in paths_of(X))
    return False


def open_source(
    X: Any,
    *,
    key: Any = None,
    label: str | None = None,
    n_rows: int | None = None,
    n_features: int | None = None,
) -> Source:
    """The source that X stands for: see `RowBlocks`."""
    if isinstance(X, Source):
        return X
    if is_parquet(X):
        return ParquetRows(X if is_dataset(X) else paths_of(X), key, label)
    if is_path(X) or (isinstance(X, list | tuple) and X and all(map(is_path, X))):
        shards = [_open_file(path, key) for path in paths_of(X)]
        return shards[0] if len(shards) == 1 else Shards(shards)
    if isinstance(X, np.memmap):
        return memmap_rows(X) or ArrayRows(np.asarray(X), "the memory map")
    if is_dataset(X) or (hasattr(X, "shape") and hasattr(X, "dtype")):
        return ArrayRows(X)
    return IteratedRows(_factory(X), n_rows, n_features)


def _factory(X: Any) -> Callable[[], Iterable[Any]]:
    """What returns the blocks anew at every call."""
    if callable(X):
        function: Callable[[], Iterable[Any]] = X
        return function
    if not isinstance(X, Iterable):
        raise TypeError(f"rows must be files, arrays or blocks, got {type(X).__name__}")
    if iter(X) is X:
        raise TypeError(
            f"blocks must be readable more than once, and {type(X).__name__} is not: give a "
            "function that returns it"
        )
    return lambda: X


def _open_file(path: Path, key: Any) -> Source:
    opener = _FILES.get(path.suffix.lower())
    if opener is None:
        kinds = ", ".join([*_FILES, *_PARQUET])
        raise ValueError(f"{path} must be one of {kinds}, got {path.suffix or 'no suffix'!r}")
    return opener(path, key)
