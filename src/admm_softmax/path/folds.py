"""Parts of a problem for cross-validation, on one design and one Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from threading import RLock
from typing import Any

import numpy as np

from admm_softmax.design import Design, Rows
from admm_softmax.problem import Problem


def split(problem: Problem, pairs: Sequence[tuple[Any, Any]]) -> list[Problem]:
    """One problem per fold, on the rows to fit; `pairs` are (rows to fit, rows to hold out).

    Rows are given by index, by mask, or as handles that say how often each row counts. Each
    fold keeps all rows of X, with weight zero where it does not fit them, so that folds can
    share reads of X. Where every fold fits exactly the rows that it does not hold out, its
    Gram matrix is that of all rows minus that of the rows held out.
    """
    design = problem.design
    training = [_on(problem, i, chosen) for i, (chosen, _) in enumerate(pairs)]
    held_out = [design.counts(others) for _, others in pairs]
    for (chosen, _), others in zip(pairs, held_out, strict=True):
        if not _each_once(design, [design.counts(chosen), others]):
            return training
    grams = _Grams(problem, held_out)
    return [fold.with_gram(partial(grams, i)) for i, fold in enumerate(training)]


def _on(problem: Problem, number: int, chosen: Any) -> Problem:
    try:
        return problem.on(chosen)
    except ValueError as error:
        raise ValueError(f"fold {number}: {error}") from error


def _each_once(design: Design, counts: Sequence[Rows]) -> bool:
    """Whether every row is counted exactly once."""
    return all(design.per_part(lambda *c: bool((sum(c, start=0) == 1).all()), *counts))


class _Grams:
    """Gram matrices by down-dating: each row is multiplied once, whatever the number of folds.

    With the weights w of all rows, and s the share of a fold in their sum ::

        G = Σ_f G_f,  G_f = Σ_{i in f} wᵢ xᵢᵀxᵢ        where every row is held out once
        (1 − s_f) G_without_f = G − G_f
    """

    def __init__(self, problem: Problem, held_out: list[Rows]) -> None:
        self.problem, self.held_out = problem, held_out
        self._lock = RLock()
        self._made: dict[Any, list[Any]] = {}

    def __call__(self, number: int, dtype: Any) -> Any:
        """The Gram matrix of all rows but those of one fold."""
        dtype = np.dtype(dtype)
        with self._lock:
            if dtype not in self._made:
                self._made[dtype] = self._make(dtype)
            return self._made[dtype][number]

    def _make(self, dtype: Any) -> list[Any]:
        design, prepared = self.problem.design, self.problem.prepared
        weights = [
            design.subset(self.problem.weights, design.map_rows(_at_all, rows))
            for rows in self.held_out
        ]
        parts = [design.gram(w, dtype) for w in weights]
        if not prepared.has_gram and _each_once(design, self.held_out):
            prepared.offer_gram(sum(parts[1:], start=parts[0].copy()))
        whole = self.problem.gram(dtype)
        for w, part in zip(weights, parts, strict=True):
            np.subtract(whole, part, out=part, casting="same_kind")
            np.divide(part, 1.0 - design.total(w), out=part, casting="same_kind")
        return parts


def _at_all(counts: Any) -> Any:
    return counts != 0
