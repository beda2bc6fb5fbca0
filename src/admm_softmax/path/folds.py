"""Parts of a problem for cross-validation, on one design and one Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from admm_softmax.problem import Problem


def split(problem: Problem, pairs: Sequence[tuple[Any, Any]]) -> list[Problem]:
    """The problem on the rows to fit of every fold, given with those to hold out.

    All keep all rows of X, with weight zero where they have no part, so that they can go
    through X together. Where the rows held out are all that is missing, the Gram matrix is
    the whole's less theirs.
    """
    training = [_on(problem, i, chosen) for i, (chosen, _) in enumerate(pairs)]
    held_out = [problem.row_counts(others) for _, others in pairs]
    for (chosen, _), others in zip(pairs, held_out, strict=True):
        if (problem.row_counts(chosen) + others != 1).any():
            return training
    grams = _Grams(problem, [np.flatnonzero(others) for others in held_out])
    return [replace(fold, make_gram=partial(grams, i)) for i, fold in enumerate(training)]


def _on(problem: Problem, number: int, chosen: Any) -> Problem:
    try:
        return problem.on(chosen)
    except ValueError as error:
        raise ValueError(f"fold {number}: {error}") from error


class _Grams:
    """Gram matrices by down-dating: each row is multiplied once, whatever the number of folds.

    With the whole's weights w, and s the share of a fold in them ::

        G = Σ_f G_f,  G_f = Σ_{i in f} wᵢ xᵢᵀxᵢ        where every row is held out once
        (1 − s_f) G_without_f = G − G_f
    """

    def __init__(self, problem: Problem, held_out: list[Any]) -> None:
        self.problem, self.held_out = problem, held_out
        self.made: dict[Any, list[Any]] = {}

    def __call__(self, number: int, dtype: Any) -> Any:
        """The Gram matrix of all rows but those of one fold."""
        dtype = np.dtype(dtype)
        if dtype not in self.made:
            self.made[dtype] = self._make(dtype)
        return self.made[dtype][number]

    def _make(self, dtype: Any) -> list[Any]:
        design, weights = self.problem.design, self.problem.weights
        parts = [
            design.take(rows, design.n_threads).gram(weights[rows], dtype) for rows in self.held_out
        ]
        times = np.bincount(np.concatenate(self.held_out), minlength=design.n_rows)
        if "gram" not in self.problem.cache and (times == 1).all():
            self.problem.cache["gram"] = sum(parts[1:], start=parts[0].copy())
        whole = self.problem.gram(dtype)
        for rows, part in zip(self.held_out, parts, strict=True):
            np.subtract(whole, part, out=part, casting="same_kind")
            np.divide(part, 1.0 - weights[rows].sum(), out=part, casting="same_kind")
        return parts
