"""Data sets inside files of HDF5 and zarr, by path. The only module that imports them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from admm_softmax.sources.arrays import ArrayRows


def hdf5_rows(path: Any, key: str | None = None) -> ArrayRows:
    """The rows of one data set of an HDF5 file: the one named, or the only one with rows."""
    try:
        import h5py  # noqa: PLC0415
    except ImportError as error:
        raise ImportError('HDF5 files need h5py: pip install "admm-softmax[files]"') from error
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        if not Path(path).exists():
            raise
        raise ValueError(f"{path} is not an HDF5 file: {error}") from error
    found: dict[str, Any] = {}

    def note(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and (key is not None or item.ndim > 1):
            found[name] = item

    try:
        file.visititems(note)
    except (RuntimeError, KeyError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    return ArrayRows(_only(found, key, path), str(path))


def zarr_rows(path: Any, key: str | None = None) -> ArrayRows:
    """The rows of a zarr array, or of one in a group: the one named, or the only one with rows."""
    try:
        import zarr  # noqa: PLC0415
    except ImportError as error:
        raise ImportError('zarr arrays need zarr: pip install "admm-softmax[files]"') from error
    try:
        opened = zarr.open(str(path), mode="r")
    except FileNotFoundError as error:
        if not Path(path).exists():
            raise
        raise ValueError(f"{path} is not a zarr array: {error}") from error
    except OSError:
        raise
    except Exception as error:  # damaged metadata can raise anything
        raise ValueError(f"{path} is not a zarr array: {error!r}") from error
    if hasattr(opened, "shape"):
        return ArrayRows(opened, str(path))
    arrays = {name: item for name, item in opened.arrays() if key is not None or item.ndim > 1}
    return ArrayRows(_only(arrays, key, path), str(path))


def _only(found: dict[str, Any], key: str | None, path: Any) -> Any:
    if key is None:
        if len(found) != 1:
            raise ValueError(f"{path} holds the data sets {[*found]}: name one by key=")
        (key,) = found
    if key.strip("/") not in found:
        raise ValueError(f"{path} has no data set {key!r}; it holds {[*found]}")
    return found[key.strip("/")]
