"""Solvers by name, and the rule behind "auto".

| name          | solver                                                                   |
|---------------|--------------------------------------------------------------------------|
| `"auto"`      | as "lbfgs"; Newton's method for one fit of a small problem               |
| `"admm"`      | ADMM, tuned; when it slows, L-BFGS goes on with its factorisation        |
| `"lbfgs"`     | L-BFGS with the preconditioner that `choose_preconditioner` finds worth it; |
|               | for dense data with d ≥ 2n, in the space of the rows first; a Gram       |
|               | matrix that does not look worth it is made once steps have cost as much  |
| `"newton-cg"` | Newton-CG with the same preconditioner                                   |
| `"sgd"`       | mini-batches of 300, Nesterov momentum, a falling rate, the same preconditioner |

Under a penalty with kinks "auto" is `ProximalLBFGS`, or ADMM where the penalty is not a sum over
entries or groups; "admm" is ADMM, and then `ProximalLBFGS` where that can; the others refuse.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from admm_softmax._checks import check_real
from admm_softmax.problem import Problem
from admm_softmax.solvers.admm import ADMM
from admm_softmax.solvers.base import Solver
from admm_softmax.solvers.costs import (
    LARGEST_FACTOR,
    NEWTON_OPERATIONS,
    NEWTON_SCORE,
    PASSES_PER_DIGIT,
    READING,
    SAMPLED_ROWS,
    TIGHT,
    TYPICALLY_THIN,
    WIDE,
    pass_cost,
    reading_cost,
)
from admm_softmax.solvers.lbfgs import LBFGS
from admm_softmax.solvers.least_squares import Auto, Woodbury
from admm_softmax.solvers.newton import Newton
from admm_softmax.solvers.newton_cg import NewtonCG
from admm_softmax.solvers.preconditioner import Name
from admm_softmax.solvers.proximal_lbfgs import ProximalLBFGS
from admm_softmax.solvers.row_space import RowSpace
from admm_softmax.solvers.sgd import SGD

SOLVERS = ("auto", "admm", "lbfgs", "newton-cg", "sgd")

#: scikit-learn's other solvers, and what does the same here.
OTHERS = {
    "liblinear": "solver='auto', which takes two classes and more",
    "newton-cholesky": "solver='auto', which is Newton's method where that is fastest",
    "sag": "solver='sgd' for a rough fit, or solver='auto', which is faster to a good one",
    "saga": "solver='sgd' for a rough fit, or solver='auto', which is faster to a good one",
}


class Choice(NamedTuple):
    """A solver, and the reason for choosing it, as text."""

    solver: Solver
    reason: str


class Preconditioning(NamedTuple):
    """A preconditioner, and the reason for choosing it, as text.

    name, subsample : as in `make_preconditioner`
    later : after how many steps to take the Gram matrix all the same; None where it is in use,
        would be too large, or is not for a single fit of dense rows
    """

    name: Name
    subsample: int | None
    reason: str
    later: int | None = None


def as_solver(
    solver: str | Solver, problem: Problem, *, tol: float, seed: int = 0, fits: int = 1
) -> Choice:
    """Look a solver up by name; a solver object runs as it was configured.

    `fits` is the number of fits of similar problems that share what is prepared for the first.
    """
    check_real("tol", tol, "a number ≥ 0", above=0.0, closed=True)
    if not isinstance(solver, str):
        if isinstance(solver, type) or not hasattr(solver, "iterates"):
            raise TypeError(
                f"solver must be a name or an object with an iterates method, got {solver!r}"
            )
        return Choice(solver, "given")
    if solver in OTHERS:
        raise ValueError(f"solver={solver!r} is scikit-learn's: here, use {OTHERS[solver]}")
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {SOLVERS} or a solver object, got {solver!r}")
    tuned = ADMM(rho="auto", relaxation=1.7, start="smart", least_squares=Auto(seed=seed))
    if not problem.penalty.is_smooth:
        return _for_kinks(solver, problem, tol, tuned)
    if solver == "admm":
        return Choice(tuned.then(LBFGS(20, "gram", seed=seed)), "asked for by name")
    name, subsample, reason, later = choose_preconditioner(problem, tol, fits)
    if solver == "sgd":
        return Choice(_tuned_sgd(problem, name, subsample, seed), reason)
    if solver == "newton-cg":
        newton = NewtonCG(100, None, preconditioner=name, subsample=subsample, seed=seed)
        return Choice(newton, reason)
    # Pairs are cheap compared with a factorisation, but not with a pass over sparse rows.
    lbfgs = LBFGS(20 if name == "gram" else 10, name, subsample=subsample, seed=seed)
    found = _wide(problem, lbfgs, seed) or Choice(lbfgs, reason)
    if found.solver is lbfgs and later is not None:
        second = LBFGS(20, "gram", subsample=_sampled_rows(problem, tol), seed=seed)
        found = Choice(lbfgs.then(second, after=later), f"{reason}; it is made after {later} steps")
    small = _newton_operations(problem) <= NEWTON_OPERATIONS and not problem.design.is_remote
    if solver == "auto" and fits == 1 and small:
        found = Choice(Newton(), "a whole Hessian costs less than the calls of many passes")
    return found


def _for_kinks(solver: str, problem: Problem, tol: float, admm: ADMM) -> Choice:
    """Solvers for penalties that are not smooth."""
    name = type(problem.penalty).__name__
    if solver not in ("auto", "admm"):
        raise ValueError(
            f"solver={solver!r} needs a smooth penalty, and {name} is not smooth: use 'auto' or "
            "'admm'"
        )
    if problem.penalty.blocks is None:
        return Choice(admm, f"{name} is not a sum over entries or groups: a second split")
    steps = ProximalLBFGS(tol=tol)
    if solver == "admm":
        return Choice(admm.then(steps), "asked for by name")
    return Choice(steps, f"{name} is a sum over entries or groups")


def _wide(problem: Problem, lbfgs: LBFGS, seed: int) -> Choice | None:
    """The space of the rows first, where they span a small part of the columns."""
    n, d = problem.design.n_rows, problem.shape[0]
    if WIDE * n <= d and n <= LARGEST_FACTOR and RowSpace.applies(problem):
        inside = RowSpace(LBFGS(20, "gram", seed=seed))
        return Choice(inside.then(lbfgs), f"{n} rows span a small part of {d} columns")
    return None


def _newton_operations(problem: Problem) -> float:
    """What one step of `Newton` costs."""
    (d, K), n = problem.shape, problem.design.n_rows
    size = d if K == 2 else d * K
    return float(n * (size**2 + NEWTON_SCORE * K) + size**3 / 3)


def _tuned_sgd(problem: Problem, name: Name, subsample: int | None, seed: int) -> SGD:
    """SGD whose learning rate does not depend on the units of the features.

    Many batches per epoch make noise that a small, falling rate averages out; with few
    batches long steps are better, up to 1, which is safe for full batches. Measured on wine,
    breast cancer, digits and 20,000 × 50.
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


