"""L-BFGS for many targets at once: one pass over X serves a step of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.design import Design
from admm_softmax.kernels.targets import kernel_of
from admm_softmax.kernels.thresholds import TARGET_COLUMNS
from admm_softmax.problem import Problem
from admm_softmax.solvers import Status
from admm_softmax.solvers.line_search import C1
from admm_softmax.targets.placed import AnyTarget, state_on
from admm_softmax.targets.preconditioner import SharedInverse

#: Rounds end, and targets that have converged make room for others, when fewer than this share
#: of the columns is still moving.
REFILLED_BELOW = 0.6
#: Bytes per row and column of a pass: the labels in single precision.
STATE_BYTES = 4
#: A pass leaves out targets that have converged when this share or less still moves.
COMPACTED_BELOW = 0.8
#: Pairs of steps and changes of the gradient that each target keeps.
MEMORY = 10
#: The most trials of a step. They are cheaper than a line search's: the pass is made for the other
#: targets as well.
MOST_BACKTRACKS = 20


@dataclass(frozen=True)
class Found:
    """The solution of one target: W (d × columns), and how it was found."""

    W: Array
    status: Status
    n_iter: int
    objective: float
    gradient_norm: float


def minimise(
    problem: Problem,
    targets: Sequence[AnyTarget],
    alphas: Sequence[float],
    *,
    starts: Sequence[Array | None] | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    memory: int | None = None,
) -> list[Found]:
    """Minimise F of every target t, with its own α.

    ::

        Fₜ(Wₜ) = (1/Sₜ) Σᵢ sᵢₜ [ logsumexp(xᵢWₜ) − cᵢₜ·xᵢWₜ ] + (αₜ/2) ‖L Wₜ‖²

    A target of two classes has one column w, which stands for Wₜ = (−w/2, w/2), so that its
    penalty is (αₜ/4) ‖L w‖². Each target has its own L-BFGS, preconditioned by the Gram matrix
    of all rows. A pass evaluates the next trial step of every target that still moves.

    problem : rows, and the penalty's L; its labels are not used
    starts : W to start from; None for zeros
    tol : bound on max|∇Fₜ|
    memory : bytes for the labels of the targets in a pass
    """
    inverse = SharedInverse(problem)
    found: list[Found | None] = [None] * len(targets)
    starts = starts or [None] * len(targets)
    for n_classes in sorted({target.n_classes for target in targets}):
        waiting = [t for t, target in enumerate(targets) if target.n_classes == n_classes]
        width = targets[waiting[0]].columns
        capacity = capacity_of(problem.design, width, memory)
        batch = Batch.empty(problem, inverse, n_classes, tol, max_iter)
        while waiting or len(batch.numbers):
            room = capacity - len(batch.numbers)
            entering, waiting = waiting[:room], waiting[room:]
            batch = batch.with_more(
                entering,
                [targets[t] for t in entering],
                np.array([alphas[t] for t in entering]),
                [starts[t] for t in entering],
            )
            least = REFILLED_BELOW * len(batch.numbers) if waiting else 0
            batch, done = batch.run_until(least)
            for t, each in done.items():
                found[t] = each
    return [each for each in found if each is not None]


def capacity_of(design: Design, width: int, memory: int | None) -> int:
    """How many targets share a pass."""
    columns = TARGET_COLUMNS
    if memory is not None:
        columns = min(columns, memory // (STATE_BYTES * design.n_rows))
    return max(1, columns // width)


@dataclass
class Batch:
    """Targets of one number of classes that move together, each with its own L-BFGS.

    Arrays with columns have `width` of them per target, one target after the other; those of
    one number per target have length T. A pair (s, y) that a target does not have is zero.
    """

    problem: Problem
    inverse: SharedInverse
    n_classes: int
    tol: float
    max_iter: int
    numbers: list[int]
    targets: list[AnyTarget]
    total: Array  # Sₜ
    strength: Array  # the factor of ‖L w‖²/2
    W: Array
    #: What each pass begins with: the trial points, and the lengths of their steps. At the
    #: start of a target its direction is zero.
    direction: Array
    length: Array
    objective: Array
    gradient: Array
    curvature: Array
    slope: Array
    steps: Any
    trials: Any
    S: Array  # memory × d × columns
    Y: Array
    inner: Array  # memory × T: 1 / sᵀy, 0 where there is no pair
    newest: int = 0  # the place of the newest pair; older ones are before it, cyclically

    @classmethod
    def empty(
        cls, problem: Problem, inverse: SharedInverse, n_classes: int, tol: float, max_iter: int
    ) -> Batch:
        """No targets yet."""
        d = problem.design.n_features
        none, matrix, pairs = np.zeros(0), np.zeros((d, 0)), np.zeros((MEMORY, d, 0))
        whole = np.zeros(0, np.intp)
        return cls(
            problem, inverse, n_classes, tol, max_iter, [], [], none, none, matrix, matrix, none,
            none, matrix, none, none, whole, whole, pairs, pairs, np.zeros((MEMORY, 0)),
        )  # fmt: skip

    @property
    def width(self) -> int:
        """Columns per target."""
        return 1 if self.n_classes == 2 else self.n_classes

    def with_more(
        self,
        numbers: list[int],
        targets: list[AnyTarget],
        alphas: Array,
        starts: list[Array | None],
    ) -> Batch:
        """The batch with further targets behind the others."""
        T, d = len(numbers), self.problem.design.n_features
        zeros = np.zeros((d, self.width))
        W = np.concatenate([zeros if W is None else W for W in starts] or [zeros[:, :0]], axis=1)
        factor = 0.5 if self.n_classes == 2 else 1.0
        blank, pairs = np.zeros_like(W), np.zeros((MEMORY, *W.shape))

        def behind(old: Array, new: Any) -> Array:
            return np.concatenate([old, new], axis=-1)

        return Batch(
            self.problem, self.inverse, self.n_classes, self.tol, self.max_iter,
            self.numbers + numbers, self.targets + targets,
            behind(self.total, np.array([target.total_weight for target in targets])),
            behind(self.strength, factor * alphas),
            behind(self.W, W), behind(self.direction, blank), behind(self.length, np.ones(T)),
            behind(self.objective, np.full(T, np.inf)), behind(self.gradient, blank),
            behind(self.curvature, np.zeros(T)), behind(self.slope, np.zeros(T)),
            behind(self.steps, np.full(T, -1)), behind(self.trials, np.zeros(T, np.intp)),
            behind(self.S, pairs), behind(self.Y, pairs), behind(self.inner, np.zeros((MEMORY, T))),
            self.newest,
        )  # fmt: skip

    def only(self, kept: Any) -> Batch:
        """Some of the targets."""
        columns = np.repeat(kept, self.width)
        places = np.flatnonzero(kept)
        return Batch(
            self.problem, self.inverse, self.n_classes, self.tol, self.max_iter,
            [self.numbers[i] for i in places], [self.targets[i] for i in places],
            self.total[kept], self.strength[kept], self.W[:, columns], self.direction[:, columns],
            self.length[kept], self.objective[kept], self.gradient[:, columns],
            self.curvature[kept], self.slope[kept], self.steps[kept], self.trials[kept],
            self.S[..., columns], self.Y[..., columns], self.inner[:, kept],
            self.newest,
        )  # fmt: skip

    # ---- steps ----

    def run_until(self, least: float) -> tuple[Batch, dict[int, Found]]:
        """Take steps until at most `least` targets move; those that stopped are returned."""
        design = self.problem.design
        state = state_on(design, self.targets)
        kernel = kernel_of(len(self.targets), self.n_classes)
        done: dict[int, Found] = {}
        batch, moving = self, np.ones(len(self.numbers), dtype=bool)
        while moving.sum() > least:
            if moving.sum() <= COMPACTED_BELOW * len(moving):
                # The labels of targets that stopped go: a copy of n × columns numbers.
                state = design.map_rows(_picking(np.repeat(moving, self.width)), state)
                batch, moving = batch.only(moving), moving[moving]
                kernel = kernel_of(len(batch.targets), self.n_classes)
            trial = batch.W + batch._wide(batch.length) * batch.direction
            fold = design.fold(trial, kernel, (state,))
            stopped = batch._advance(trial, fold.product, fold.sums.values) & moving
            for i in np.flatnonzero(stopped):
                done[batch.numbers[i]] = batch._found(int(i))
            moving &= ~stopped
            batch.direction[:, np.repeat(~moving, self.width)] = 0.0
        return batch.only(moving), done

    def _advance(self, trial: Array, product: Array, sums: Array) -> Any:
        """Judge the trial points, go on from those that are good; which targets stop."""
        LtL, T = self.problem.penalty.quadratic.LtL, len(self.numbers)
        pull = self._wide(self.strength) * (LtL @ trial)
        gradient = product / self._wide(self.total) + pull
        loss, curvature = sums[:T] / self.total, sums[T : 2 * T] / self.total
        objective = loss + 0.5 * self._dots(trial, pull)
        good = self._is_good(objective, gradient)
        self._remember(good, trial, gradient)
        columns = np.repeat(good, self.width)
        self.W[:, columns], self.gradient[:, columns] = trial[:, columns], gradient[:, columns]
        self.objective = np.where(good, objective, self.objective)
        self.curvature = np.where(good, curvature, self.curvature)
        self.steps = self.steps + good
        self.trials = np.where(good, 0, self.trials + 1)
        spoilt = self.trials >= MOST_BACKTRACKS
        has_pairs = self.inner.any(axis=0)
        # Rounding has spoilt the pairs: forget them and try once more.
        self.inner[:, spoilt & has_pairs] = 0.0
        self.trials[spoilt & has_pairs] = 0
        turned = good | (spoilt & has_pairs)
        self._turn(turned)
        return self._stops(spoilt & ~has_pairs)

    def _is_good(self, objective: Array, gradient: Array) -> Any:
        """Whether a step lowers F enough (Armijo), or as far as rounding lets one see.

        Close to the solution differences of F are smaller than its rounding; there the slope at
        the end decides (Hager and Zhang, 2005, SIAM J. Optim. 16, "approximate Wolfe").
        """
        slack = 10 * self.problem.design.rounding * np.abs(self.objective)
        with np.errstate(invalid="ignore"):
            enough = objective <= self.objective + C1 * self.length * self.slope
            ends = self._dots(gradient, self.direction)
            flat = (objective <= self.objective + slack) & (ends <= (2 * C1 - 1) * self.slope)
            bend = objective - self.objective - self.length * self.slope
            good = (self.steps < 0) | enough | flat
            # The minimum of the parabola through both values and the slope.
            shorter = -self.slope * self.length / (2 * bend)
        shorter = np.clip(np.nan_to_num(shorter, nan=0.5), 0.1, 0.5) * self.length
        self.length = np.where(good, 1.0, shorter)
        return good

    def _remember(self, good: Any, trial: Array, gradient: Array) -> None:
        """The pairs of the steps just taken; the oldest ones go."""
        s, y = trial - self.W, gradient - self.gradient
        product = self._dots(s, y)
        sizes = np.sqrt(self._dots(s, s) * self._dots(y, y))
        new = good & (self.steps >= 0) & (product > 1e-14 * sizes)
        if not new.any():
            return
        # The oldest pair of every target goes, also of those that have no new one: few.
        self.newest = (self.newest + 1) % MEMORY
        self.S[self.newest], self.Y[self.newest] = s, y
        with np.errstate(divide="ignore"):
            self.inner[self.newest] = np.where(new, 1.0 / product, 0.0)

    def _turn(self, turned: Any) -> None:
        """New directions −B⁻¹∇F, by the two-loop recursion, where there is a new point."""
        if not turned.any():
            return
        q = self.gradient.copy()
        by_age = (self.newest + 1 + np.arange(MEMORY)) % MEMORY
        used = [i for i in by_age if self.inner[i].any()]
        multipliers = {}
        for i in used[::-1]:
            multipliers[i] = self.inner[i] * self._dots(self.S[i], q)
            q -= self._wide(multipliers[i]) * self.Y[i]
        q = self._scaled_inverse(q)
        for i in used:
            back = self.inner[i] * self._dots(self.Y[i], q)
            q += self._wide(multipliers[i] - back) * self.S[i]
        columns = np.repeat(turned, self.width)
        self.direction[:, columns] = -q[:, columns]
        slope = self._dots(self.direction, self.gradient)
        self.slope = np.where(turned, slope, self.slope)
        self.length = np.where(turned, 1.0, self.length)

    def _scaled_inverse(self, q: Array) -> Array:
        """H⁻¹q for the curvature of each target, times sᵀy / yᵀH⁻¹y of the newest pair."""
        kappa, strength = self._wide(self.curvature), self._wide(self.strength)
        if not self.inner[self.newest].any():
            return self.inverse(q, kappa, strength)
        both = np.concatenate([q, self.Y[self.newest]], axis=1)
        solved = self.inverse(both, np.tile(kappa, 2), np.tile(strength, 2))
        q, y = np.split(solved, 2, axis=1)
        size = self.inner[self.newest] * self._dots(self.Y[self.newest], y)
        with np.errstate(divide="ignore"):
            return q * self._wide(np.where(size > 0, 1.0 / size, 1.0))

    def _stops(self, stuck: Any) -> Any:
        """Which targets have converged, or cannot go on."""
        self.norm = np.abs(self.gradient).max(axis=0).reshape(-1, self.width).max(axis=1)
        self.stuck = stuck
        lost = ~np.isfinite(self.objective)
        return (self.norm <= self.tol) | stuck | (self.steps >= self.max_iter) | lost

    def _found(self, i: int) -> Found:
        columns = slice(i * self.width, (i + 1) * self.width)
        status = Status.CONVERGED
        if not np.isfinite(self.objective[i]):
            status = Status.DIVERGED
        elif self.norm[i] > self.tol:
            status = Status.STALLED if self.stuck[i] else Status.ITERATION_LIMIT
        return Found(
            self.W[:, columns].copy(),
            status,
            int(self.steps[i]),
            float(self.objective[i]),
            float(self.norm[i]),
        )

    def _dots(self, A: Array, B: Array) -> Array:
        """The inner product of each target's columns."""
        return np.asarray(np.einsum("ij,ij->j", A, B).reshape(-1, self.width).sum(axis=1))

    def _wide(self, numbers: Array) -> Array:
        """One number per target as one per column."""
        return np.repeat(numbers, self.width)


def _picking(columns: Any) -> Any:
    return lambda C: C[:, columns].copy()
