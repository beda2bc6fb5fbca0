"""Requests for passes over X, and their results."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

from admm_softmax._arrays import Array
from admm_softmax.design.rows import Parts, Rows
from admm_softmax.kernels.row_kernel import RowKernel, Sums


class Request(NamedTuple):
    """A request for one pass over X: the scores X̃W go through a kernel with its row inputs."""

    W: Array
    kernel: RowKernel
    rows: tuple[Rows, ...] = ()
    #: Whether compiled code is loaded anyway, see `Design.with_loaded_code`.
    is_loaded: bool = False

    @property
    def kind(self) -> Hashable:
        """Requests of one kind can share a read: same kernel and labels, equal shapes."""
        named = dict(zip(self.kernel.inputs, self.rows, strict=True))
        labels = named["labels"].key if "labels" in named else None
        shapes = self.W.shape, *(rows.columns for rows in self.rows)
        return self.kernel.kind, labels, shapes, self.is_loaded

    @property
    def columns(self) -> int:
        """K: the columns of W, or of the state where W has none."""
        if self.W.shape[1]:
            return int(self.W.shape[1])
        named = dict(zip(self.kernel.inputs, self.rows, strict=True))
        return named["state"].columns or 0 if "state" in named else 0


@dataclass(frozen=True)
class Fold:
    """The result of one pass over X: Σ_b X_bᵀ R_b, the new rows, and the summed scalars.

    Folds over different rows add up: products and sums are added, new rows are put one
    after the other. Where the kernel has no R, `product` has no columns.
    """

    product: Array
    rows: Rows | None
    sums: Sums

    @property
    def new_rows(self) -> Rows:
        """The new rows, for kernels that return some."""
        assert self.rows is not None, "this kernel returns no new rows"
        return self.rows

    def __add__(self, other: Fold) -> Fold:
        rows = None
        if self.rows is not None and other.rows is not None:
            n_rows = self.rows.n_rows + other.rows.n_rows
            joined = Parts((*parts_of(self.rows), *parts_of(other.rows)))
            rows = Rows(joined, n_rows, self.rows.columns)
        return Fold(self.product + other.product, rows, self.sums + other.sums)


def parts_of(rows: Rows) -> tuple[Rows, ...]:
    """The handles of a partition's parts; other rows are one part themselves."""
    return rows.held if isinstance(rows.held, Parts) else (rows,)


class Reads:
    """How often X was read, for one user of a design and, through `parent`, for all."""

    def __init__(self, count: float = 0.0, parent: Reads | None = None) -> None:
        self.count, self.parent = count, parent
        self._lock = Lock()

    def add(self, amount: float, *, alone: bool = False) -> None:
        """Count reads, or fractions of one, for this user alone or for all."""
        with self._lock:
            self.count += amount
        if self.parent is not None and not alone:
            self.parent.add(amount)

    def __reduce__(self) -> Any:
        return Reads, (self.count,)
