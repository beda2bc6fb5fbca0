"""How far a run has come, and how that is written to a checkpoint and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_real
from admm_softmax.design import Design
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Iterate, Solver
from admm_softmax.solvers.history import History
from admm_softmax.solvers.identity import as_identity, data_identity, problem_identity
from admm_softmax.solvers.state import State, gathered, placed
from admm_softmax.solvers.stopping import Status
from admm_softmax.storage.checkpoints import Checkpoints, Slot
from admm_softmax.storage.identity import Identity, as_text

#: A folder for one run, or the place of a run in a folder that many share.
Checkpoint: TypeAlias = str | Path | Slot | None

#: Seconds between two writes, unless a caller sets another interval.
EVERY = 30.0
#: The file of a run that has a folder of its own.
FIT_SLOT = "fit"


#: By how much F may be above that at the start, relative to 1 + |F|: what single precision leaves.
ABOVE_START = 1e-6


class Best:
    """The iterate to keep so far.

    validated : whether records have figures of validation rows, which then decide what is best.
        Without them the best iterate is the last one whose F is not above that at the start.
    """

    def __init__(self, keep: str, monitor: str, validated: bool) -> None:
        self.keep, self.monitor, self.validated = keep, monitor, validated
        self.iterate: Iterate | None = None
        #: Its record in the history.
        self.record: Mapping[str, float] = {}
        #: That of the iterate kept, on the validation rows; without them F at the start.
        self.score = np.inf

    def offer(self, iterate: Iterate, record: Mapping[str, float]) -> None:
        """Take this iterate if it is finite and better, or if the last one is to be kept."""
        if not np.isfinite(iterate.objective):
            return
        if self.keep == "best" and not self.validated:
            if self.iterate is None:
                self.score = iterate.objective
            elif iterate.objective > self.score + ABOVE_START * (1.0 + abs(self.score)):
                return
        elif self.keep == "best":
            loss, accuracy = record["val_loss"], record["val_accuracy"]
            score = loss if self.monitor == "loss" else -accuracy
            if self.iterate is not None and not score < self.score:
                return
            self.score = score
        self.iterate, self.record = iterate, record


class Newest(NamedTuple):
    """The newest iterate, as far as it is needed to go on from it."""

    W: Array | None
    state: State | None = None
    #: Records of the history up to it.
    records: int = 0
    #: Steps up to it; the start is none, and one W looked at twice is one.
    n_iter: int = 0


@dataclass
class Standing:
    """How far a run has come.

    newest : replaced as a whole, and last, so that it can be trusted after any interruption
    passes : reads of X in the processes before this one
    status : None while there is something left to do
    """

    history: History
    best: Best
    newest: Newest
    seconds: float = 0.0
    passes: float = 0.0
    status: Status | None = None

    def resume(self, slot: Slot, design: Design) -> None:
        """Take over what a slot has, if anything."""
        slot.load(lambda content: self._read(content, design))

    def ended(self, max_iter: int, time_limit: float | None) -> Status | None:
        """How the run ended; None where limits leave something to do."""
        if self.status not in (None, Status.ITERATION_LIMIT, Status.TIME_LIMIT):
            return self.status
        if self.newest.records and self.newest.n_iter >= max_iter:
            return Status.ITERATION_LIMIT
        if self.newest.records and time_limit is not None and self.seconds >= time_limit:
            return Status.TIME_LIMIT
        return None

    def save(self, slot: Slot, design: Design, passes: float, status: Status | None = None) -> None:
        """Write everything to a slot; `passes` are all reads of X so far.

        A run that has ended for good keeps no state. One that was interrupted goes on next time.
        """
        if slot.path is None:
            return
        self.status = None if status == Status.INTERRUPTED else status
        goes_on = self.status in (None, Status.ITERATION_LIMIT, Status.TIME_LIMIT)
        W, state, records, _ = self.newest
        best = self.best
        slot.save(
            {
                "records": list(self.history)[:records],
                "inner_residuals": self.history.inner_residuals[:records],
                "best": {
                    "iterate": best.iterate and _as_dict(best.iterate),
                    "record": best.record,
                    "score": best.score,
                },
                "W": W if goes_on else None,
                "state": gathered(state, design) if goes_on else None,
                "seconds": self.seconds,
                "passes": passes,
                "status": self.status,
            }
        )

    def _read(self, content: dict[str, Any], design: Design) -> bool:
        # Everything is decoded before anything is changed: the file may be damaged.
        pairs = list(zip(content["records"], content["inner_residuals"], strict=True))
        best = content["best"]
        iterate = best["iterate"] and _as_iterate(best["iterate"])
        n_iter = int(pairs[-1][0]["iteration"]) if pairs else 0
        newest = Newest(content["W"], placed(content["state"], design), len(pairs), n_iter)
        status = content["status"] and Status(content["status"])
        self.seconds, self.passes = content["seconds"], content["passes"]
        self.best.record, self.best.score = best["record"], best["score"]
        self.best.iterate, self.newest, self.status = iterate, newest, status
        for record, residuals in pairs:
            self.history.append(record, tuple(residuals))
        return True


def _as_dict(iterate: Iterate) -> dict[str, Any]:
    return {f.name: getattr(iterate, f.name) for f in fields(Iterate) if f.name != "state"}


def _as_iterate(stored: dict[str, Any]) -> Iterate:
    return Iterate(**{**stored, "inner_residuals": tuple(stored["inner_residuals"])})


@contextmanager
def place_for(
    checkpoint: Checkpoint, every: float, identity: Callable[[], Identity]
) -> Iterator[Slot]:
    """The slot of a run: that of its own folder, or the one it was given."""
    if isinstance(checkpoint, Slot):
        yield checkpoint
        return
    with open_checkpoints(checkpoint, every, identity) as folder:
        yield folder.slot(FIT_SLOT)


def open_checkpoints(
    checkpoint: str | Path | None, every: float, identity: Callable[[], Identity]
) -> Checkpoints:
    """The folder of a call, checked; identity as in `Checkpoints`."""
    if checkpoint is not None and not isinstance(checkpoint, str | Path):
        raise TypeError(f"checkpoint must be the path of a folder or None, got {checkpoint!r}")
    every = check_real("checkpoint_every", every, "a number ≥ 0", above=0.0, closed=True)
    return Checkpoints(checkpoint, every, identity)


def run_identity(
    problem: Problem,
    solver: Solver,
    W0: Array | None,
    validation: Problem | None,
    **settings: Any,
) -> Identity:
    """What one run is computed from."""
    known = {**problem_identity(problem), "solver": as_text(solver), **settings}
    known["start"] = None if W0 is None else as_identity(np.asarray(W0, dtype=np.float64))
    if validation is not None:
        known |= data_identity(validation, "validation ")
    return known
