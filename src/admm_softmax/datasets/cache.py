"""The cache: one .npz file a data set, complete or absent."""

from __future__ import annotations

import errno
import logging
import os
import tempfile
from pathlib import Path

import numpy as np

from admm_softmax._files import replacing
from admm_softmax.datasets.spec import Arrays, DatasetError, Spec, check

logger = logging.getLogger("admm_softmax")


def cache_folder() -> Path:
    """`$ADMM_SOFTMAX_CACHE`, or `admm-softmax` in the user's cache."""
    own = os.environ.get("ADMM_SOFTMAX_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "admm-softmax"


def cache_path(spec: Spec) -> Path:
    """Where the data set is kept."""
    return cache_folder() / f"{spec.name}.npz"


def load(spec: Spec) -> tuple[Arrays, str] | None:
    """The verified arrays and where they came from; a damaged file is removed."""
    path = cache_path(spec)
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            arrays = {name: data[name] for name in spec.shapes}
            source = str(data["source"])
        check(spec, arrays)
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive fails in any way it likes
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # which says nothing of the file; a seek to a wrong place does
        logger.warning("%s is damaged (%s) and is made again", path, error)
        path.unlink(missing_ok=True)
        return None
    return arrays, source


def save(spec: Spec, arrays: Arrays, source: str) -> Path:
    """Keep the arrays, and where they came from."""
    path = cache_path(spec)
    with replacing(path) as part, part.open("xb") as file:
        np.savez(file, allow_pickle=False, source=np.array(source), **arrays)
    return path


def make_folder() -> None:
    """Make sure that results can be kept before anything is fetched."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DatasetError(
            f"the cache folder {folder} cannot be written to ({error.strerror}); "
            "set ADMM_SOFTMAX_CACHE to one that can"
        ) from error
