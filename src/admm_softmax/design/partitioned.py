"""Rows in several parts, each a design itself: files, workers of a cluster, blocks in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import accumulate, pairwise
from operator import add
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads
from admm_softmax.design.base import Design, Sample
from admm_softmax.design.blocks import next_triangle, stacked
from admm_softmax.design.fold import Fold, Request
from admm_softmax.design.rows import Parts, Rows


class PartitionedDesign(Design):
    """X̃ = [X̃₁; X̃₂; …]: the rows of several designs, one part after the other.

    Every pass is a sum over the parts, in their order ::

        fold = Σ_p fold_p,   gram = Σ_p gram_p,   triangle = QR of the stacked triangles

    and a handle holds one handle per part. Parts have the same columns and intercept.

    >>> from admm_softmax.design import DenseDesign
    >>> halves = [DenseDesign(np.ones((3, 2))), DenseDesign(np.zeros((2, 2)))]
    >>> PartitionedDesign(halves).n_rows
    5
    """

    def __init__(self, parts: Sequence[Design]) -> None:
        self.parts = tuple(parts)
        if not self.parts:
            raise ValueError("a partitioned design needs at least one part, got none")
        first = self.parts[0]
        for i, part in enumerate(self.parts):
            if part.rows_stay:
                raise TypeError(
                    f"part {i} is a {type(part).__name__}, whose rows stay on their device: parts "
                    "must be in this machine's memory, in files or on Dask"
                )
            if (part.n_features, part.intercept) != (first.n_features, first.intercept):
                raise ValueError(
                    f"part {i} has {part.n_features} columns with intercept={part.intercept}, "
                    f"part 0 has {first.n_features} with intercept={first.intercept}"
                )
        n_rows = sum(part.n_rows for part in self.parts)
        dtype = np.result_type(*[part.dtype for part in self.parts])
        super().__init__((n_rows, first.n_features - first.intercept), dtype, first.intercept)
        self.starts = [0, *accumulate(part.n_rows for part in self.parts)]
        self.is_sparse = all(part.is_sparse for part in self.parts)
        self.can_take_columns = all(part.can_take_columns for part in self.parts)
        self.is_in_memory = all(part.is_in_memory for part in self.parts)
        self.is_remote = any(part.is_remote for part in self.parts)
        self.feature_names = first.feature_names

    @property
    def entries(self) -> int:
        """How many entries the parts store together."""
        return sum(part.entries for part in self.parts)

    @property
    def rounding(self) -> float:
        """The rounding of the least precise part."""
        return max(part.rounding for part in self.parts)

    def _fold_batch(self, requests: list[Request], compiled: bool) -> list[Fold]:
        folds = [
            part._fold_batch(
                [r._replace(rows=tuple(rows.held[p] for rows in r.rows)) for r in requests],
                compiled,
            )
            for p, part in enumerate(self.parts)
        ]
        return [reduce(add, map(_as_part, of_parts)) for of_parts in zip(*folds, strict=True)]

    def gram(self, weights: Rows, dtype: Any = np.float64) -> Any:
        """Σ_p X̃_pᵀ diag(w_p) X̃_p."""
        with self._reading() as parts:
            grams = (part.gram(w, dtype) for part, w in self._pairs(weights, parts))
            return reduce(add, grams)

    def column_squares(self, weights: Rows) -> Array:
        """The sum of the parts' column squares."""
        with self._reading() as parts:
            squares = (part.column_squares(w) for part, w in self._pairs(weights, parts))
            return np.asarray(reduce(add, squares))

    def triangle(self, weights: Rows) -> Array:
        """The triangle of the parts' triangles, one below the other."""
        R = np.zeros((0, self.n_features))
        with self._reading() as parts, blas_threads(operations=2.0 * self.n_features**3):
            for part, w in self._pairs(weights, parts):
                R = next_triangle(R, part.triangle(w))
        return R

    def _placed(self, array: Any) -> Rows:
        cut = np.split(array, self.starts[1:-1])
        return self._joined([p.place(piece) for p, piece in zip(self.parts, cut, strict=True)])

    def zeros(self, columns: int) -> Rows:
        """Zeros in every part."""
        return self._joined([part.zeros(columns) for part in self.parts])

    def gather(self, rows: Rows) -> Any:
        """The parts' rows, one after the other."""
        return np.concatenate([part.gather(r) for part, r in self._pairs(rows)])

    def map_rows(self, function: Callable[..., Any], *rows: Rows) -> Rows:
        """The function applied to the rows of each part."""
        return self._joined(
            [
                part.map_rows(function, *[r.held[p] for r in rows])
                for p, part in enumerate(self.parts)
            ]
        )

    def per_part(self, function: Callable[..., Any], *rows: Rows) -> list[Any]:
        """Results of each part's own parts, one after the other."""
        return [
            found
            for p, part in enumerate(self.parts)
            for found in part.per_part(function, *[r.held[p] for r in rows])
        ]

    def map_parts(self, function: Callable[..., Any], values: Sequence[Any], *rows: Rows) -> Rows:
        """Rows as each part maps its own parts."""
        left, mapped = list(values), []
        for p, part in enumerate(self.parts):
            own = [r.held[p] for r in rows]
            count = len(part.per_part(_nothing, own[0]))
            mapped.append(part.map_parts(function, left[:count], *own))
            del left[:count]
        return self._joined(mapped)

    def positions(self, weights: Rows) -> Any:
        """Those of each part, counted from the first row of all."""
        own = (part.positions(w) for part, w in self._pairs(weights))
        return np.concatenate([p + i for p, i in zip(own, self.starts[:-1], strict=True)])

    def total(self, rows: Rows) -> float:
        """The sum of the parts' totals."""
        return sum(part.total(r) for part, r in self._pairs(rows))

    def count(self, weights: Rows) -> int:
        """How many rows of all parts have weight."""
        return sum(part.count(w) for part, w in self._pairs(weights))

    def take(self, indices: Any, *rows: Rows) -> Sample:
        """Some rows of each part, put together in memory."""
        cuts = np.searchsorted(indices, self.starts)
        with self._reading() as parts:
            samples = [
                part.take(indices[i:j] - self.starts[p], *[r.held[p] for r in rows])
                for p, (part, (i, j)) in enumerate(zip(parts, pairwise(cuts), strict=True))
                if j > i
            ]
        blocks = [sample.design.block(slice(0, sample.design.n_rows)) for sample in samples]
        design = samples[0].design.in_memory(stacked(blocks))
        arrays = [
            np.concatenate([sample.design.gather(sample.rows[i]) for sample in samples])
            for i in range(len(rows))
        ]
        return Sample(design, tuple(design.place(array) for array in arrays))

    def columns(self, features: Any) -> PartitionedDesign:
        """Some columns of every part."""
        with self._reading() as parts:
            return PartitionedDesign([part.columns(features) for part in parts])

    def fingerprint(self, digest: Any, *rows: Rows) -> None:
        """Feed the parts to the digest, in their order."""
        for p, part in enumerate(self.parts):
            part.fingerprint(digest, *[r.held[p] for r in rows])

    @contextmanager
    def _reading(self) -> Iterator[list[Design]]:
        """Views of the parts; what they read meanwhile counts as the share that they are of X."""
        parts = [part.view() for part in self.parts]
        yield parts
        self._reads.add(sum(part.reads * part.n_rows for part in parts) / self.n_rows)

    def _pairs(
        self, rows: Rows, parts: Sequence[Design] | None = None
    ) -> list[tuple[Design, Rows]]:
        self._check_rows(rows)
        return list(zip(parts or self.parts, rows.held, strict=True))

    def _joined(self, handles: list[Rows]) -> Rows:
        return Rows(Parts(handles), self.n_rows, handles[0].columns)


def _nothing(*rows: Any) -> None:
    """Return nothing: `per_part` of it has one entry per part, which counts them."""


def _as_part(fold: Fold) -> Fold:
    """A part's fold, its new rows as the handle of a partition with that part alone."""
    if fold.rows is None:
        return fold
    rows = Rows(Parts((fold.rows,)), fold.rows.n_rows, fold.rows.columns)
    return Fold(fold.product, rows, fold.sums)
