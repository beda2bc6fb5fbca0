"""The cache: one .npz file per data set, complete or absent."""

from __future__ import annotations

import errno
import logging
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from admm_softmax.datasets.spec import Arrays, DatasetError, Spec, check
from admm_softmax.storage.arrays import read_header
from admm_softmax.storage.atomic import replacing
from admm_softmax.storage.folders import cache_folder, make_writable

logger = logging.getLogger("admm_softmax")


def cache_path(spec: Spec) -> Path:
    """Where the data set is kept."""
    return cache_folder() / f"{spec.name}.npz"


def load(spec: Spec) -> tuple[Arrays, str] | None:
    """The verified arrays and where they came from; a damaged file is removed."""
    path = cache_path(spec)
    try:
        with path.open("rb") as file:
            _check_headers(spec, file)
            with np.load(file, allow_pickle=False) as data:
                arrays = {name: data[name] for name in spec.shapes}
                source = str(data["source"])
        check(spec, arrays)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive can raise anything
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # not the file's fault; EINVAL is, a seek to a wrong place
        logger.warning("%s is damaged (%s) and is made again", path, error)
        path.unlink(missing_ok=True)
        return None
    return arrays, source


def _check_headers(spec: Spec, file: IO[bytes]) -> None:
    """Raise unless the arrays have the shapes of the set, before any of them is made."""
    with zipfile.ZipFile(file) as archive:
        for name, shape in spec.shapes.items():
            with archive.open(f"{name}.npy") as member:
                stored, dtype = read_header(member)
            if stored != shape or dtype != spec.dtype:
                raise DatasetError(f"{name} has the shape {stored} and the type {dtype}")
    file.seek(0)


def save(spec: Spec, arrays: Arrays, source: str) -> Path:
    """Write the arrays, and where they came from, to the cache."""
    path = cache_path(spec)
    try:
        with replacing(path) as part, part.open("xb") as file:
            np.savez(file, allow_pickle=False, source=np.array(source), **arrays)
    except OSError as error:
        raise DatasetError(
            f"{spec.name} cannot be kept in {path.parent} ({error.strerror or error}); make room, "
            "or set ADMM_SOFTMAX_CACHE to another folder"
        ) from error
    return path


def make_folder() -> None:
    """Create the cache folder; DatasetError, before anything is fetched, if that fails."""
    folder = cache_folder()
    try:
        make_writable(folder)
    except OSError as error:
        raise DatasetError(
            f"the cache folder {folder} cannot be written to ({error.strerror}); "
            "set ADMM_SOFTMAX_CACHE to one that can"
        ) from error
