"""How a run ended, and what to do about it."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Why `run` stopped. A string: `result.status == "converged"` works.

    converged : max|∇F| ≤ tol
    iteration_limit, time_limit : `max_iter` or `time_limit` was reached
    stalled : the solver ended by itself, or rounding prevents further progress
    stopped : a callback returned something true
    interrupted : by Ctrl-C
    diverged : the objective is no longer finite

    >>> Status.TIME_LIMIT == "time_limit", Status.TIME_LIMIT.remedy
    (True, 'Increase time_limit or loosen tol.')
    """

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    STALLED = "stalled"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"

    @property
    def remedy(self) -> str:
        """What to change; empty where nothing is wrong."""
        return _REMEDIES.get(self, "")


_REMEDIES = {
    Status.ITERATION_LIMIT: "Increase max_iter, loosen tol, or regularise more (larger alpha).",
    Status.TIME_LIMIT: "Increase time_limit or loosen tol.",
    Status.STALLED: "No step lowers the objective any more, usually because of rounding: loosen "
    "tol, scale the features, use float64 data, or another solver or preconditioner.",
    Status.DIVERGED: "Scale the features, use rho='auto' (ADMM) or a smaller learning_rate (SGD).",
}
