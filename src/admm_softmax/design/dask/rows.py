"""Partitions of a Dask collection on their workers, and row arrays beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from distributed import Client, Future

from admm_softmax.design.base import Design
from admm_softmax.design.dask import collections, tasks
from admm_softmax.design.dask.cluster import Cluster, Held
from admm_softmax.design.interop import is_dask
from admm_softmax.design.rows import Rows


class PlacedRows(Design):
    """The half of `DaskDesign` that places rows: one future per partition, for X and for the rest.

    X, client, state_dtype : see `DaskDesign`
    """

    is_remote = True

    def __init__(
        self,
        X: Any,
        *,
        intercept: bool = True,
        client: Client | None = None,
        state_dtype: Any = np.float64,
    ) -> None:
        self.cluster = Cluster.of(client)
        found = collections.futures_of(collections.pieces(X, "X"), self.cluster.client)
        parts = self.cluster.map(
            tasks.make_part,
            found,
            range(len(found)),
            intercept=bool(intercept),
            state_dtype=np.dtype(state_dtype).str,
        )
        facts = self.cluster.insist(
            lambda: self.cluster.gather(self.cluster.map(tasks.facts_of, parts))
        )
        #: Rows of every partition that was given, the empty ones included.
        self.lengths = [0 if fact is None else fact.n_rows for fact in facts]
        #: The numbers of those that are not empty.
        self.kept = [p for p, n in enumerate(self.lengths) if n]
        kinds = [facts[p] for p in self.kept]
        first = _agreeing(self.kept, kinds)
        super().__init__((sum(self.lengths), first.n_columns), first.dtype, intercept)
        self.is_sparse = all(fact.is_sparse for fact in kinds)
        self._entries = sum(fact.entries for fact in kinds)
        self.starts = [0, *accumulate(fact.n_rows for fact in kinds)]
        self.share = -(-len(self.kept) // self.cluster.n_workers())
        self._X = self._rows([parts[p] for p in self.kept], None, "X")

    @property
    def parts(self) -> list[Future]:
        """The partitions' designs."""
        futures: list[Future] = self._X.held.futures
        return futures

    @property
    def entries(self) -> int:
        """How many entries the partitions store together."""
        return int(self._entries)

    def place(self, array: Any, name: str = "rows") -> Rows:
        """Put rows beside those of X: a NumPy array is cut, a collection stays where it is."""
        if not is_dask(array):
            return super().place(array, name)
        fitted = collections.aligned(array, self.lengths, name)
        given = collections.pieces(fitted, name)
        if len(given) != len(self.lengths):
            raise ValueError(f"{name} has {len(given)} partitions for {len(self.lengths)} of X")
        parts: list[Any] = [None] * len(given)
        for p, part in zip(self.kept, self.parts, strict=True):
            parts[p] = part
        found = collections.futures_of(given, self.cluster.client)
        futures = self.cluster.map(tasks.place_part, parts, found, range(len(given)), name=name)
        return self._checked([futures[p] for p in self.kept], name, also=futures)

    def _placed(self, array: Any) -> Rows:
        pieces = np.split(array, self.starts[1:-1])
        futures = self.cluster.map(tasks.place_part, self.parts, pieces, self.kept, name="rows")
        return self._rows(futures, None if array.ndim == 1 else array.shape[1], "rows")

    def _checked(
        self,
        futures: list[Future],
        name: str,
        needs: tuple[Rows, ...] = (),
        remake: Callable[[list[int]], list[Future]] | None = None,
        also: list[Future] | None = None,
    ) -> Rows:
        """A handle, once all partitions have said how many columns they have."""
        handle = self._rows(futures, None, name, remake, needs)
        widths = self._insist(
            lambda: self.cluster.gather(self.cluster.map(tasks.width_of, also or futures)), handle
        )
        own = [widths[p] for p in self.kept] if also else widths
        odd = next((i for i, width in enumerate(own) if width != own[0]), None)
        if odd is not None:
            raise ValueError(
                f"partition {self.kept[odd]} of {name} has {_words(own[odd])}, "
                f"partition {self.kept[0]} has {_words(own[0])}"
            )
        return replace(handle, columns=None if own[0] < 0 else own[0])

    def zeros(self, columns: int) -> Rows:
        """Zeros beside every partition."""
        futures = self.cluster.map(tasks.zeros, self.parts, columns=columns)
        return self._rows(futures, columns, "zeros")

    def gather(self, rows: Rows) -> Any:
        """The partitions' rows, one after the other, in the client's memory."""
        self._check_rows(rows)
        return np.concatenate(
            self._insist(lambda: self.cluster.gather(rows.held.futures), rows), axis=0
        )

    def map_rows(self, function: Callable[..., Any], *rows: Rows) -> Rows:
        """The function applied beside each partition."""
        return self._mapped(function, [[]] * len(self.kept), rows)

    def map_parts(self, function: Callable[..., Any], values: Sequence[Any], *rows: Rows) -> Rows:
        """The function applied beside each partition, to its value and its rows."""
        return self._mapped(function, [[value] for value in values], rows)

    def _mapped(
        self, function: Callable[..., Any], first: list[list[Any]], rows: tuple[Rows, ...]
    ) -> Rows:
        for handle in rows:
            self._check_rows(handle)

        def remake(numbers: Sequence[int]) -> list[Future]:
            beside, names = self._beside(rows, numbers), [self.kept[p] for p in numbers]
            arrays = [first[p] + own for p, own in zip(numbers, beside, strict=True)]
            return self.cluster.map(tasks.apply, arrays, names, function=function)

        self.cluster.restore(rows)
        futures = remake(range(len(self.kept)))
        return self._checked(futures, rows[0].held.name, rows, remake)

    def per_part(self, function: Callable[..., Any], *rows: Rows) -> list[Any]:
        """The function's result for each partition."""
        for handle in rows:
            self._check_rows(handle)

        def attempt() -> list[Any]:
            arrays = self._beside(rows, range(len(self.kept)))
            found = self.cluster.map(tasks.apply, arrays, self.kept, function=function)
            results: list[Any] = self.cluster.gather(found)
            return results

        return list(self._insist(attempt, *rows))

    def total(self, rows: Rows) -> float:
        """The sum of the partitions' sums."""
        return float(sum(self.per_part(np.sum, rows)))

    def count(self, weights: Rows) -> int:
        """How many rows have weight."""
        return int(sum(self.per_part(np.count_nonzero, weights)))

    def subset(self, weights: Rows, chosen: Any) -> Rows:
        """The weights times how often each row is chosen; each worker gets its own positions."""
        if isinstance(chosen, Rows):
            return super().subset(weights, chosen)
        self._check_rows(weights)
        chosen = np.asarray(chosen)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else np.sort(chosen)
        own = [chosen[i:j] - start for i, j, start in self._cuts(chosen)]

        def remake(numbers: Sequence[int]) -> list[Future]:
            arrays = [weights.held.futures[p] for p in numbers]
            return self.cluster.map(tasks.choose, arrays, [own[p] for p in numbers])

        futures = remake(range(len(self.kept)))
        return self._rows(futures, None, "weights", remake, (weights,))

    # ---- for passes ----

    def _rows(
        self,
        futures: list[Future],
        columns: int | None,
        name: str,
        remake: Callable[[list[int]], list[Future]] | None = None,
        needs: tuple[Rows, ...] = (),
    ) -> Rows:
        return Rows(Held(name, futures, remake, needs), self.n_rows, columns)

    def _insist(self, attempt: Callable[[], Any], *rows: Rows) -> Any:
        return self.cluster.insist(attempt, self._X, *rows)

    @staticmethod
    def _beside(rows: Sequence[Rows], numbers: Sequence[int]) -> list[list[Future]]:
        """For each of some partitions, the futures of its row arrays."""
        return [[handle.held.futures[p] for handle in rows] for p in numbers]

    def _cuts(self, indices: Any) -> list[tuple[int, int, int]]:
        """Where each partition's part of rising positions begins and ends, and its first row."""
        cuts = np.searchsorted(indices, self.starts)
        return [(cuts[p], cuts[p + 1], self.starts[p]) for p in range(len(self.kept))]


def _agreeing(numbers: list[int], facts: list[tasks.Facts]) -> tasks.Facts:
    """The first partition's facts, if the others have the same width and precision."""
    if not facts:
        raise ValueError("X must have rows, but every partition is empty")
    first = facts[0]
    for p, fact in zip(numbers, facts, strict=True):
        if fact.n_columns != first.n_columns:
            raise ValueError(
                f"partition {p} of X has {fact.n_columns} columns, partition {numbers[0]} has "
                f"{first.n_columns}"
            )
        if fact.dtype != first.dtype:
            raise TypeError(
                f"partition {p} of X has the type {fact.dtype}, partition {numbers[0]} has "
                f"{first.dtype}"
            )
    return first


def _words(width: int) -> str:
    return "no columns" if width < 0 else f"{width} columns"
