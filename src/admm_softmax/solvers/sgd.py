"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count, check_real
from admm_softmax.kernels import rows
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import Chainable, Iterate, start_at, unmeasured
from admm_softmax.solvers.preconditioner import (
    Factory,
    Name,
    Preconditioner,
    check_preconditioner,
    make_preconditioner,
)

Schedule: TypeAlias = Literal["constant", "inverse", "sqrt", "cosine"] | Callable[[float], float]

#: Factor on the learning rate after `epoch` epochs (fractions count), with `decay` δ.
SCHEDULES: dict[str, Callable[[float, float], float]] = {
    "constant": lambda epoch, decay: 1.0,
    "inverse": lambda epoch, decay: 1.0 / (1.0 + decay * epoch),
    "sqrt": lambda epoch, decay: 1.0 / float(np.sqrt(1.0 + decay * epoch)),
    "cosine": lambda epoch, decay: 0.5 * (1.0 + float(np.cos(np.pi * min(1.0, decay * epoch)))),
}
#: The softmax Hessian is at most ½ (Böhning, 1992): with this κ the Gram matrix bounds it.
LARGEST_CURVATURE = 0.5


@dataclass(frozen=True)
class SGD(Chainable):
    """Mini-batch steps with (Nesterov) momentum; one iterate an epoch.

    Each step takes a batch and the whole penalty ::

        G = ∇F at W (at W + μV with Nesterov), the loss estimated on the batch
        V = μ V − η P⁻¹ G
        W = W + V

    learning_rate : η at the start. The paper's: 0.1 (MNIST), 0.01 (CIFAR-10).
    batch_size : rows a step at most, evenly cut; the paper's 300. As many rows as there
        are, or more, make it (accelerated) gradient descent.
    momentum, nesterov : μ in [0, 1); the paper's 0.9, plain.
    schedule, decay : "constant", "inverse" η/(1+δ·epoch), "sqrt" η/√(1+δ·epoch), "cosine"
        (to zero after 1/δ epochs), or a function from epochs to a factor.
    preconditioner : "none" is the paper; "jacobi" and "gram" divide by ½XᵀΩX + αLᵀL or
        its diagonal, which bounds the Hessian, so that η = 1 is safe for full batches.
    subsample : rows that make the Gram matrix; None takes all.
    restart : forget V whenever it points uphill (O'Donoghue & Candès, 2015). For full
        batches, whose momentum may then be close to 1.
    seed : of the shuffling. The same seed gives the same iterates.

    An epoch is one pass (with "gram" and fewer rows than columns, two more a step).
    Iterates are measured by `run`, off the clock.
    """

    learning_rate: float = 0.1
    batch_size: int = 300
    momentum: float = 0.9
    nesterov: bool = False
    schedule: Schedule = "constant"
    decay: float = 0.1
    preconditioner: Name | Factory = "none"
    subsample: int | None = None
    restart: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_real("learning_rate", self.learning_rate, "positive", above=0.0)
        check_count("batch_size", self.batch_size, "at least 1")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1), got {self.momentum}")
        known = isinstance(self.schedule, str) and self.schedule in SCHEDULES
        if not known and not callable(self.schedule):
            raise ValueError(
                f"schedule must be one of {sorted(SCHEDULES)} or a function, got {self.schedule!r}"
            )
        if not self.decay >= 0:
            raise ValueError(f"decay must be ≥ 0, got {self.decay}")
        check_preconditioner(self.preconditioner, self.subsample)

    def iterates(self, problem: Problem, W0: Array | None) -> Iterator[Iterate]:
        """Yield W after every epoch."""
        before = problem.design.reads
        W = start_at(problem, W0)
        V = np.zeros_like(W)
        base = make_preconditioner(
            self.preconditioner, problem, subsample=self.subsample, seed=self.seed
        )
        base.refresh(LARGEST_CURVATURE)
        passes = problem.design.reads - before
        random = np.random.default_rng(self.seed)
        epoch = 0
        while True:
            before = problem.design.reads
            W, V = self._epoch(problem, W, V, base, random, epoch)
            epoch += 1
            passes += problem.design.reads - before
            yield unmeasured(W, round(passes, 9), learning_rate=self._rate(epoch))

    def _epoch(
        self,
        problem: Problem,
        W: Array,
        V: Array,
        base: Preconditioner,
        random: np.random.Generator,
        epoch: int,
    ) -> tuple[Array, Array]:
        present = np.flatnonzero(problem.weights)  # a row of weight zero is none
        n = len(present)
        batches = -(-n // self.batch_size)
        order = random.permutation(present) if batches > 1 else None
        for b in range(batches):
            ahead = W + self.momentum * V if self.nesterov else W
            if order is None:
                G = problem.at(ahead).gradient
            else:
                batch = order[b * n // batches : (b + 1) * n // batches]
                G = _batch_gradient(problem, ahead, np.sort(batch), n)
            V = self.momentum * V - self._rate(epoch + b / batches) * base.apply(G)
            W = W + V
            if self.restart and float(np.vdot(G, V)) > 0:
                V = np.zeros_like(V)
        return W, V

    def _rate(self, epoch: float) -> float:
        if isinstance(self.schedule, str):
            return self.learning_rate * SCHEDULES[self.schedule](epoch, self.decay)
        return self.learning_rate * self.schedule(epoch)


def _batch_gradient(problem: Problem, W: Array, indices: Array, n: int) -> Array:
    """An unbiased estimate of ∇F(W) from some of n rows: the loss is weighed by n / batch."""
    weights = problem.weights[indices] * (n / len(indices))
    batch = problem.design.take(indices)
    product = batch.fold(W, rows.gradient, (problem.labels[indices], weights)).product
    return product + problem.penalty.gradient(W)
