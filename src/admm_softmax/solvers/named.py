"""Solvers by name, and the rule behind "auto".

| name          | solver                                                                   |
|---------------|--------------------------------------------------------------------------|
| `"auto"`      | L-BFGS with the preconditioner that `choose_preconditioner` finds worth it; |
|               | for dense data with d ≥ 2n, in the space of the rows first               |
| `"admm"`      | ADMM, tuned; when it slows, L-BFGS goes on with its factorisation        |
| `"lbfgs"`     | as "auto"                                                                |
| `"newton-cg"` | Newton-CG with the same preconditioner                                   |
| `"sgd"`       | mini-batches of 300, Nesterov momentum, a falling rate, the same preconditioner |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from admm_softmax.design import SparseDesign
from admm_softmax.problem import Problem
from admm_softmax.solvers.admm import ADMM
from admm_softmax.solvers.base import Solver
from admm_softmax.solvers.lbfgs import LBFGS
from admm_softmax.solvers.least_squares import Auto, Woodbury
from admm_softmax.solvers.least_squares.auto import LARGEST_FACTOR
from admm_softmax.solvers.newton_cg import NewtonCG
from admm_softmax.solvers.preconditioner import Name
from admm_softmax.solvers.row_space import RowSpace
from admm_softmax.solvers.sgd import SGD

NAMES = ("auto", "admm", "lbfgs", "newton-cg", "sgd")

#: Rows that make a Gram matrix good enough to precondition with: so many, or d if more,
#: and twice that where `tol` asks for many iterations.
ENOUGH_ROWS, TIGHT = 5_000, 1e-5
#: How much slower an operation is in a thin product than in a Gram matrix.
THIN = 2.5


#: With so many times more columns than rows, the problem is solved in the rows' space.
WIDE = 2


class Choice(NamedTuple):
    """A solver, and in words why it was taken."""

    solver: Solver
    reason: str


def as_solver(
    solver: str | Solver, problem: Problem, *, tol: float, seed: int = 0, fits: int = 1
) -> Choice:
    """Look a solver up by name; a solver object runs as it was configured.

    `fits` of about this problem will share what is prepared for the first.
    """
    if not isinstance(solver, str):
        if isinstance(solver, type) or not hasattr(solver, "iterates"):
            raise TypeError(
                f"solver must be a name or an object with an iterates method, got {solver!r}"
            )
        return Choice(solver, "given")
    if solver not in NAMES:
        raise ValueError(f"solver must be one of {NAMES} or a solver object, got {solver!r}")
    if solver == "admm":
        tuned = ADMM(rho="auto", relaxation=1.7, start="smart", least_squares=Auto(seed=seed))
        return Choice(tuned.then(LBFGS(20, "gram", seed=seed)), "asked for by name")
    name, subsample, reason = choose_preconditioner(problem, tol, fits)
    if solver == "sgd":
        return Choice(_tuned_sgd(problem, name, subsample, seed), reason)
    if solver == "newton-cg":
        newton = NewtonCG(100, None, preconditioner=name, subsample=subsample, seed=seed)
        return Choice(newton, reason)
    # Pairs are cheap beside a factorisation, and not beside a pass over sparse rows.
    lbfgs = LBFGS(20 if name == "gram" else 10, name, subsample=subsample, seed=seed)
    n, d = problem.design.n_rows, problem.shape[0]
    if WIDE * n <= d and n <= LARGEST_FACTOR and RowSpace.applies(problem):
        inside = RowSpace(LBFGS(20, "gram", seed=seed))
        return Choice(inside.then(lbfgs), f"{n} rows span a small part of {d} columns")
    return Choice(lbfgs, reason)


def _tuned_sgd(problem: Problem, name: Name, subsample: int | None, seed: int) -> SGD:
    """SGD whose learning rate does not depend on the units of the features.

    Many batches an epoch make noise that a small, falling rate averages out; few of them
    want long steps, up to 1, which is safe for whole batches. Measured on wine, breast
    cancer, digits and 20,000 × 50.
    """
    if problem.design.n_rows < problem.shape[0]:
        name = "jacobi"  # the n × n form would read all of X at every step
    batches = -(-problem.design.n_rows // SGD.batch_size)
    rate = min(1.0, 8.0 / batches)
    return SGD(
        rate if name == "gram" else 0.1 * rate,
        nesterov=True,
        schedule="inverse",
        decay=min(0.3, batches / 200),
        preconditioner=name,
        subsample=subsample,
        seed=seed,
    )


def choose_preconditioner(
    problem: Problem, tol: float, fits: int = 1
) -> tuple[Name, int | None, str]:
    """Whether a Gram matrix pays: its cost against that of the passes it saves.

    | situation                                           | preconditioner              |
    |-----------------------------------------------------|-----------------------------|
    | min(n, d) ≤ 15,000 and the Gram matrix is cheaper    | "gram", of max(5,000, d) rows |
    | … and dearer (few classes, loose tol, very sparse X) | "jacobi"                    |
    | min(n, d) > 15,000, dense                            | "gram": a sketch of it      |
    | min(n, d) > 15,000, sparse                           | "jacobi"                    |

    In operations: a Gram matrix of m rows costs m·d² (or n²·d where n < d) and a third of
    the cube; a pass costs 4 K an entry of X, at the speed of thin products. Measured,
    preconditioning saves about 40 passes for each digit of `tol` beyond the second, in each of
    the `fits` that share the matrix.
    """
    (d, K), n = problem.shape, problem.design.n_rows
    entries = problem.design.entries
    is_sparse = isinstance(problem.design, SparseDesign)
    small = min(n, d) if d <= LARGEST_FACTOR or Woodbury.applies(problem) else d
    if small > LARGEST_FACTOR:
        if is_sparse:
            return "jacobi", None, f"sparse, and a matrix of {small} rows is too large to factor"
        return "gram", None, f"dense, and {small} rows are too many to factor: a sketch"
    rows = min(n, max(ENOUGH_ROWS, d) * (1 if tol > TIGHT else 2))
    gram = (rows / n) * entries * small + small**3 / 3
    a_pass = 4.0 * K * max(1, entries) * THIN
    digits = -float(np.log10(max(tol, 1e-12)))
    saved = 40.0 * max(digits - 2.0, 0.25) * fits
    if gram <= saved * a_pass:
        cost = f"the Gram matrix costs about {gram / a_pass:.1f} passes and saves {saved:.0f}"
        # Fewer rows than columns go the n × n way, which needs them all.
        return "gram", rows if d <= rows < n else None, cost
    cost = f"a Gram matrix would cost about {gram / a_pass:.0f} passes and save {saved:.0f}"
    return "jacobi", None, cost
