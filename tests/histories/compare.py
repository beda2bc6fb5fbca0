"""How far two traces of a case are apart, column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

#: How often X was read: by a run, and in all.
READS = ("passes", "reads")
#: What agrees or does not.
COUNTS = (*READS, "iterations")


def disagreements(
    stored: Mapping[str, Sequence[float | None]], found: Mapping[str, Sequence[float | None]]
) -> dict[str, float]:
    """The largest difference in each column, relative to the column's scale.

    Infinite where columns differ in length, in what is missing, or in a count.
    """
    return {name: _difference(name, stored, found) for name in sorted({*stored, *found})}


def _difference(
    name: str,
    stored: Mapping[str, Sequence[float | None]],
    found: Mapping[str, Sequence[float | None]],
) -> float:
    if name not in stored or name not in found:
        return float("inf")
    a, b = (np.array(columns[name], dtype=np.float64) for columns in (stored, found))
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    known = ~np.isnan(a)
    a, b = a[known], b[known]
    if name in COUNTS:
        return 0.0 if np.array_equal(np.round(a, 6), np.round(b, 6)) else float("inf")
    if not len(a):
        return 0.0
    return float(np.abs(a - b).max() / _scale(name, a, stored))


def _scale(name: str, column: np.ndarray, stored: Mapping[str, Sequence[float | None]]) -> float:
    if name == "gradient_norm":
        return float(column[0])  # towards the solution it is a difference of rounded numbers
    if name == "projection":
        return float(np.max(np.array(stored["norm"])))  # it may cancel, and W need not be small
    return float(np.abs(column).max())
