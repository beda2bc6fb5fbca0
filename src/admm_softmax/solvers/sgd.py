"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count, check_real
from admm_softmax._parallel import use_threads
from admm_softmax.design import Sample
from admm_softmax.kernels import rows
from admm_softmax.problem import Problem
from admm_softmax.solvers.base import (
    Chainable,
    Iterate,
    require_smooth,
    start_at,
    unmeasured,
)
from admm_softmax.solvers.preconditioner import (
    Factory,
    Name,
    check_preconditioner,
    make_preconditioner,
)
from admm_softmax.solvers.state import State

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
    """Mini-batch steps with (Nesterov) momentum; one iterate per epoch.

    Each step takes a batch and the whole penalty ::

        G = ∇F at W (at W + μV with Nesterov), the loss estimated on the batch
        V = μ V − η P⁻¹ G
        W = W + V

    learning_rate : η at the start. The paper's: 0.1 (MNIST), 0.01 (CIFAR-10).
    batch_size : rows per step at most, in batches of about equal size; the paper's 300. With
        all rows in one batch this is (accelerated) gradient descent.
    momentum, nesterov : μ in [0, 1); the paper's 0.9, plain.
    schedule, decay : "constant", "inverse" η/(1+δ·epoch), "sqrt" η/√(1+δ·epoch), "cosine"
        (to zero after 1/δ epochs), or a function from epochs to a factor.
    preconditioner : "none" is the paper; "jacobi" and "gram" divide by ½XᵀΩX + αLᵀL or
        its diagonal, which bounds the Hessian, so that η = 1 is safe for full batches.
    subsample : number of rows in the Gram matrix; None takes all.
    restart : set V to zero whenever it points uphill (O'Donoghue & Candès, 2015). For full
        batches, whose momentum may then be close to 1.
    seed : of the shuffling. The same seed gives the same iterates.

    An epoch is one pass (with "gram" and fewer rows than columns, two more per step).
    `run` evaluates the iterates, and does not count the time for it.

    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import SGD, Problem, run
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = Problem.of(X, y, alpha=1e-2)
    >>> result = run(problem, SGD(0.01, batch_size=30), max_iter=20, tol=0)
    >>> bool(result.history["objective"][-1] < result.history["objective"][0])
    True
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

    def iterates(
        self, problem: Problem, W0: Array | None, state: State | None = None
    ) -> Iterator[Iterate]:
        """Yield the start, then W after every epoch."""
        require_smooth(self, problem)
        random = np.random.default_rng(self.seed)
        if state is None:
            W = start_at(problem, W0)
            state = _state(W, np.zeros_like(W), 0, random)
            yield unmeasured(W, state=state, learning_rate=self._rate(0.0))
        W, V, epoch = state["W"], state["V"], state["epoch"]
        random.bit_generator.state = state["random"]
        base = make_preconditioner(
            self.preconditioner, problem, subsample=self.subsample, seed=self.seed
        )
        base.refresh(LARGEST_CURVATURE)
        n = problem.design.count(problem.weights)
        batches = -(-n // self.batch_size)
        while True:
            for b, gradient in enumerate(self._gradients(problem, n, batches, random)):
                ahead = W + self.momentum * V if self.nesterov else W
                G = gradient(ahead)
                V = self.momentum * V - self._rate(epoch + b / batches) * base.apply(G)
                W = W + V
                if self.restart and float(np.vdot(G, V)) > 0:
                    V = np.zeros_like(V)
            epoch += 1
            now = _state(W, V, epoch, random)
            yield unmeasured(W, state=now, learning_rate=self._rate(epoch))

    @staticmethod
    def _gradients(
        problem: Problem, n: int, batches: int, random: np.random.Generator
    ) -> Iterator[Callable[[Array], Array]]:
        """Estimates of ∇F, one per batch; ∇F itself where one batch holds all rows."""
        if batches == 1:
            yield lambda W: problem.at(W).gradient
            return
        weights = problem.weights
        for batch in problem.design.batches(batches, random, weights, problem.labels, weights):
            yield partial(batch_gradient, problem, batch, n)

    def _rate(self, epoch: float) -> float:
        if isinstance(self.schedule, str):
            return self.learning_rate * SCHEDULES[self.schedule](epoch, self.decay)
        return self.learning_rate * self.schedule(epoch)


def _state(W: Array, V: Array, epoch: int, random: np.random.Generator) -> State:
    return {"W": W, "V": V, "epoch": epoch, "random": random.bit_generator.state}


def batch_gradient(problem: Problem, batch: Sample, n: int, W: Array) -> Array:
    """An unbiased estimate of ∇F(W): the loss on a batch instead of all n rows.

    The sum over a batch of b of the n rows that have weight is multiplied by n / b.
    """
    with use_threads(1):  # a few hundred rows are done before other threads wake up
        product = batch.design.fold(W, rows.gradient, batch.rows).product
    return product * (n / batch.design.n_rows) + problem.penalty.gradient(W)
