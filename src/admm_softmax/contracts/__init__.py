"""Checks for designs, penalties and solvers of your own.

Each raises AssertionError with what is wrong, and returns nothing where all is well. They are
what the library's own designs, penalties and solvers are tested with; `docs/extending.md`
walks through one example of each.
"""

from admm_softmax.contracts.design import check_design
from admm_softmax.contracts.penalty import check_penalty
from admm_softmax.contracts.solver import check_solver

__all__ = ["check_design", "check_penalty", "check_solver"]
