"""The fits of a cross-validation: all penalties of one l1_ratio after the other, on all folds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.estimators.scoring import FoldScores, means
from admm_softmax.estimators.selection import RatioPath
from admm_softmax.path.warm_starts import follow, has_turned
from admm_softmax.penalty.rough import check_share
from admm_softmax.problem import Problem
from admm_softmax.progress import Bar
from admm_softmax.solvers import Result, Status


def as_l1_ratios(given: Any, only: Any) -> list[Any]:
    """The values of l1_ratio to try, as they were given; `only` one where there is no list."""
    if given is None:
        return [0.0 if only is None else only]
    if np.ndim(given) != 1 or isinstance(given, str):
        raise TypeError(f"l1_ratios must be a list of numbers from 0 to 1, got {given!r}")
    if not len(given):
        raise ValueError("l1_ratios must hold at least one number, got none")
    return [check_share(f"l1_ratios[{i}]", ratio) for i, ratio in enumerate(given)]


def fit_paths(
    plans: Sequence[RatioPath],
    training: Sequence[Problem],
    fold_scores: FoldScores,
    scales: Sequence[float],
    patience: int | None,
    *,
    verbose: bool,
) -> list[RatioPath]:
    """The paths with their fits and scores; Ctrl-C ends them, and what is finished is kept.

    training : one problem per fold
    scales : factors on α, one per fold
    """
    paths: list[RatioPath] = []
    for plan in plans:
        folds = [fold.with_penalty(plan.problem.penalty) for fold in training]
        try:
            path = _fitted(plan, folds, fold_scores, scales, patience, verbose)
        except KeyboardInterrupt:
            if not paths:
                raise
            paths[-1].fitter.scheduler.interrupted = True
            break
        paths.append(path)
        pressed = any(result.status == Status.INTERRUPTED for result in path.fits[-1])
        if pressed or path.fitter.scheduler.interrupted:
            break
    return paths


def _fitted(
    plan: RatioPath,
    folds: list[Problem],
    fold_scores: FoldScores,
    scales: Sequence[float],
    patience: int | None,
    verbose: bool,
) -> RatioPath:
    fitter, alphas = plan.fitter, plan.penalties.fitted
    scores: list[Array] = []
    with Bar(verbose, "path", len(alphas) * len(folds)) as bar:

        def visit(alpha: float, results: list[Result]) -> bool:
            solutions = [result.W for result in results]
            name, make = f"scores-{len(scores):03d}", partial(fold_scores, fitter, solutions)
            scores.append(np.asarray(fitter.scores(name, results, make)))
            bar.advance(f"alpha {alpha:.2e}, score {scores[-1].mean():.6g}", len(folds))
            return has_turned(means(scores), patience)

        fits = follow(fitter, folds, alphas, visit, scales)
    return plan._replace(fits=fits, scores=scores[: len(fits)])
