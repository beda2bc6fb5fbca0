"""Newton's method with conjugate gradients inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Chainable, Iterate, measured_at, start_at
from admm_softmax.solvers.line_search import Plateau, search
from admm_softmax.solvers.preconditioner import (
    Factory,
    Name,
    Preconditioner,
    check_preconditioner,
    make_preconditioner,
)


@dataclass(frozen=True)
class NewtonCG(Chainable):
    """W⁺ = W + tD, where CG solves ∇²F(W) D = −∇F(W) to a tolerance, and t by Armijo.

    cg_max_iter, cg_tol : CG stops at so many steps, or when its residual is cg_tol times
        the gradient's norm. The paper's: 20 and 1e-2. cg_tol=None lets it shrink as
        √‖∇F‖ does, for superlinear convergence (Eisenstat & Walker, 1996).
    preconditioner : "none" is the paper; "jacobi" and "gram" are κ XᵀΩX + α LᵀL or its
        diagonal, κ the mean curvature at W, refactored when κ has halved.
    subsample : rows, drawn at random, that make the Gram matrix; None takes all.
    seed : of the subsample.

    The first iterate is the start itself. A further one costs a read of X a CG step and
    a trial step. Its `inner_residuals` are CG's relative residuals, step by step.
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

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield the start, then one iterate a Newton step."""
        before = problem.design.reads
        point = problem.linearise(start_at(problem, W0))
        yield measured_at(point, problem.design.reads - before, step=0.0, cg_steps=0.0)
        base = make_preconditioner(
            self.preconditioner, problem, subsample=self.subsample, seed=self.seed
        )
        plateau = Plateau(problem.design.dtype.itemsize)
        # In float32 a tighter solution of the Newton system would be one of its noise.
        tightest = 1e-2 if problem.design.dtype.itemsize == 4 else 1e-8
        first_norm = float(np.linalg.norm(point.gradient))
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
                problem.linearise,
                point,
                inner.direction,
                rule="armijo",
                itemsize=problem.design.dtype.itemsize,
            )
            point = point if new is None else new
            stalled = plateau(point, new is not None)
            yield measured_at(
                plateau.best if stalled else point,
                problem.design.reads - before,
                stalled=stalled,
                inner_residuals=inner.residuals,
                step=length,
                cg_steps=float(len(inner.residuals)),
            )


class Inner(NamedTuple):
    """CG's answer and its relative residuals after each step."""

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
            break  # rounding, or a direction without curvature: what is there must do
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
