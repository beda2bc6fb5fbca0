"""ADMM-Softmax (Wu Fung, Tyrväinen, Ruthotto, Haber, arXiv 1901.09450)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count
from admm_softmax.kernels import rows
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Chainable, Iterate, gradient_norm, start_at
from admm_softmax.solvers.least_squares import Strategy, WStep, as_strategy, shared_step
from admm_softmax.solvers.rho import Residuals, check_rho, first_rho, next_rho


@dataclass(frozen=True)
class ADMM(Chainable):
    """Alternating directions on  min F(W)  as  min Σ wᵢ f(zᵢ) + penalty(W)  s.t.  Z = XW.

    One iteration, with U scaled by ρ and Ω = diag(w), w = s/S ::

        W-step   (ρ XᵀΩX + α LᵀL) W = ρ XᵀΩ(Z + U) + α LᵀL W_ref
        relax    Ẑ = γ XW + (1−γ) Z
        z-step   zᵢ = argmin logsumexp(z) − cᵢ·z + (ρ/2) ‖z − (ẑᵢ − uᵢ)‖²
        dual     U = U + Z − Ẑ

    With the defaults and a number for `rho` this is the paper's Algorithm 1, from
    W₀ = 0, Z = XW₀, U = 0. The paper's ρ is ours divided by the number of rows.

    rho : penalty parameter ρ > 0, or "auto": follow the mean curvature of the loss.
    relaxation : γ in (0, 2); 1 is the paper, 1.5 to 1.8 is usually faster.
    adaptive_rho : balance the primal and dual residuals by changing ρ.
    start : "paper" is W₀ = 0 unless given, Z = XW₀, U = 0. "smart" gives a W₀ the dual
        U = (C − P(XW₀))/ρ that a solution has, so that a warm start stays warm; without
        one it begins at the mean of W_ref over the classes, the part of W that no loss
        can see and that Algorithm 1 therefore approaches in steps of order α/ρ.
    least_squares : "auto", "cholesky", "qr", "pcg", "woodbury", or a strategy object.
    eps_abs, eps_rel : tolerances of Boyd's test on both residuals; both 0 turns it off.
    gradient_every : ∇F, and with it `tol`, is looked at first and every so many iterations. The
        algorithm has no use for it, and its product with Xᵀ is a third of an iteration.
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

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield W₁, W₂, …; after the Gram matrix each costs one read of X."""
        before = problem.design.reads
        state = self._start(problem, W0)
        rho = first_rho(self.rho, problem)
        step = shared_step(problem, as_strategy(self.least_squares))
        pull = problem.penalty.pull(problem.n_classes)
        iteration = 0
        while True:
            iteration += 1
            if step.rho != rho:  # at first, when ρ changed, or when another solver used it
                step.factor(rho)
            W, left_over = self._w_step(problem, step, state, rho, pull)
            looked_at = (iteration - 1) % self.gradient_every == 0
            outcome = self._pass(problem, W, state, rho, looked_at)
            state, residuals = self._dual_bookkeeping(problem, W, left_over, state, outcome, rho)
            yield _iterate(
                problem, W, outcome, residuals, rho, problem.design.reads - before, iteration
            )
            rho = next_rho(self.rho, self.adaptive_rho, rho, iteration, residuals)

    def _start(self, problem: Problem, W0: Array | None) -> _State:
        d, K = problem.shape
        dual_is_zero = self.start == "paper" or W0 is None
        W = start_at(problem, W0) if W0 is not None or self.start == "smart" else np.zeros((d, K))
        if not W.any():
            return _State(W, np.zeros((problem.design.n_rows, K)), W, W, True)
        fold = problem.design.fold(W, rows.start, (problem.labels, problem.weights))
        A, B = fold.product[:, :K], fold.product[:, K:]
        (Z,) = fold.rows
        return _State(W, Z, np.zeros((d, K)) if dual_is_zero else A, B, dual_is_zero)

    def _w_step(
        self, problem: Problem, step: WStep, state: _State, rho: float, pull: Array
    ) -> tuple[Array, Array | float]:
        solution = step.solve(rho * state.B + state.A + pull, state.W)
        W = solution.W
        if step.corrects:
            kernel = partial(rows.misfit, rho=rho, dual_is_zero=state.dual_is_zero)
            rows_in = (problem.labels, problem.weights, state.Z)
            misfit = problem.design.fold(W, kernel, rows_in).product
            W = W + step.solve(misfit - problem.penalty.gradient(W), W).W
        return W, 0.0 if solution.residual is None else solution.residual

    def _pass(
        self, problem: Problem, W: Array, state: _State, rho: float, with_gradient: bool
    ) -> _Outcome:
        kernel = partial(
            rows.admm,
            rho=rho,
            relaxation=self.relaxation,
            dual_is_zero=state.dual_is_zero,
            with_gradient=with_gradient,
        )
        fold = problem.design.fold(W, kernel, (problem.labels, problem.weights, state.Z))
        K = problem.n_classes
        gradient = fold.product[:, K:] if with_gradient else None
        return _Outcome(fold.rows[0], fold.product[:, :K], gradient, fold.sums)

    def _dual_bookkeeping(
        self,
        problem: Problem,
        W: Array,
        left_over: Array | float,
        state: _State,
        outcome: _Outcome,
        rho: float,
    ) -> tuple[_State, Residuals]:
        """Find B⁺ = XᵀΩZ⁺ from A⁺ = XᵀΩ(C − P(Z⁺)) = ρ XᵀΩU⁺, without a product of its own.

        The dual update under XᵀΩ, and the W-step's own equation for the Gram matrix
        (M = ρB + A, minus what an iterative W-step left over), read ::

            A⁺ = A + ρ (B⁺ − γ XᵀΩXW − (1−γ) B)
            ρ XᵀΩXW = ρB + A − α LᵀL (W − W_ref) − left_over

        so  B⁺ = B + (A⁺ + (γ−1) A − γ (α LᵀL(W − W_ref) + left_over)) / ρ.  An error e
        in B becomes (1−γ) e, so rounding does not build up, and the fixed point is
        ∇F = 0 even where the Gram matrix itself was rounded.
        """
        gamma = self.relaxation
        A, B = outcome.A, state.B
        pull_back = problem.penalty.gradient(W) + left_over
        B_new = B + (A + (gamma - 1.0) * state.A - gamma * pull_back) / rho
        S, n_entries = problem.total_weight, problem.total_weight * problem.n_classes
        primal, size_XW, size_Z = (float(np.sqrt(S * q)) for q in outcome.sums[2:5])
        size_dual = float(np.linalg.norm(A))
        residuals = Residuals(
            primal=primal,
            dual=rho * float(np.linalg.norm(B_new - B)),
            primal_scale=max(size_XW, size_Z),
            dual_scale=size_dual,
            primal_tolerance=np.sqrt(n_entries) * self.eps_abs
            + self.eps_rel * max(size_XW, size_Z),
            dual_tolerance=np.sqrt(W.size) * self.eps_abs + self.eps_rel * size_dual,
            curvature=float(outcome.sums[6]),
        )
        return _State(W, outcome.Z, A, B_new, False), residuals


class _State(NamedTuple):
    """What one iteration hands to the next: W, Z, A = ρ XᵀΩU and B = XᵀΩZ.

    U itself is not kept: it is (C − P(Z))/ρ after any z-step, or zero before the first.
    None of the four depends on ρ, so changing ρ rescales U by itself.
    """

    W: Array
    Z: Array
    A: Array
    B: Array
    dual_is_zero: bool


class _Outcome(NamedTuple):
    """One pass: new Z, A = XᵀΩ(C − P(Z)), maybe the gradient of the loss at W, and the sums."""

    Z: Array
    A: Array
    loss_gradient: Array | None
    sums: Array


def _iterate(
    problem: Problem,
    W: Array,
    outcome: _Outcome,
    residuals: Residuals,
    rho: float,
    passes: float,
    iteration: int,
) -> Iterate:
    loss, accuracy = (float(x) for x in outcome.sums[:2])
    size = float("nan")
    if outcome.loss_gradient is not None:
        size = gradient_norm(outcome.loss_gradient + problem.penalty.gradient(W))
    return Iterate(
        W=W,
        objective=loss + problem.penalty.value(W),
        loss=loss,
        accuracy=accuracy,
        gradient_norm=size,
        passes=passes,
        # Before the second z-step the dual residual says nothing about convergence.
        converged=iteration > 1 and residuals.met(),
        details={
            "primal_residual": residuals.primal,
            "dual_residual": residuals.dual,
            "primal_tolerance": residuals.primal_tolerance,
            "dual_tolerance": residuals.dual_tolerance,
            "rho": rho,
            "newton_steps": float(outcome.sums[5]),
        },
    )
