"""ADMM-Softmax (Wu Fung, Tyrväinen, Ruthotto, Haber, arXiv 1901.09450)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.design import Rows
from admm_softmax.kernels import rows
from admm_softmax.kernels.row_kernel import Sums
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Chainable, Iterate, largest_entry, start_at, unmeasured
from admm_softmax.solvers.least_squares import Strategy, WStep, as_strategy, shared_step
from admm_softmax.solvers.rho import Residuals, check_rho, first_rho, next_rho
from admm_softmax.solvers.split_admm import split_iterates
from admm_softmax.solvers.state import State


@dataclass(frozen=True)
class ADMM(Chainable):
    """Alternating directions on  min F(W)  as  min Σ wᵢ f(zᵢ) + penalty(W)  s.t.  Z = XW.

    One iteration, with U scaled by ρ and Ω = diag(w), w = s/S ::

        W-step   (ρ XᵀΩX + α LᵀL) W = ρ XᵀΩ(Z + U) + α LᵀL W_ref
        relax    Ẑ = γ XW + (1−γ) Z
        z-step   zᵢ = argmin logsumexp(z) − cᵢ·z + (ρ/2) ‖z − (ẑᵢ − uᵢ)‖²
        dual     U = U + Z − Ẑ

    A penalty with kinks has a second split (`split_admm`), and an iterate is then yielded after
    every fifth iteration.

    With the defaults and a number for `rho` this is the paper's Algorithm 1, from
    W₀ = 0, Z = XW₀, U = 0. The paper's ρ is ours divided by the number of rows.

    rho : penalty parameter ρ > 0, or "auto": follow the mean curvature of the loss.
    relaxation : γ in (0, 2); 1 is the paper, 1.5 to 1.8 is usually faster.
    adaptive_rho : balance the primal and dual residuals by changing ρ.
    start : "paper" is W₀ = 0 unless given, Z = XW₀, U = 0. "smart" begins with the dual
        U = (C − P(XW₀))/ρ that a solution has, so that iterations stay near a good W₀;
        without W₀ it begins at the mean of W_ref over the classes, the part of W that the
        loss does not depend on and that Algorithm 1 approaches in steps of order α/ρ only.
    least_squares : "auto", "cholesky", "qr", "pcg", "woodbury", or a strategy object.
    eps_abs, eps_rel : tolerances of Boyd's test on both residuals; both 0 turns it off.
    gradient_every : ∇F is computed, and `tol` tested, at the first iteration and at every
        gradient_every-th after it. ADMM itself does not need ∇F, and its product with Xᵀ is a
        third of the cost of an iteration.

    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import ADMM, Problem, run
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = Problem.of(X, y, alpha=1e-2)
    >>> result = run(problem, ADMM(rho=0.1, relaxation=1.7), max_iter=500, tol=1e-4)
    >>> result.status.value
    'converged'
    """

    rho: float | Literal["auto"] = "auto"
    relaxation: float = 1.0
    adaptive_rho: bool = False
    start: Literal["paper", "smart"] = "paper"
    least_squares: str | Strategy = "auto"
    eps_abs: float = 0.0
    eps_rel: float = 0.0
    gradient_every: int = 3

    def __post_init__(self) -> None:
        check_rho(self.rho)
        if not 0 < self.relaxation < 2:
            raise ValueError(f"relaxation must lie between 0 and 2, got {self.relaxation}")
        if self.start not in ("paper", "smart"):
            raise ValueError(f"start must be 'paper' or 'smart', got {self.start!r}")
        for name in ("eps_abs", "eps_rel"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be ≥ 0, got {getattr(self, name)}")
        as_strategy(self.least_squares)
        check_count("gradient_every", self.gradient_every, "at least 1")

    def prepare(self, problem: Problem) -> WStep | None:
        """The W-step that an iteration uses, and that a solver after this one may use too.

        None under a penalty with kinks: the matrix of both splits is of no use to others.
        """
        if not problem.penalty.is_smooth:
            return None
        return shared_step(problem, as_strategy(self.least_squares))

    def iterates(
        self, problem: Problem, W0: Array | None, state: State | None = None
    ) -> Iterator[Iterate]:
        """Yield W₀, W₁, …; after the Gram matrix each costs one read of X."""
        if not problem.penalty.is_smooth:
            yield from split_iterates(self, problem, W0, state)
            return
        if state is None:
            state = self.first_state(problem, W0)
            yield unmeasured(state["W"], state=state)  # ADMM needs no figures of its start
        iteration, now = state["iteration"], self.variables(problem, state)
        rho = state["rho"] if iteration else first_rho(self.rho, problem)
        step = shared_step(problem, as_strategy(self.least_squares))
        pull = problem.penalty.quadratic.pull(problem.n_classes)
        slope = problem.penalty.gradient
        while True:
            iteration += 1
            if step.rho != rho:  # at first, when ρ changed, or when another solver used it
                step.factor(rho)
            W, left_over = self.w_step(problem, step, now, rho, pull, slope)
            looked_at = (iteration - 1) % self.gradient_every == 0
            outcome = self.pass_over(problem, W, now, rho, looked_at)
            pull_back = slope(W) + left_over
            now, residuals = self.dual_bookkeeping(problem, W, pull_back, now, outcome, rho)
            iterate = _iterate(problem, W, outcome, residuals, rho, iteration)
            rho = next_rho(self.rho, self.adaptive_rho, rho, iteration, residuals)
            yield replace(iterate, state={**now._asdict(), "rho": rho, "iteration": iteration})

    def first_state(self, problem: Problem, W0: Array | None) -> State:
        """The state before the first iteration."""
        dual_is_zero = self.start == "paper" or W0 is None
        at_zero = W0 is None and self.start == "paper"
        W = np.zeros(problem.shape) if at_zero else start_at(problem, W0)
        return {"W": W, "dual_is_zero": dual_is_zero, "iteration": 0}

    def variables(self, problem: Problem, state: State) -> Variables:
        """W, Z and the dual of a state."""
        if state["iteration"]:
            return _resumed(problem, state)
        W = state["W"]
        if state["dual_is_zero"] and not W.any():
            return Variables(W, problem.design.zeros(problem.n_classes), W, W, True)
        begun = Variables.at(problem, W)
        if not state["dual_is_zero"]:
            return begun
        return begun._replace(A=np.zeros(problem.shape), dual_is_zero=True)

    def w_step(
        self,
        problem: Problem,
        step: WStep,
        now: Variables,
        rho: float,
        pull: Array,
        slope: Callable[[Array], Array],
    ) -> tuple[Array, Array | float]:
        """W, and what an iterative strategy left over; `slope` is ∇ of the W-step's penalty."""
        solution = step.solve(rho * now.B + now.A + pull, now.W)
        W = solution.W
        if step.corrects:
            kernel = rows.misfit.bind(rho=rho, dual_is_zero=now.dual_is_zero)
            rows_in = (problem.labels, problem.weights, now.Z)
            misfit = problem.design.fold(W, kernel, rows_in).product
            W = W + step.solve(misfit - slope(W), W).W
        return W, 0.0 if solution.residual is None else solution.residual

    def pass_over(
        self, problem: Problem, W: Array, now: Variables, rho: float, with_gradient: bool
    ) -> Outcome:
        """Relaxation, z-step and dual update of all rows. One read."""
        kernel = rows.admm if with_gradient else rows.admm_without_gradient
        bound = kernel.bind(rho=rho, relaxation=self.relaxation, dual_is_zero=now.dual_is_zero)
        fold = problem.design.fold(W, bound, (problem.labels, problem.weights, now.Z))
        K = problem.n_classes
        gradient = fold.product[:, K:] if with_gradient else None
        return Outcome(fold.new_rows, fold.product[:, :K], gradient, fold.sums)

    def dual_bookkeeping(
        self,
        problem: Problem,
        W: Array,
        pull_back: Array,
        now: Variables,
        outcome: Outcome,
        rho: float,
    ) -> tuple[Variables, Residuals]:
        """Find B⁺ = XᵀΩZ⁺ from A⁺ = XᵀΩ(C − P(Z⁺)) = ρ XᵀΩU⁺, without another product.

        The dual update under XᵀΩ, and the W-step's own equation for the Gram matrix
        (M = ρB + A, minus what an iterative W-step left over), read ::

            A⁺ = A + ρ (B⁺ − γ XᵀΩXW − (1−γ) B)
            ρ XᵀΩXW = ρB + A − pull_back,     pull_back = α LᵀL (W − W_ref) + left_over

        so  B⁺ = B + (A⁺ + (γ−1) A − γ pull_back) / ρ.  An error e in B becomes (1−γ) e, so
        rounding does not build up, and the fixed point is ∇F = 0 even where the Gram matrix
        itself was rounded.
        """
        gamma = self.relaxation
        A, B = outcome.A, now.B
        B_new = B + (A + (gamma - 1.0) * now.A - gamma * pull_back) / rho
        S, n_entries = problem.total_weight, problem.total_weight * problem.n_classes
        sums = outcome.sums
        primal, size_XW, size_Z = (
            float(np.sqrt(S * square)) for square in (sums.gap, sums.size_scores, sums.size_state)
        )
        size_dual = float(np.linalg.norm(A))
        residuals = Residuals(
            primal=primal,
            dual=rho * float(np.linalg.norm(B_new - B)),
            primal_scale=max(size_XW, size_Z),
            dual_scale=size_dual,
            primal_tolerance=np.sqrt(n_entries) * self.eps_abs
            + self.eps_rel * max(size_XW, size_Z),
            dual_tolerance=np.sqrt(W.size) * self.eps_abs + self.eps_rel * size_dual,
            curvature=sums.curvature,
        )
        return Variables(W, outcome.Z, A, B_new, False), residuals


