"""Solvers yield iterates; `run` is the only loop."""

from admm_softmax.solvers.admm import ADMM
from admm_softmax.solvers.base import Iterate, Solver
from admm_softmax.solvers.history import History
from admm_softmax.solvers.run import Result, run
from admm_softmax.solvers.stopping import Status

__all__ = ["ADMM", "History", "Iterate", "Result", "Solver", "Status", "run"]
