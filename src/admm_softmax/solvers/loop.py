"""The only loop: clock, stopping, history, the best iterate, callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count, check_real
from admm_softmax._parallel import blas_threads
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Iterate, Solver, measure
from admm_softmax.solvers.history import History
from admm_softmax.solvers.progress import Progress
from admm_softmax.solvers.stopping import Status

Callback = Callable[[Iterate], bool | None]


@dataclass(frozen=True)
class Result:
    """The weights kept, the iterate and iteration they come from, and how it went."""

    W: Array
    iterate: Iterate
    #: 1-based; smaller than `n_iter` where an earlier iterate validated best.
    kept_iteration: int
    n_iter: int
    status: Status
    history: History


def run(
    problem: Problem,
    solver: Solver,
    *,
    W0: Array | None = None,
    max_iter: int = 1000,
    tol: float = 1e-4,
    time_limit: float | None = None,
    validation: Problem | None = None,
    keep: Literal["best", "last"] = "best",
    monitor: Literal["loss", "accuracy"] = "loss",
    callbacks: Callback | Sequence[Callback] = (),
    verbose: bool = False,
) -> Result:
    """Pull iterates from a solver until one of these happens.

    tol : max|∇F| ≤ tol: "converged". The largest absolute entry of the gradient of the
        whole objective, the same for every solver; 0 turns the test off.
    max_iter : "iteration_limit".
    time_limit : seconds spent in the solver, set-up included and monitoring excluded,
        tested after each iteration: "time_limit".
    callbacks : one or several; each gets every iterate, and one that returns something
        true ends the run: "stopped".

    A solver that cannot go on for rounding ends it with "stalled", Ctrl-C with
    "interrupted", an objective that is no longer finite with "diverged"; all keep what was
    best before. With `validation` (a Problem on other rows; its penalty plays no part) and
    keep="best" the iterate with the smallest validation loss, or the largest accuracy, is
    kept: the first of equals.

    >>> import numpy as np
    >>> from admm_softmax import ADMM, Problem, run
    >>> problem = Problem.of(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1], alpha=0.1)
    >>> run(problem, ADMM(rho=0.1)).status
    <Status.CONVERGED: 'converged'>
    """
    _check_settings(max_iter, tol, time_limit, keep, monitor)
    if callable(callbacks):
        callbacks = (callbacks,)
    if W0 is not None and np.shape(W0) != problem.shape:
        raise ValueError(f"W0 must have the shape {problem.shape} of W, got {np.shape(W0)}")
    if W0 is not None and not np.isfinite(W0).all():
        raise ValueError("W0 must be finite, got NaN or infinity")
    history = History(repr(solver))
    best = _Best(keep if validation is not None else "last", monitor)
    iterator = solver.iterates(problem, W0)
    status = Status.ITERATION_LIMIT
    seconds = 0.0
    with blas_threads(1), Progress(verbose, max_iter, time_limit) as progress:
        try:
            for iteration in range(1, max_iter + 1):
                iterate, spent = _timed_next(iterator)
                seconds += spent
                iterate = measure(problem, iterate)
                record = _record(iteration, seconds, iterate, validation)
                history.append(record, iterate.inner_residuals)
                progress.update(record)
                if not np.isfinite(iterate.objective):
                    status = Status.DIVERGED
                    break
                best.offer(iterate, iteration, record)
                stop = _verdict(iterate, seconds, tol, time_limit, callbacks)
                if stop is not None:
                    status = stop
                    break
        except KeyboardInterrupt:
            if best.iterate is None:
                raise
            status = Status.INTERRUPTED
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()
        if best.iterate is None:
            raise FloatingPointError(f"the first iterate of {solver!r} is not finite")
        progress.finish(status, list(history)[-1])
    return Result(best.iterate.W, best.iterate, best.iteration, len(history), status, history)


class _Best:
    """The iterate to keep so far."""

    def __init__(self, keep: str, monitor: str) -> None:
        self.keep, self.monitor = keep, monitor
        self.iterate: Iterate | None = None
        self.iteration = 0
        self.score = np.inf

    def offer(self, iterate: Iterate, iteration: int, record: dict[str, float]) -> None:
        if self.keep == "best":
            loss, accuracy = record["val_loss"], record["val_accuracy"]
            score = loss if self.monitor == "loss" else -accuracy
            if self.iterate is not None and not score < self.score:
                return
            self.score = score
        self.iterate, self.iteration = iterate, iteration


def _timed_next(iterator: Iterator[Iterate]) -> tuple[Iterate, float]:
    begin = time.perf_counter()
    iterate = next(iterator)
    return iterate, time.perf_counter() - begin


def _record(
    iteration: int, seconds: float, iterate: Iterate, validation: Problem | None
) -> dict[str, float]:
    record = {
        "iteration": iteration,
        "seconds": seconds,
        "passes": iterate.passes,
        "objective": iterate.objective,
        "loss": iterate.loss,
        "accuracy": iterate.accuracy,
        "gradient_norm": iterate.gradient_norm,
    }
    if validation is not None:
        record["val_loss"], record["val_accuracy"] = validation.evaluate(iterate.W)
    return {**record, **iterate.details}


def _verdict(
    iterate: Iterate,
    seconds: float,
    tol: float,
    time_limit: float | None,
    callbacks: Sequence[Callback],
) -> Status | None:
    # Every callback sees every iterate, also the last.
    stopped = any([bool(callback(iterate)) for callback in callbacks])  # noqa: C419
    if iterate.converged or iterate.gradient_norm <= tol:
        return Status.CONVERGED
    if stopped:
        return Status.STOPPED
    if iterate.stalled:
        return Status.STALLED
    if time_limit is not None and seconds >= time_limit:
        return Status.TIME_LIMIT
    return None


def _check_settings(
    max_iter: int, tol: float, time_limit: float | None, keep: str, monitor: str
) -> None:
    check_count("max_iter", max_iter)
    check_real("tol", tol, "a number ≥ 0", above=0.0, closed=True)
    if time_limit is not None:
        check_real("time_limit", time_limit, "positive or None", above=0.0)
    if keep not in ("best", "last"):
        raise ValueError(f"keep must be 'best' or 'last', got {keep!r}")
    if monitor not in ("loss", "accuracy"):
        raise ValueError(f"monitor must be 'loss' or 'accuracy', got {monitor!r}")
