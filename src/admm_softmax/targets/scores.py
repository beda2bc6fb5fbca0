"""Loss and accuracy of many targets at given W."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.kernels.targets import kernel_of
from admm_softmax.problem import Problem
from admm_softmax.targets.minimise import capacity_of
from admm_softmax.targets.placed import AnyTarget, state_on


class Scores(NamedTuple):
    """Mean loss and accuracy of each target; NaN where none of its rows has weight."""

    loss: Array
    accuracy: Array


def evaluate(
    problem: Problem, targets: Sequence[AnyTarget], Ws: Sequence[Array], memory: int | None = None
) -> Scores:
    """The mean loss and the accuracy of every target at its W, without penalty."""
    design = problem.design
    loss, accuracy = np.full((2, len(targets)), np.nan)
    for n_classes in sorted({target.n_classes for target in targets}):
        own = [t for t, target in enumerate(targets) if target.n_classes == n_classes]
        size = capacity_of(design, targets[own[0]].columns, memory)
        for part in (own[i : i + size] for i in range(0, len(own), size)):
            some = [targets[t] for t in part]
            state = state_on(design, some)
            W = np.concatenate([Ws[t] for t in part], axis=1)
            sums = design.fold(W, kernel_of(len(part), n_classes), (state,)).sums.values
            total = np.array([target.total_weight for target in some])
            with np.errstate(invalid="ignore"):
                loss[part] = sums[: len(part)] / total
                accuracy[part] = sums[2 * len(part) :] / total
    return Scores(loss, accuracy)
