"""Labels in files: arrays, shards beside those of the rows, or a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax.sources.base import Source
from admm_softmax.sources.iterators import PickedRows
from admm_softmax.sources.opening import is_dataset, is_path, paths_of
from admm_softmax.sources.shards import Shards


def is_label_file(y: Any) -> bool:
    """Whether labels are given by a path, a list of paths to `.npy` files, or a data set."""
    if is_path(y) or is_dataset(y):
        return True
    shards = isinstance(y, list | tuple) and len(y) > 0 and all(map(is_path, y))
    return shards and all(str(path).endswith(".npy") for path in y)


def read_labels(y: Any, rows: Source | None = None) -> Any:
    """Labels as an array. Shards must have as many entries as those of the rows, one by one."""
    if is_dataset(y):
        return np.asarray(y[:])
    if not is_label_file(y):
        return y
    paths = paths_of(y)
    parts = [_load(path) for path in paths]
    shards = _shards_of(rows)
    if len(parts) > 1 and shards is not None:
        if len(parts) != len(shards.given):
            raise ValueError(
                f"labels have {len(parts)} shards for {len(shards.given)} shards of rows"
            )
        for path, part, shard in zip(paths, parts, shards.given, strict=True):
            if len(part) != shard.n_rows:
                raise ValueError(
                    f"{path} has {len(part)} labels for {shard.n_rows} rows of {shard.name}"
                )
    return np.concatenate(parts)


def _shards_of(rows: Any) -> Shards | None:
    while rows is not None and not isinstance(rows, Shards | PickedRows):
        rows = getattr(rows, "source", None)
    return rows if isinstance(rows, Shards) else None


def _load(path: Any) -> Any:
    try:
        found = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"{path} does not hold labels: {error}") from error
    if not isinstance(found, np.ndarray) or found.ndim == 0:
        raise ValueError(f"{path} must hold an array of labels")
    return found
