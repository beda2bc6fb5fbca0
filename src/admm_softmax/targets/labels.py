"""Labels of many targets on the same rows, as the passes take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import ordered_map

#: Rows of the state that are written at a time: a block of 256 columns is then 4 MB.
WRITTEN_ROWS = 4096


@dataclass(frozen=True)
class Target:
    """The labels of one target.

    codes : class codes (n,), −1 where the label is missing
    n_classes : K
    weights : sample weights (n,); None for ones. Targets may share an array.
    counts : how often each row is in this target's sample (n,); None for once
    class_weight : factors of the classes (K,); None for ones
    """

    codes: Any
    n_classes: int
    weights: Array | None = None
    counts: Any = None
    class_weight: Array | None = None

    @property
    def columns(self) -> int:
        """Columns of W: one for two classes, else one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def total_weight(self) -> float:
        """S: the sum of the weights of the rows that have a label."""
        return float(self._factors(slice(None)).sum())

    def _factors(self, rows: slice) -> Any:
        """The weight of each row, 0 where the label is missing."""
        codes = self.codes[rows]
        factor = np.ones(self.n_classes) if self.class_weight is None else self.class_weight
        of_rows = np.append(factor, 0.0)[codes]
        if self.weights is not None:
            of_rows *= self.weights[rows]
        if self.counts is not None:
            of_rows *= self.counts[rows]
        return of_rows

    def state(self, rows: slice) -> Any:
        """C of some rows, (columns, b): ± the weights, or the weights at the labels."""
        factors, codes = self._factors(rows), self.codes[rows]
        if self.n_classes == 2:
            return np.where(codes == 1, factors, -factors)[None]
        out = np.zeros((self.n_classes, len(codes)))
        out[codes, np.arange(len(codes))] = factors  # a missing label writes its 0 anywhere
        return out

    def on(self, counts: Any) -> Target:
        """The same target on rows chosen so often."""
        counts = counts if self.counts is None else self.counts * counts
        return Target(self.codes, self.n_classes, self.weights, counts, self.class_weight)


def state_of(targets: Sequence[Target], n_rows: int) -> Any:
    """C of several targets side by side, n × columns, in single precision.

    Weights are rounded to 24 bits there; whole numbers and their halves stay exact.
    """
    out = np.empty((n_rows, sum(target.columns for target in targets)), np.float32)

    def write(rows: slice) -> None:
        out[rows] = np.concatenate([target.state(rows) for target in targets]).T

    starts = range(0, n_rows, WRITTEN_ROWS)
    ordered_map(write, [slice(i, min(i + WRITTEN_ROWS, n_rows)) for i in starts])
    return out
