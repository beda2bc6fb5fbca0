"""Solvers yield iterates; `run` is the only loop."""

from admm_softmax.solvers.admm import ADMM
from admm_softmax.solvers.base import Iterate, Solver
from admm_softmax.solvers.chain import Chain
from admm_softmax.solvers.hessian_lbfgs import HessianLBFGS
from admm_softmax.solvers.history import History
from admm_softmax.solvers.lbfgs import LBFGS
from admm_softmax.solvers.loop import Result, run
from admm_softmax.solvers.newton import Newton
from admm_softmax.solvers.newton_cg import NewtonCG
from admm_softmax.solvers.proximal_lbfgs import ProximalLBFGS
from admm_softmax.solvers.sgd import SGD
from admm_softmax.solvers.stopping import Status

__all__ = [
    "ADMM",
    "LBFGS",
    "SGD",
    "Chain",
    "HessianLBFGS",
    "History",
    "Iterate",
    "Newton",
    "NewtonCG",
    "ProximalLBFGS",
    "Result",
    "Solver",
    "Status",
    "run",
]
