"""`DaskDesign`: rows in partitions on the workers of a Dask cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, islice
from typing import Any, TypeAlias

import numpy as np
from distributed import Future

from admm_softmax._arrays import Array
from admm_softmax.design.base import Sample
from admm_softmax.design.blocks import stacked
from admm_softmax.design.dask import tasks
from admm_softmax.design.dask.rows import PlacedRows
from admm_softmax.design.dense import DenseDesign
from admm_softmax.design.fold import Fold, Request
from admm_softmax.design.rows import Rows
from admm_softmax.design.sparse import SparseDesign
from admm_softmax.kernels.row_kernel import Sums

#: Mini-batches that are on their way while one is used.
BATCHES_AHEAD = 4

#: For each partition that takes part in a batch, where its share of a random order begins and ends.
Plan: TypeAlias = list[tuple[int, tuple[int, int]]]


class DaskDesign(PlacedRows):
    """X̃ = [X̃₁; X̃₂; …] with one partition X̃_p per partition of a Dask collection.

    A partition stays on its worker, as a design in memory; so do row arrays, one future per
    partition beside its rows. A pass sends W to the workers once, and adds the partitions'
    results by a tree whose order is fixed ::

        fold = Σ_p X̃_pᵀ R_p,   gram = Σ_p X̃_pᵀ diag(w_p) X̃_p

    d × K, or d × d, numbers come back to the client, and never rows. Partitions without rows
    are left out. Workers may die: Dask makes their partitions again from the collection's
    graph, and row state is made again from W (docs/decisions/0019-dask.md).

    X : a Dask array (its chunks may be sparse) or frame, or a list of delayed objects or
        futures, one per partition
    client : the cluster to use; None takes the current client
    state_dtype : what row state is kept in, float64 or float32
    """

    # ---- passes over X ----

    def _fold_batch(self, requests: list[Request], compiled: bool) -> list[Fold]:
        handles = list({rows.key: rows for request in requests for rows in request.rows}.values())
        places = {rows.key: i for i, rows in enumerate(handles)}
        order = tasks.Order(
            tuple(request.W for request in requests),
            tuple(request.kernel for request in requests),
            tuple(tuple(places[rows.key] for rows in request.rows) for request in requests),
            compiled,
            self.share,
        )
        summands, new = self._insist(lambda: self._pass(order, handles), *handles)
        return [
            Fold(
                _writable(summands[i][0]),
                self._state(request, new[i]) if i in new else None,
                Sums(request.kernel.sums, summands[i][1]),
            )
            for i, request in enumerate(requests)
        ]

    def _pass(self, order: tasks.Order, handles: list[Rows]) -> tuple[Any, dict[int, Any]]:
        """Products and sums over all partitions, and the futures of each request's new rows."""
        everywhere = range(len(self.kept))
        made = [i for i, kernel in enumerate(order.kernels) if kernel.new_rows]
        if made:
            outcomes = self._outcomes(tasks.fold, order, handles, everywhere)
            summands = self.cluster.map(tasks.item, outcomes, number=0)
        else:
            summands = self._outcomes(tasks.fold_sums, order, handles, everywhere)
        new = {i: self.cluster.map(tasks.item, outcomes, number=1 + i) for i in made}
        return self.cluster.gather(self.cluster.tree(summands, tasks.add_folds)), new

    def _outcomes(
        self,
        function: Callable[..., Any],
        order: tasks.Order,
        handles: list[Rows],
        numbers: Sequence[int],
    ) -> list[Future]:
        """One pass over some partitions."""
        return self.cluster.map_beside(
            [self.parts[p] for p in numbers],
            function,
            self._beside(handles, numbers),
            order=self.cluster.scatter(order),
        )

    def _state(self, request: Request, futures: list[Future]) -> Rows:
        """New rows of a pass, with what makes lost ones again: the same pass, or a restart."""
        W, kernel, remaker = request.W, request.kernel, request.kernel.remaker
        columns, name = kernel.new_rows * request.columns, f"the rows of {kernel.name}"
        if remaker is None:
            return self._rows(futures, columns, name)
        named = dict(zip(kernel.inputs, request.rows, strict=True))
        needs = [named[name] for name in remaker.inputs]

        # Not the request: with the state it took, each state would keep all before it alive.
        def remake(numbers: list[int]) -> list[Future]:
            inputs = (tuple(range(len(needs))),)
            order = tasks.Order((W,), (remaker,), inputs, False, self.share)
            outcomes = self._outcomes(tasks.fold, order, needs, numbers)
            return self.cluster.map(tasks.item, outcomes, number=1)

        return self._rows(futures, columns, name, remake, tuple(needs))

    def gram(self, weights: Rows, dtype: Any = np.float64) -> Any:
        """Σ_p X̃_pᵀ diag(w_p) X̃_p, by a tree."""
        return self._summed(tasks.gram, weights, dtype=np.dtype(dtype).str)

    def column_squares(self, weights: Rows) -> Array:
        """The sum of the partitions' column squares."""
        return np.asarray(self._summed(tasks.column_squares, weights))

    def triangle(self, weights: Rows) -> Array:
        """The triangle of the partitions' triangles, joined by a tree."""
        return np.asarray(self._summed(tasks.triangle, weights, add=tasks.join_triangles))

    def _summed(
        self,
        function: Callable[..., Any],
        weights: Rows,
        add: Callable[[list[Any]], Any] = tasks.add_arrays,
        **settings: Any,
    ) -> Any:
        self._check_rows(weights)
        self._reads.add(1)

        def attempt() -> Any:
            own = self.cluster.map_beside(
                self.parts, function, weights.held.futures, share=self.share, **settings
            )
            return self.cluster.gather(self.cluster.tree(own, add))

        return _writable(self._insist(attempt, weights))

    # ---- samples ----

    def take(self, indices: Any, *rows: Rows) -> Sample:
        """Some rows of each partition, put together in the client's memory."""
        self._reads.add(len(indices) / self.n_rows)
        own = {p: indices[i:j] - start for p, (i, j, start) in enumerate(self._cuts(indices))}
        chosen = [p for p, positions in own.items() if len(positions)]

        def attempt() -> Any:
            parts, arrays = [self.parts[p] for p in chosen], self._beside(rows, chosen)
            return self.cluster.gather(
                self.cluster.map(tasks.take, parts, arrays, [own[p] for p in chosen])
            )

        return self._sample(self._insist(attempt, *rows))

    def drawn(self, n_rows: int, seed: int, weights: Rows) -> Any:
        """As in memory, and the same rows for any partition: only positions are sent."""
        counts = self.per_part(np.count_nonzero, weights)
        ends = list(accumulate(counts))
        ranks = np.random.default_rng(seed).choice(ends[-1], min(n_rows, ends[-1]), replace=False)
        ranks.sort()
        cuts = np.searchsorted(ranks, [0, *ends])
        own = [ranks[cuts[p] : cuts[p + 1]] - (ends[p] - counts[p]) for p in range(len(counts))]

        def attempt() -> Any:
            return self.cluster.gather(
                self.cluster.map(tasks.positions_of, weights.held.futures, own)
            )

        found = self._insist(attempt, weights)
        return np.concatenate([f + s for f, s in zip(found, self.starts[:-1], strict=True)])

    def batches(
        self, count: int, random: np.random.Generator, weights: Rows, *rows: Rows
    ) -> Iterator[Sample]:
        """All rows that have weight, in random order, cut evenly into `count` batches.

        Each worker shuffles its own rows. How many rows of which partition make up a batch is
        drawn as if all had been shuffled together: from a multivariate hypergeometric law.
        """
        counts = np.array(self.per_part(np.count_nonzero, weights))
        seeds = random.integers(2**63, size=len(counts))
        orders = self._insist(
            lambda: self.cluster.map(tasks.shuffled, weights.held.futures, seeds), weights
        )
        plans = _dealt(counts, count, random)
        send = partial(self._batch, orders, rows)
        waiting = deque((plan, send(plan)) for plan in islice(plans, BATCHES_AHEAD))
        while waiting:
            plan, futures = waiting.popleft()
            yield self._sample(self._received(futures, send, plan, weights, rows))
            waiting.extend((plan, send(plan)) for plan in islice(plans, 1))

    def _batch(self, orders: list[Future], rows: tuple[Rows, ...], plan: Plan) -> list[Future]:
        chosen = [p for p, _ in plan]
        return self.cluster.map(
            tasks.take_shuffled,
            [self.parts[p] for p in chosen],
            self._beside(rows, chosen),
            [orders[p] for p in chosen],
            [cut for _, cut in plan],
        )

    def _received(
        self,
        futures: list[Future],
        send: Callable[[Plan], list[Future]],
        plan: Plan,
        weights: Rows,
        rows: tuple[Rows, ...],
    ) -> Any:
        sent = [futures]
        self._reads.add(sum(j - i for _, (i, j) in plan) / self.n_rows)

        def attempt() -> Any:
            return self.cluster.gather(sent.pop() if sent else send(plan))

        return self._insist(attempt, weights, *rows)

    def fingerprint(self, digest: Any, *rows: Rows) -> None:
        """Feed a digest of every partition to the digest; it depends on the partition."""
        digest.update(repr((self.n_rows, self.n_features, self.intercept)).encode())

        def attempt() -> Any:
            arrays = self._beside(rows, range(len(self.kept)))
            return self.cluster.gather(self.cluster.map(tasks.digest, self.parts, arrays))

        for own in self._insist(attempt, *rows):
            digest.update(own)

    def _sample(self, found: list[tuple[Any, list[Any]]]) -> Sample:
        X = stacked([block for block, _ in found])
        kind = SparseDesign if self.is_sparse else DenseDesign
        design = kind(X, intercept=self.intercept)
        arrays = [np.concatenate(array) for array in zip(*[own for _, own in found], strict=True)]
        return Sample(design, tuple(design.place(array) for array in arrays))


def _dealt(counts: Any, batches: int, random: np.random.Generator) -> Iterator[Plan]:
    """Which rows of each partition's random order make up each batch."""
    used, total = np.zeros_like(counts), int(counts.sum())
    for b in range(batches):
        size = (b + 1) * total // batches - b * total // batches
        own = random.multivariate_hypergeometric(counts - used, size, method="marginals")
        ends = used + own
        yield [(int(p), (int(used[p]), int(ends[p]))) for p in np.flatnonzero(own)]
        used = ends


def _writable(array: Any) -> Any:
    """Results that came over the network may be read-only."""
    return array if array.flags.writeable else array.copy()
