"""Solvers by name: what `solver="admm"` and `solver="auto"` stand for."""

from __future__ import annotations

from admm_softmax.solvers.admm import ADMM
from admm_softmax.solvers.base import Solver
from admm_softmax.solvers.least_squares import Auto

NAMES = ("auto", "admm")


def as_solver(solver: str | Solver, *, seed: int = 0) -> Solver:
    """Look a solver up by name; a solver object runs as it was configured.

    "admm" is ADMM as one would tune it: ρ follows the curvature, the steps are
    over-relaxed and the start is smart. "auto" is "admm".

    >>> as_solver("admm").relaxation
    1.7
    """
    if isinstance(solver, str):
        if solver not in NAMES:
            raise ValueError(f"solver must be one of {NAMES} or a solver object, got {solver!r}")
        return ADMM(rho="auto", relaxation=1.7, start="smart", least_squares=Auto(seed=seed))
    if isinstance(solver, type) or not hasattr(solver, "iterates"):
        raise TypeError(
            f"solver must be a name or an object with an iterates method, got {solver!r}"
        )
    return solver
