"""The only loop: clock, stopping, history, the best iterate, callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_choice, check_count, check_real
from admm_softmax._interrupts import Hold, check_interrupt, held_interrupt
from admm_softmax._parallel import blas_threads, use_threads
from admm_softmax._reprs import as_html, as_text
from admm_softmax.kernels.compile_clock import announcing, compile_seconds
from admm_softmax.problem import Problem
from admm_softmax.progress import Progress
from admm_softmax.solvers.base import Iterate, Solver, measure, resumed
from admm_softmax.solvers.checkpoint import (
    EVERY,
    Best,
    Checkpoint,
    Newest,
    Standing,
    place_for,
    run_identity,
)
from admm_softmax.solvers.history import History
from admm_softmax.solvers.stopping import Status
from admm_softmax.storage.checkpoints import Slot
from admm_softmax.storage.identity import Identity

#: The largest gradient, relative to the root of the largest number. Gradients are means over rows
#: of X, so entries are larger.
LARGEST_GRADIENT = 1e-3

Callback = Callable[[Iterate], bool | None]


@dataclass(frozen=True)
class Result:
    """The W kept, the iterate and iteration it comes from, and how the run went.

    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import LBFGS, Problem, run
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = Problem.of(X, y, alpha=1e-2)
    >>> result = run(problem, LBFGS(), tol=1e-5)
    >>> result.W.shape, result.status.value, result.n_iter == result.kept_iteration
    ((5, 3), 'converged', True)
    """

    W: Array
    iterate: Iterate
    #: Steps until the W kept, 0 being the start; smaller than `n_iter` where an earlier iterate
    #: was best on the validation rows.
    kept_iteration: int
    #: Steps taken.
    n_iter: int
    status: Status
    history: History
    #: The record of the history that belongs to the W kept.
    kept_record: Mapping[str, float]

    def __repr__(self) -> str:
        return as_text("Result", self._facts())

    def _repr_html_(self) -> str:
        """For notebooks."""
        return as_html("Result", self._facts())

    def _facts(self) -> dict[str, str]:
        record = self.kept_record
        facts = {
            "status": f"{self.status} after {self.n_iter} iterations",
            "W": f"{self.W.shape[0]} × {self.W.shape[1]}, of iteration {self.kept_iteration}",
            "objective": f"{record['objective']:.6g}",
            "training": f"loss {record['loss']:.6g}, accuracy {100 * record['accuracy']:.2f} %",
        }
        if "val_loss" in record:
            loss, accuracy = record["val_loss"], 100 * record["val_accuracy"]
            facts["validation"] = f"loss {loss:.6g}, accuracy {accuracy:.2f} %"
        return {**facts, "solver": self.history.solver}


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
    n_threads: int | None = None,
    verbose: bool = False,
    checkpoint: Checkpoint = None,
    checkpoint_every: float = EVERY,
) -> Result:
    """Pull iterates from a solver until one of these happens; `Status` lists all ends.

    tol : max|∇F| ≤ tol: "converged". The largest absolute entry of the gradient of the
        whole objective, the same for every solver. With 0 only a gradient that is exactly
        zero, where no solver would move any more, ends the run so.
    max_iter : steps: "iteration_limit". 0 returns the start.
    time_limit : seconds spent in the solver, set-up included, monitoring and compiling excluded,
        tested after each iteration: "time_limit".
    callbacks : one or several; each gets every iterate, the start first, and one that
        returns something true ends the run: "stopped".
    n_threads : threads to use; None takes those of the caller's setting, or every core.
    checkpoint : a folder to keep the state of the run in, so that the same call goes on where a
        process ended that was killed, and returns at once where the run has ended. Only max_iter
        and time_limit may be others than before.
    checkpoint_every : seconds between two writes at least; 0 writes after every iteration.
    validation, keep, monitor : with a Problem on other rows (its penalty is ignored) and
        keep="best" the iterate with the smallest validation loss, or the largest accuracy, is
        kept, the first among equals. Without it, the last one whose F is not above that at the
        start; keep="last" keeps the last one in any case.

    >>> import numpy as np
    >>> from admm_softmax import ADMM, Problem, run
    >>> problem = Problem.of(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1], alpha=0.1)
    >>> run(problem, ADMM(rho=0.1)).status
    <Status.CONVERGED: 'converged'>
    """
    _check_settings(max_iter, tol, time_limit, keep, monitor)
    _check_start(W0, problem.shape)
    callbacks = (callbacks,) if callable(callbacks) else callbacks
    call = _Call(problem, solver, W0, validation, keep, monitor)
    with (
        held_interrupt() as hold,
        use_threads(n_threads),
        blas_threads(1),
        announcing(verbose),
        place_for(checkpoint, checkpoint_every, lambda: call.identity(tol)) as slot,
        Progress(verbose, max_iter, time_limit) as progress,
    ):
        return call.result(_Rules(max_iter, tol, time_limit, callbacks), progress, slot, hold)


@dataclass(frozen=True)
class _Call:
    """What is run, and which iterate is kept."""

    problem: Problem
    solver: Solver
    W0: Array | None
    validation: Problem | None
    keep: str
    monitor: str

    def identity(self, tol: float) -> Identity:
        """What the run is computed from."""
        settings = {"tol": float(tol), "keep": self.keep, "monitor": self.monitor}
        return run_identity(self.problem, self.solver, self.W0, self.validation, **settings)

    def result(self, rules: _Rules, progress: Progress, slot: Slot, hold: Hold) -> Result:
        """Go on from the slot, if it has anything, until the run ends."""
        best = Best(self.keep, self.monitor, self.validation is not None)
        standing = Standing(History(repr(self.solver)), best, Newest(self.W0))
        problems = self.problem, self.problem.for_run(), self.validation
        standing.resume(slot, problems[1].design)
        progress.resume(standing.newest.n_iter)
        status = standing.ended(rules.max_iter, rules.time_limit)
        if status is None:
            status = _go_on(standing, self.solver, problems, rules, progress, slot)
        if best.iterate is None:
            raise _nothing_to_keep(self.solver, status)
        status = Status.INTERRUPTED if hold.take() else status  # pressed since the last look
        history, record = standing.history, best.record
        progress.finish(status, list(history)[-1])
        kept, n_iter = int(record["iteration"]), standing.newest.n_iter
        history.tol, history.kept_iteration = float(rules.tol), kept
        W = np.asarray(best.iterate.W, np.float64)
        return Result(W, best.iterate, kept, n_iter, status, history, record)


@dataclass(frozen=True)
class _Rules:
    """When to stop."""

    max_iter: int
    tol: float
    time_limit: float | None
    callbacks: Sequence[Callback]


def _go_on(
    standing: Standing,
    solver: Solver,
    problems: tuple[Problem, Problem, Problem | None],
    rules: _Rules,
    progress: Progress,
    slot: Slot,
) -> Status:
    """Pull iterates until a rule says to stop.

    problems : the problem, the same for this run, and that of the validation rows
    """
    problem, own, validation = problems
    history, best, passes = standing.history, standing.best, standing.passes
    newest = standing.newest
    begun = newest.records > 0
    status: Status | None = None
    with closing(resumed(solver, own, newest.W, newest.state, begun=begun)) as iterator:
        try:
            while status is None:
                check_interrupt()
                iterate, spent = _timed_next(iterator)
                if iterate is None:
                    status = Status.STALLED
                    break
                standing.seconds += spent
                n_iter = newest.n_iter + (newest.records > 0 and iterate.is_step)
                # Not held where no one will store it: it may be large.
                state = None if slot.path is None else iterate.state
                iterate = measure(problem, iterate.seen(passes + own.design.reads))
                _check_scale(iterate, problem)
                record = _record(n_iter, standing.seconds, iterate, validation)
                history.append(record, iterate.inner_residuals)
                progress.update(record)
                best.offer(iterate, record)
                newest = standing.newest = Newest(iterate.W, state, len(history), n_iter)
                status = _verdict(iterate, record, rules)
                if status is None and slot.due():
                    standing.save(slot, own.design, iterate.passes)
        except KeyboardInterrupt:
            if best.iterate is None:
                raise
            status = Status.INTERRUPTED
        if best.iterate is not None:
            standing.save(slot, own.design, passes + own.design.reads, status)
    return status


def _nothing_to_keep(solver: Solver, status: Status) -> Exception:
    if status == Status.STALLED:
        return RuntimeError(f"{solver!r} ended without an iterate")
    return FloatingPointError(f"the first iterate of {solver!r} is not finite")


def _timed_next(iterator: Iterator[Iterate]) -> tuple[Iterate | None, float]:
    """The next iterate, None where the solver has ended; and the seconds it took."""
    begin, compiled = time.perf_counter(), compile_seconds()
    iterate = next(iterator, None)
    return iterate, time.perf_counter() - begin - (compile_seconds() - compiled)


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


def _verdict(iterate: Iterate, record: Mapping[str, float], rules: _Rules) -> Status | None:
    if not np.isfinite(iterate.objective):
        return Status.DIVERGED
    # Every callback sees every iterate, also the last.
    stopped = any([bool(callback(iterate)) for callback in rules.callbacks])  # noqa: C419
    if iterate.converged or iterate.gradient_norm <= rules.tol:
        return Status.CONVERGED
    if stopped:
        return Status.STOPPED
    if iterate.stalled:
        return Status.STALLED
    if rules.time_limit is not None and record["seconds"] >= rules.time_limit:
        return Status.TIME_LIMIT
    return Status.ITERATION_LIMIT if record["iteration"] >= rules.max_iter else None


def _check_scale(iterate: Iterate, problem: Problem) -> None:
    """Raise where entries of X are so large that their squares overflow: no solver can move."""
    most = float(np.sqrt(np.finfo(problem.design.dtype).max))
    if iterate.gradient_norm > LARGEST_GRADIENT * most:
        raise ValueError(
            f"X is too large, and its squares overflow in {problem.design.dtype}: max|∇F| is "
            f"{iterate.gradient_norm:.0e}; scale the features"
        )


def _check_start(W0: Array | None, shape: tuple[int, int]) -> None:
    if W0 is None:
        return
    if np.shape(W0) != shape:
        raise ValueError(f"W0 must have the shape {shape} of W, got {np.shape(W0)}")
    if not np.isfinite(W0).all():
        raise ValueError("W0 must be finite, got NaN or infinity")


def _check_settings(
    max_iter: int, tol: float, time_limit: float | None, keep: str, monitor: str
) -> None:
    check_count("max_iter", max_iter, "a whole number ≥ 0", least=0)
    check_real("tol", tol, "a number ≥ 0", above=0.0, closed=True)
    if time_limit is not None:
        check_real("time_limit", time_limit, "positive or None", above=0.0)
    check_choice("keep", keep, ("best", "last"))
    check_choice("monitor", monitor, ("loss", "accuracy"))