class Variables(NamedTuple):
    """What one iteration hands to the next: W, Z, A = ρ XᵀΩU and B = XᵀΩZ.

    U itself is not kept: it is (C − P(Z))/ρ after any z-step, or zero before the first.
    None of the four depends on ρ, so changing ρ rescales U by itself.
    """

    W: Array
    Z: Rows
    A: Array
    B: Array
    dual_is_zero: bool

    @classmethod
    def at(cls, problem: Problem, W: Array) -> Variables:
        """Z = XW, and the dual U = (C − P(Z))/ρ that a solution has there. One read."""
        K = problem.n_classes
        fold = problem.design.fold(W, rows.start, (problem.labels, problem.weights))
        return cls(W, fold.new_rows, fold.product[:, :K], fold.product[:, K:], False)


def _resumed(problem: Problem, stored: State) -> Variables:
    """The stored state; where Z was too large to store, that of a warm start at W.

    ADMM converges from any Z and U. At W these two are those of a solution, so that the
    iterations go on near it; what they knew about their way is lost.
    """
    if stored["Z"] is None:
        return Variables.at(problem, stored["W"])
    return Variables(**{name: stored[name] for name in Variables._fields})


class Outcome(NamedTuple):
    """One pass: new Z, A = XᵀΩ(C − P(Z)), maybe the gradient of the loss at W, and the sums."""

    Z: Rows
    A: Array
    loss_gradient: Array | None
    sums: Sums


def _iterate(
    problem: Problem,
    W: Array,
    outcome: Outcome,
    residuals: Residuals,
    rho: float,
    iteration: int,
) -> Iterate:
    sums = outcome.sums
    size = float("nan")
    if outcome.loss_gradient is not None:
        size = largest_entry(problem.penalty.optimality(W, outcome.loss_gradient))
    return Iterate(
        W=W,
        objective=sums.loss + problem.penalty.value(W),
        loss=sums.loss,
        accuracy=sums.accuracy,
        gradient_norm=size,
        # Before the second z-step the dual residual says nothing about convergence.
        converged=iteration > 1 and residuals.met(),
        details={
            "primal_residual": residuals.primal,
            "dual_residual": residuals.dual,
            "primal_tolerance": residuals.primal_tolerance,
            "dual_tolerance": residuals.dual_tolerance,
            "rho": rho,
            "newton_steps": sums.newton_steps,
        },
    )