def choose_preconditioner(problem: Problem, tol: float, fits: int = 1) -> Preconditioning:
    """Whether a Gram matrix pays: its cost against that of the passes it saves.

    | situation                                           | preconditioner              |
    |-----------------------------------------------------|-----------------------------|
    | min(n, d) ≤ 15,000 and the Gram matrix is cheaper    | "gram", of max(5,000, d) rows |
    | … or not (few classes, loose tol, very sparse X)     | "jacobi", "gram" later      |
    | min(n, d) > 15,000, dense                            | "gram": a sketch of it      |
    | min(n, d) > 15,000, sparse                           | "jacobi"                    |

    In operations: a Gram matrix of m rows costs m·d² (or n²·d where n < d) and a third of
    the cube; a pass costs 4 K per entry of X, at the speed of thin products, and reads X. Measured,
    preconditioning saves about 40 passes per digit of `tol` beyond the second, in each of the
    `fits` that share the matrix.

    That is a typical figure. On nearly separable data with correlated columns a diagonal can take
    more than ten times as many steps, so that a single fit of dense rows which has taken as many
    steps as the matrix costs takes it then: whatever would have been better, it costs about twice
    that at most. How many these are must not depend on the CPU: a checkpoint names the solver, and
    may go on elsewhere. Where X is sparse, steps with the factor may cost many passes.
    """
    (d, _), n = problem.shape, problem.design.n_rows
    entries = problem.design.entries
    small = min(n, d) if d <= LARGEST_FACTOR or Woodbury.applies(problem) else d
    if small > LARGEST_FACTOR:
        if problem.design.is_sparse:
            why = f"sparse, and a matrix of {small} rows is too large to factor"
            return Preconditioning("jacobi", None, why)
        why = f"dense, and {small} rows are too many to factor: a sketch"
        return Preconditioning("gram", None, why)
    rows = _sample_size(problem, tol)
    gram = (rows / n) * entries * small + small**3 / 3
    a_pass = pass_cost(problem) + reading_cost(problem)
    digits = -float(np.log10(max(float(tol), 1e-12)))
    saved = PASSES_PER_DIGIT * max(digits - 2.0, 0.25) * fits
    if gram <= saved * a_pass:
        cost = f"the Gram matrix costs about {gram / a_pass:.1f} passes and saves {saved:.0f}"
        return Preconditioning("gram", _sampled_rows(problem, tol), cost)
    cost = f"a Gram matrix would cost about {gram / a_pass:.0f} passes and save {saved:.0f}"
    if fits > 1 or problem.design.is_sparse:
        return Preconditioning("jacobi", None, cost)
    step = max(1, entries) * (4.0 * problem.n_classes * TYPICALLY_THIN + READING)
    return Preconditioning("jacobi", None, cost, later=ceil(gram / step))


def _sample_size(problem: Problem, tol: float) -> int:
    """How many rows a Gram matrix for a preconditioner should be of."""
    wanted = max(SAMPLED_ROWS, problem.shape[0]) * (1 if tol > TIGHT else 2)
    return min(problem.design.n_rows, wanted)


def _sampled_rows(problem: Problem, tol: float) -> int | None:
    """The same; None for all, which the n × n form needs where rows are fewer than columns."""
    rows = _sample_size(problem, tol)
    return rows if problem.shape[0] <= rows < problem.design.n_rows else None
