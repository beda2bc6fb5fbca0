"""Handles to arrays with one row per example, which the design stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

_keys = count()


@dataclass(frozen=True, eq=False)
class Rows:
    """One number or one vector for every row of a design: labels, weights, Z, P.

    Made by a design (`place`, `zeros`, `fold`, …) and understood by that design alone: it
    holds an array in memory, or one handle per part of a partition, or in other designs a
    reference to something remote. Solvers pass handles on and never look inside.

    held : what the design stores
    n_rows : the number of rows
    columns : numbers per row; None for a plain vector
    key : identity. Requests whose labels have the same key can share a read.
    """

    held: Any = field(repr=False)
    n_rows: int
    columns: int | None = None
    key: int = field(default_factory=_keys.__next__)

    def __reduce__(self) -> Any:
        # A copy in another process gets a key of that process.
        return Rows, (self.held, self.n_rows, self.columns)


class Parts(tuple[Rows, ...]):
    """What a partition's handle holds: one handle per part, in their order.

    A type of its own, since other designs may hold tuples of something else.
    """


def row_counts(chosen: Any, n_rows: int) -> Any:
    """How often each of n rows is chosen, by index or mask.

    >>> row_counts([0, 2, 2], 4)
    array([1, 0, 2, 0])
    """
    chosen = np.asarray(chosen)
    chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
    return np.bincount(chosen if chosen.size else np.zeros(0, np.intp), minlength=n_rows)
