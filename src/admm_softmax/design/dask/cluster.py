"""Tasks on futures: maps over partitions, sums by trees, and what to do when a worker dies."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any, TypeVar

import dask
from distributed import Client, Future, get_client
from distributed.comm import CommClosedError

from admm_softmax.design.rows import Rows

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: How many partial sums one task of a tree adds up.
FAN_IN = 8
#: How often in a row an operation is tried that lost workers have prevented, and the seconds
#: to wait before the second try, doubled each time: a dead worker is noticed after a moment.
MOST_TRIES, FIRST_PAUSE, LONGEST_PAUSE = 12, 0.05, 2.0


@dataclass(eq=False)
class Held:
    """What a handle of a `DaskDesign` holds: one future per partition.

    name : what it is called in errors
    futures : replaced where one was lost and made again
    remake : makes some partitions' rows again, where Dask has no recipe for them
    needs : handles that `remake` reads
    """

    name: str
    futures: list[Future]
    remake: Callable[[list[int]], list[Future]] | None = None
    needs: tuple[Rows, ...] = field(default=())


class Cluster:
    """A Dask client, reduced to what a design needs of it.

    Everything is a plain task that takes futures and makes futures. Dask keeps the recipe of
    a task as long as something that depends on it is alive, and so remakes what a dead
    worker held. A chain of row states, each made from the one before, would so make the
    scheduler keep every iteration. But each task of a pass also depends on an `Order` that the
    client has scattered, for which there is no recipe: when the client lets go of the order,
    Dask forgets what was made with it, except for results that are still held. So the
    graph stays flat; and row state that dies with its worker is reported as cancelled, and
    made again by `restore`.
    """

    def __init__(self, client: Client) -> None:
        if client.asynchronous:
            raise ValueError("Dask data need a synchronous Client, got an asynchronous one")
        self.client = client

    @classmethod
    def of(cls, client: Client | None = None) -> Cluster:
        """The given client's cluster, or that of the current client."""
        if client is None:
            try:
                client = get_client()
            except ValueError as error:
                raise ValueError(
                    "Dask data need a distributed.Client: create one before calling fit, "
                    "for example Client() for a local cluster; got none"
                ) from error
        return cls(client)

    def n_workers(self) -> int:
        """How many workers there are now, at least 1."""
        return max(1, len(self.client.nthreads()))

    def map(
        self, function: Callable[..., Any], /, *arguments: Iterable[Any], **shared: Any
    ) -> list[Future]:
        """One task per partition, sent to the scheduler in one message."""
        # What the caller has in memory is meant to be kept in the graph: no warning of its size.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            # Dask predicts a task's duration from its kind: the part of the key up to the first
            # word that is not of letters alone. So functions have kinds of their own.
            name = f"softmax-{function.__name__.replace('_', '-')}"
            futures: list[Future] = self.client.map(
                function, *[list(a) for a in arguments], key=name, pure=False, **shared
            )
        return futures

    def map_beside(
        self,
        parts: list[Future],
        function: Callable[..., Any],
        /,
        *arguments: list[Any],
        **shared: Any,
    ) -> list[Future]:
        """As `map` over the parts, with a preference for the workers that hold them.

        The order of a pass is on every worker, so Dask would give a task to any that is idle,
        and move a partition for it. A preference, unlike a restriction, ends with its worker.
        """
        where = self.client.who_has(parts)
        groups: dict[tuple[str, ...], list[int]] = {}
        for i, part in enumerate(parts):
            groups.setdefault(tuple(where.get(part.key, ())), []).append(i)
        found: dict[int, Future] = {}
        for holders, numbers in groups.items():
            here = {"workers": list(holders), "allow_other_workers": True} if holders else {}
            own = [[argument[i] for i in numbers] for argument in (parts, *arguments)]
            found.update(zip(numbers, self.map(function, *own, **shared, **here), strict=True))
        return [found[i] for i in range(len(parts))]

    def tree(self, futures: list[Future], add: Callable[[list[Any]], Any]) -> Future:
        """The sum of results by a tree: neighbours first, always in the same order."""
        while len(futures) > 1:
            groups = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
            last = [groups.pop()[0]] if len(groups[-1]) == 1 else []
            futures = self.map(add, groups) + last
        return futures[0]

    def scatter(self, content: Any) -> Future:
        """Send an object to every worker."""
        try:
            return self.client.scatter([content], broadcast=True, hash=False)[0]
        except OSError as error:  # a worker that died a moment ago
            raise CommClosedError(str(error)) from error

    def gather(self, futures: Any) -> Any:
        """Results, in the caller's memory; an error that a task returned is raised."""
        results = self.client.gather(futures)
        for result in results if isinstance(results, list) else [results]:
            if isinstance(result, Exception):
                raise result
        return results

    def insist(self, attempt: Callable[[], T], *handles: Rows) -> T:
        """Try until it works what lost workers may prevent; lost rows are made again."""
        pause = FIRST_PAUSE
        for trial in range(1, MOST_TRIES + 1):
            try:
                if trial > 1:
                    self.restore(handles)
                return attempt()
            except (CancelledError, CommClosedError) as error:
                if trial == MOST_TRIES:
                    raise RuntimeError(
                        f"workers were lost in each of {MOST_TRIES} tries in a row"
                    ) from error
                logger.warning("a worker was lost, trying again in %.2f s: %s", pause, error)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        raise AssertionError("unreachable")

    def restore(self, handles: Sequence[Rows]) -> None:
        """Make rows again that were lost with a worker and that Dask cannot make."""
        for handle in handles:
            held: Held = handle.held
            lost = [p for p, future in enumerate(held.futures) if future.cancelled()]
            if not lost:
                continue
            if held.remake is None:
                raise RuntimeError(
                    f"partition {lost[0]} of {held.name} was lost with its worker, and Dask has "
                    "no recipe to make it again: it was scattered, or its graph is gone. Load "
                    "the data in tasks, or replicate them (Client.replicate)"
                )
            self.restore(held.needs)
            logger.warning("partitions %s of %s were lost and are made again", lost, held.name)
            for p, future in zip(lost, held.remake(lost), strict=True):
                held.futures[p] = future
