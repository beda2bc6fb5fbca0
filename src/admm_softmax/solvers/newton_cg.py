"""Newton's method with conjugate gradients inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import (
    Chainable,
    Iterate,
    measured_at,
    require_smooth,
    start_at,
)
from admm_softmax.solvers.line_search import Plateau, search
from admm_softmax.solvers.preconditioner import (
    Factory,
    Name,
    Preconditioner,
    check_preconditioner,
    make_preconditioner,
    resume_preconditioner,
    state_of,
)
from admm_softmax.solvers.state import State


@dataclass(frozen=True)
class NewtonCG(Chainable):
    """W⁺ = W + tD, where CG solves ∇²F(W) D = −∇F(W) to a tolerance, and t by Armijo.

    cg_max_iter, cg_tol : CG stops after this many steps, or when its residual is cg_tol
        times the gradient's norm. The paper's: 20 and 1e-2. cg_tol=None lets it shrink as
        √‖∇F‖ does, for superlinear convergence (Eisenstat & Walker, 1996).
    preconditioner : "none" is the paper; "jacobi" and "gram" are κ XᵀΩX + α LᵀL or its
        diagonal, κ the mean curvature at W, refactored when κ has halved.
    subsample : number of rows, drawn at random, in the Gram matrix; None takes all.
    seed : of the subsample.

    The first iterate is the start itself. A further one costs a read of X per CG step and
    per trial step. Its `inner_residuals` are CG's relative residuals, step by step.

    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import NewtonCG, Problem, run
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = Problem.of(X, y, alpha=1e-2)
    >>> run(problem, NewtonCG(cg_tol=None), tol=1e-6).status.value
    'converged'
    """

    cg_max_iter: int = 20
    cg_tol: float | None = 1e-2
    preconditioner: Name | Factory = "none"
    subsample: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("cg_max_iter", self.cg_max_iter, "at least 1")
        if self.cg_tol is not None and not 0 < self.cg_tol < 1:
            raise ValueError(f"cg_tol must lie between 0 and 1 or be None, got {self.cg_tol}")
        check_preconditioner(self.preconditioner, self.subsample)

    def iterates(
        self, problem: Problem, W0: Array | None, state: State | None = None
    ) -> Iterator[Iterate]:
        """Yield the start, then one iterate per Newton step."""
        require_smooth(self, problem)
        point = problem.linearise(start_at(problem, W0 if state is None else state["W"]))
        with np.errstate(over="ignore"):  # `run` refuses a start whose squares overflow
            first_norm = float(np.linalg.norm(point.gradient))
        rounding = problem.design.rounding
        plateau = Plateau(rounding)
        if state is None:
            begun = {"W": point.W, "plateau": plateau.state, "norm": first_norm, "base": None}
            yield measured_at(point, state=begun, step=0.0, cg_steps=0.0)
        base = make_preconditioner(
            self.preconditioner, problem, subsample=self.subsample, seed=self.seed
        )
        if state is not None:
            plateau.resume(state["plateau"], point, problem.at)
            first_norm = state["norm"]
            resume_preconditioner(base, state["base"])
        # In single precision a tighter solution of the Newton system would only fit its noise.
        tightest = 1e-2 if problem.design.is_single else 1e-8
        while True:
            base.refresh(point.curvature)
            norm = float(np.linalg.norm(point.gradient))
            forcing = self.cg_tol or float(
                np.clip(np.sqrt(norm / max(first_norm, 1e-300)), tightest, 0.1)
            )
            inner = conjugate_gradients(
                point.hessian_product, -point.gradient, base, self.cg_max_iter, forcing
            )
            new, length = search(
                problem.linearise, point, inner.direction, rule="armijo", rounding=rounding
            )
            point = point if new is None else new
            stalled = plateau(point, new is not None)
            yield measured_at(
                plateau.best if stalled else point,
                stalled=stalled,
                inner_residuals=inner.residuals,
                state={
                    "W": point.W,
                    "plateau": plateau.state,
                    "norm": first_norm,
                    "base": state_of(base),
                },
                step=length,
                cg_steps=float(len(inner.residuals)),
            )


class Inner(NamedTuple):
    """CG's solution and its relative residuals after each step."""

    direction: Array
    residuals: tuple[float, ...]


def conjugate_gradients(
    product: Callable[[Array], Array], rhs: Array, base: Preconditioner, most: int, tol: float
) -> Inner:
    """Preconditioned CG from zero; any number of steps gives a descent direction."""
    D, residual = np.zeros_like(rhs), rhs.copy()
    scale = max(float(np.linalg.norm(rhs)), 1e-300)
    residuals: list[float] = []
    preconditioned = base.apply(residual)
    direction = preconditioned.copy()
    energy = float(np.vdot(residual, preconditioned))
    for _ in range(most):
        image = product(direction)
        curvature = float(np.vdot(direction, image))
        if curvature <= 0 or energy <= 0:
            break  # rounding, or a direction without curvature: keep D as it is
        step = energy / curvature
        D += step * direction
        residual -= step * image
        residuals.append(float(np.linalg.norm(residual)) / scale)
        if residuals[-1] <= tol:
            break
        preconditioned = base.apply(residual)
        energy, energy_old = float(np.vdot(residual, preconditioned)), energy
        direction = preconditioned + (energy / energy_old) * direction
    if not residuals:
        D = base.apply(rhs)
    return Inner(D, tuple(residuals))
