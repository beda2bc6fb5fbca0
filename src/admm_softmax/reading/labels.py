"""Labels and weights in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax.reading.request import TABLES, Request, suffix_of
from admm_softmax.reading.tables import require, whole
from admm_softmax.sources.labels import read_labels


def labels_in(path: str, target: tuple[str, ...] = ()) -> Any:
    """Labels of a file: .npy, a text with one per line, or a table with one column of them.

    A matrix is soft labels.
    """
    kind = suffix_of(Path(path))
    if kind == ".npy":
        return read_labels(path)
    if kind in TABLES:
        frame = whole(Request(path))
        if target:
            require(list(frame.columns), target, path, "named by --target")
        elif len(frame.columns) != 1:
            raise ValueError(
                f"{path} has the columns {[*frame.columns][:10]}: name the labels by --target"
            )
        return column_labels(frame, target or tuple(frame.columns), path)
    if kind != ".txt":
        raise ValueError(f"labels must be in a .npy, .txt or table file, got {path}")
    lines = Path(path).read_text(encoding="utf-8").split()
    try:
        return np.array([int(line) for line in lines])
    except ValueError:
        return np.array(lines)


def column_labels(frame: Any, target: tuple[str, ...], where: str, first: int = 0) -> Any:
    """The labels of a frame: one column of any kind, or several columns of soft labels."""
    if len(target) > 1:
        return frame[list(target)].to_numpy(dtype=np.float64)
    column = frame[target[0]]
    missing = np.flatnonzero(column.isna().to_numpy())
    if len(missing):
        raise ValueError(
            f"column {target[0]!r} of {where} has no label in row {first + int(missing[0])} "
            f"({len(missing)} in all)"
        )
    values = column.to_numpy()
    is_number = getattr(values.dtype, "kind", "O") in "iufb"
    return values if is_number else np.array([str(value) for value in values])


def weights_in(path: str) -> Any:
    """Sample weights of a .npy file."""
    return read_labels(path)
