"""X with its columns in other units: a view, not a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax._arrays import Array
from admm_softmax.design.base import Design, Sample
from admm_softmax.design.blocks import dense
from admm_softmax.design.factor import Factor
from admm_softmax.design.fold import Fold, Request
from admm_softmax.design.rows import Rows


class ScaledDesign(Design):
    """X̃ diag(s) = [X diag(s), 1] for a design X̃ and positive factors s of its columns.

    Nothing is multiplied out: (X diag(s)) W = X (diag(s) W), so W is scaled before a pass and the
    product after it. Sparse X stays sparse. With s = 1 / standard deviations, a penalty on W here
    is one in units of the columns' standard deviations; centring them would only change the
    intercept.

    >>> from admm_softmax.design import DenseDesign
    >>> X = DenseDesign(np.array([[1.0, 10.0], [2.0, 30.0]]))
    >>> standardized(X, X.place(np.array([0.5, 0.5]))).scale
    array([2. , 0.1, 1. ])
    """

    def __init__(self, base: Design, scale: Array) -> None:
        super().__init__(base.shape, base.dtype, base.intercept)
        self.base, self.scale = base, scale
        self.is_sparse, self.can_form_row_gram = base.is_sparse, base.can_form_row_gram
        self.can_take_columns, self.feature_names = base.can_take_columns, base.feature_names
        self.is_in_memory, self.is_remote = base.is_in_memory, base.is_remote
        self.rows_stay = base.rows_stay

    def in_units_of_X(self, W: Array) -> Array:
        """The W that gives the same scores with the columns as they are."""
        return self.scale[:, None] * W

    def in_units_of_view(self, W: Array) -> Array:
        """The inverse of `in_units_of_X`."""
        return np.asarray(W / self.scale[:, None])

    def matching(self, other: Design) -> ScaledDesign:
        """Other rows with the same factors."""
        return ScaledDesign(other, self.scale)

    @property
    def entries(self) -> int:
        """As many as the base stores."""
        return self.base.entries

    @property
    def rounding(self) -> float:
        """That of the base."""
        return self.base.rounding

    def _fold_batch(self, requests: list[Request], compiled: bool) -> list[Fold]:
        column = self.scale[:, None]
        scaled = [r._replace(W=np.ascontiguousarray(r.W * column)) for r in requests]
        folds = self.base._fold_batch(scaled, compiled)
        return [Fold(fold.product * column, fold.rows, fold.sums) for fold in folds]

    def gram(self, weights: Rows, dtype: Any = np.float64) -> Any:
        """diag(s) X̃ᵀ diag(w) X̃ diag(s)."""
        with self._reading() as base:
            G, s = base.gram(weights, dtype), self.scale.astype(dtype)
        G *= s
        G *= s[:, None]
        return G

    def column_squares(self, weights: Rows) -> Array:
        """The base's, times s²."""
        with self._reading() as base:
            return np.asarray(self.scale**2 * base.column_squares(weights))

    def triangle(self, weights: Rows) -> Array:
        """The base's triangle times diag(s) is still one."""
        with self._reading() as base:
            return np.asarray(base.triangle(weights) * self.scale)

    def cholesky(self, H: Array) -> Factor | None:
        """Where the base makes it."""
        return self.base.cholesky(H)

    def row_products(self, inverse_penalty: Callable[[Any], Array]) -> Array:
        """X diag(s) P diag(s) Xᵀ."""
        s = self.scale[: self.shape[1]]

        def between(V: Any) -> Array:
            scaled = sp.diags_array(s) @ V if sp.issparse(V) else s[:, None] * V
            found = inverse_penalty(scaled)
            return np.asarray(s[:, None] * dense(found))

        with self._reading() as base:
            return base.row_products(between)

    def row_gram(self, scale: Array) -> Any:
        """X diag(s² scale) Xᵀ."""
        with self._reading() as base:
            return base.row_gram(scale * self.scale[: self.shape[1]] ** 2)

    def columns(self, features: Any) -> Design:
        """The base's columns, with their factors."""
        kept = np.append(features, self.n_features - 1) if self.intercept else features
        with self._reading() as base:
            return ScaledDesign(base.columns(features), self.scale[kept])

    def map_scores(self, W: Array, function: Callable[[Array], Any]) -> Any:
        """As the base maps them, with W in its units."""
        with self._reading() as base:
            return base.map_scores(self.in_units_of_X(W), function)

    def place(self, array: Any, name: str = "rows") -> Rows:
        """Rows where the base has its own."""
        return self.base.place(array, name)

    def _placed(self, array: Any) -> Rows:
        return self.base._placed(array)

    def zeros(self, columns: int) -> Rows:
        """Row state of the base."""
        return self.base.zeros(columns)

    def gather(self, rows: Rows) -> Any:
        """Rows as the base gathers them."""
        return self.base.gather(rows)

    def beside(self, rows: Rows) -> Any:
        """As the other design."""
        return self.base.beside(rows)

    def map_rows(self, function: Callable[..., Any], *rows: Rows) -> Rows:
        """Rows as the base maps them."""
        return self.base.map_rows(function, *rows)

    def per_part(self, function: Callable[..., Any], *rows: Rows) -> list[Any]:
        """Results of the base's parts."""
        return self.base.per_part(function, *rows)

    def map_parts(self, function: Callable[..., Any], values: Sequence[Any], *rows: Rows) -> Rows:
        """Rows as the base maps its parts."""
        return self.base.map_parts(function, values, *rows)

    def total(self, rows: Rows) -> float:
        """A sum as the base takes it."""
        return self.base.total(rows)

    def count(self, weights: Rows) -> int:
        """As the base counts."""
        return self.base.count(weights)

    def subset(self, weights: Rows, chosen: Any) -> Rows:
        """Weights of the base's rows."""
        return self.base.subset(weights, chosen)

    def counts(self, chosen: Any) -> Rows:
        """As the base counts."""
        return self.base.counts(chosen)

    def positions(self, weights: Rows) -> Any:
        """The positions that the base finds."""
        return self.base.positions(weights)

    def drawn(self, n_rows: int, seed: int, weights: Rows) -> Any:
        """The rows that the base draws."""
        return self.base.drawn(n_rows, seed, weights)

    def take(self, indices: Any, *rows: Rows) -> Sample:
        """Some rows, copied into memory and multiplied out."""
        with self._reading() as base:
            return self._multiplied(base.take(indices, *rows))

    def batches(
        self, count: int, random: np.random.Generator, weights: Rows, *rows: Rows
    ) -> Iterator[Sample]:
        """The base's batches, multiplied out."""
        for sample in self.base.batches(count, random, weights, *rows):
            self._reads.add(sample.design.n_rows / self.n_rows)
            yield self._multiplied(sample)

    @contextmanager
    def _reading(self) -> Iterator[Design]:
        """A view of the base, whose reads meanwhile count as reads of this design."""
        base = self.base.view()
        yield base
        self._reads.add(base.reads)

    def _multiplied(self, sample: Sample) -> Sample:
        if self.rows_stay:
            there: Any = self.matching(sample.design)
            return Sample(there, sample.rows)
        X = sample.design.block(slice(0, sample.design.n_rows))
        s = self.scale[: self.shape[1]].astype(X.dtype)
        X = sp.csr_array(X @ sp.diags_array(s)) if sp.issparse(X) else X * s
        return Sample(sample.design.in_memory(X), sample.rows)

    def row_digests(self, rows: Rows) -> list[bytes]:
        """As the base makes them."""
        return self.base.row_digests(rows)

    def fingerprint(self, digest: Any, *rows: Rows) -> None:
        """The base and the factors."""
        self.base.fingerprint(digest, *rows)
        digest.update(np.ascontiguousarray(self.scale).tobytes())


def standardized(design: Design, weights: Rows) -> ScaledDesign:
    """The design in units of its columns' weighted standard deviations. Two reads.

    Columns without variance stay as they are. Without an intercept nothing is centred: the
    units are then root mean squares.
    """
    total = design.total(weights)
    squares = design.column_squares(weights) / total
    if design.intercept:
        ones = design.map_rows(lambda w: w[:, None], weights)
        means = design.transpose_product(ones)[:, 0] / total
        variances = squares - means**2
        variances[variances <= 1e3 * design.rounding * squares] = 0.0
        variances[-1] = 0.0
    else:
        variances = squares
    scale = 1.0 / np.sqrt(np.where(variances > 0, variances, 1.0))
    return ScaledDesign(design, scale)
