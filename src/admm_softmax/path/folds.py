"""Parts of a problem for cross-validation, on one design and one Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from admm_softmax.problem import Problem


def split(problem: Problem, pairs: Sequence[tuple[Any, Any]]) -> list[Problem]:
    """The problem on the rows to fit of every fold, given with those to hold out, by index.

    All keep all rows of X, with weight zero where they have no part, so that they can go
    through X together. Where the rows held out are all that is missing, the Gram matrix is
    the whole's less theirs.
    """
    training = [problem.on(np.asarray(chosen)) for chosen, _ in pairs]
    held_out = [problem.on(np.asarray(others)) for _, others in pairs]
    if not all(map(partial(_is_split, problem), training, held_out)):
        return training
    grams = _Grams(problem, held_out)
    return [replace(fold, make_gram=partial(grams, i)) for i, fold in enumerate(training)]


def _is_split(problem: Problem, training: Problem, held_out: Problem) -> bool:
    """Whether every row is either fitted on or held out."""
    either = (training.weights > 0) ^ (held_out.weights > 0)
    return bool(either[problem.weights > 0].all())


class _Grams:
    """Gram matrices by down-dating: each row is multiplied once, whatever the number of folds.

    With weights normalised on each set of rows and shares s of the whole's weight ::

        G = Σ_f s_f G_f        where every row is held out once
        (1 − s_f) G_without_f = G − s_f G_f
    """

    def __init__(self, problem: Problem, held_out: Sequence[Problem]) -> None:
        self.problem, self.held_out = problem, held_out
        self.made: dict[Any, list[Any]] = {}

    def __call__(self, number: int, dtype: Any) -> Any:
        """The Gram matrix of all rows but those of one fold."""
        dtype = np.dtype(dtype)
        if dtype not in self.made:
            self.made[dtype] = self._make(dtype)
        return self.made[dtype][number]

    def _make(self, dtype: Any) -> list[Any]:
        parts = [self._part(fold, dtype) for fold in self.held_out]
        times = sum((fold.weights > 0).astype(int) for fold in self.held_out)
        if "gram" not in self.problem.cache and np.array_equal(times, self.problem.weights > 0):
            self.problem.cache["gram"] = sum(parts[1:], start=parts[0].copy())
        whole = self.problem.gram(dtype)
        for fold, part in zip(self.held_out, parts, strict=True):
            np.subtract(whole, part, out=part, casting="same_kind")
            left = 1.0 - fold.total_weight / self.problem.total_weight
            np.divide(part, left, out=part, casting="same_kind")
        return parts

    def _part(self, fold: Problem, dtype: Any) -> Any:
        """s_f G_f, from the rows of the fold alone."""
        rows: Any = np.flatnonzero(fold.weights)
        design = self.problem.design.take(rows, self.problem.design.n_threads)
        return design.gram(self.problem.weights[rows], dtype)
