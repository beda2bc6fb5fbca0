"""Labels of many targets beside rows that stay on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._cached import cached_property
from admm_softmax.design import Design, Rows
from admm_softmax.targets.labels import Target, state_of

#: Codes of labels that are missing, and of those that are none of the classes.
MISSING, UNSEEN = -1, -2


@dataclass(frozen=True, eq=False)
class PlacedTarget:
    """The labels of one target, as `Target` has them, for a design whose rows stay.

    labels : a handle of the design, or an array of this machine that goes there when it is used
    classes : the labels that take part; rows with others have no weight
    missing : what stands for a missing label besides NaN
    weights, counts : handles, as the arrays of `Target`
    """

    design: Design
    labels: Any
    classes: Any
    missing: Any = None
    weights: Rows | None = None
    counts: Rows | None = None
    class_weight: Array | None = None

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)

    @property
    def columns(self) -> int:
        """Columns of W: one for two classes, else one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def codes(self) -> Rows:
        """Class codes beside the rows: `MISSING` and `UNSEEN` where there is none."""
        labels = self.design.place(self.labels)
        return self.design.map_rows(partial(codes_of, self.classes, self.missing), labels)

    @cached_property
    def total_weight(self) -> float:
        """S: the sum of the weights of the rows that have a label."""
        return self.design.total(self.factors(self.codes))

    @property
    def masses(self) -> Array:
        """The weight of every class, without class weights."""
        K = self.n_classes

        def summed(codes: Any, factors: Any) -> Any:
            return np.bincount(np.maximum(codes + 1, 0), factors, K + 1)

        codes = self.codes
        plain = replace(self, class_weight=None).factors(codes)
        return np.asarray(sum(self.design.per_part(summed, codes, plain)), np.float64)[1:]

    def factors(self, codes: Rows) -> Rows:
        """The weight of each row, 0 where the label is missing."""
        ones = np.ones(self.n_classes) if self.class_weight is None else self.class_weight
        of_codes = np.append(0.0, ones)
        given = [rows for rows in (self.weights, self.counts) if rows is not None]

        def weigh(codes: Any, *factors: Any) -> Any:
            found = np.take_along_axis(of_codes, np.maximum(codes + 1, 0), 0)
            for each in factors:
                found = found * each
            return found

        return self.design.map_rows(weigh, codes, *given)

    def on(self, counts: Rows) -> PlacedTarget:
        """The same target on rows chosen so often."""
        if self.counts is not None:
            counts = self.design.map_rows(np.multiply, self.counts, counts)
        return replace(self, counts=counts)


AnyTarget: TypeAlias = Target | PlacedTarget


def codes_of(classes: Any, missing: Any, y: Any) -> Any:
    """Positions of labels among the classes, `MISSING` or `UNSEEN`."""
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    found = np.where(np.take_along_axis(classes, places, 0) == y, places, UNSEEN)
    gone = y != y  # noqa: PLR0124  (NaN)
    return np.where(gone if missing is None else gone | (y == missing), MISSING, found)


def state_on(design: Design, targets: Sequence[AnyTarget]) -> Rows:
    """C of several targets side by side, n × columns, in single precision, beside the rows."""
    there = [target for target in targets if isinstance(target, PlacedTarget)]
    if not there:
        here = [target for target in targets if isinstance(target, Target)]
        return design.place(state_of(here, design.n_rows))
    pairs: list[Rows] = []
    for target in there:
        codes = target.codes
        pairs += [codes, target.factors(codes)]
    widths = [target.n_classes for target in there]

    def write(*arrays: Any) -> Any:
        columns = []
        for K, codes, factors in zip(widths, arrays[::2], arrays[1::2], strict=True):
            if K == 2:
                columns.append(np.where(codes == 1, factors, -factors)[:, None])
            else:
                columns.append((codes[:, None] == np.arange(K)) * factors[:, None])
        return np.concatenate(columns, axis=1).astype(np.float32)

    return design.map_rows(write, *pairs)
