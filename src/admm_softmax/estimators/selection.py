"""Choosing among penalties by their scores on rows held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_choice
from admm_softmax.design import Design
from admm_softmax.estimators.base import penalty_and_C
from admm_softmax.estimators.coefficients import to_coef
from admm_softmax.estimators.scoring import means
from admm_softmax.path.alphas import Penalties
from admm_softmax.path.fitter import Fitter
from admm_softmax.problem import Problem
from admm_softmax.solvers import Result
from admm_softmax.storage.identity import as_text

Rule: TypeAlias = Literal["best", "one_standard_error"]
RULES: tuple[Rule, ...] = ("best", "one_standard_error")


class RatioPath(NamedTuple):
    """The path of one l1_ratio: as it was given, in W's units, and what was fitted along it.

    fits : results per penalty fitted, one per fold; empty before the fits
    scores : per penalty fitted, one per fold
    """

    l1_ratio: float
    ratio: float
    problem: Problem
    penalties: Penalties
    fitter: Fitter
    fits: Sequence[list[Result]] = ()
    scores: Sequence[Array] = ()

    def at(self, position: int) -> list[Result]:
        """The fits under a penalty, by its position among those given."""
        return self.fits[int(self.penalties.places[position])]


class Arrays(NamedTuple):
    """What an estimator shows of a path: over the penalties in the order given, folds first."""

    alphas: Array
    Cs: Array
    scores: Array
    n_iter: Any
    coefs: Any


def check_rule(choose: str, n_folds: int) -> None:
    """Raise unless the rule is known, and there are folds for a standard error."""
    check_choice("choose", choose, RULES)
    if choose == "one_standard_error" and n_folds < 2:
        raise ValueError(f"choose='one_standard_error' needs at least two folds, got {n_folds}")


def choose_among(paths: Sequence[RatioPath], choose: Rule) -> tuple[RatioPath, int]:
    """The path with the best mean score, and the position of α among those given.

    The first among equals, of paths and of penalties. By one standard error, it is the
    strongest penalty of that path whose mean score is within one standard error of the best,
    the standard error being that of the best mean.
    """
    found = [means(path.scores) for path in paths]
    path, scores = max(zip(paths, found, strict=True), key=lambda pair: max(pair[1]))
    places, tried = path.penalties.places, path.penalties.tried(len(scores))
    best = int(tried[np.argmax(np.array(scores)[places[tried]])])
    if choose == "best":
        return path, best
    of_folds = path.scores[places[best]]
    of_folds = of_folds[~np.isnan(of_folds)]
    error = float(of_folds.std(ddof=1)) / np.sqrt(len(of_folds)) if len(of_folds) > 1 else 0.0
    strongest = np.argmax(np.asarray(scores) >= scores[places[best]] - error)
    return path, int(np.argmax(places == strongest))


def paths_identity(paths: Sequence[RatioPath], **settings: Any) -> dict[str, Any]:
    """What the fits of all paths are computed from."""
    first = paths[0]
    known = first.fitter.identity(first.problem, first.penalties.fitted, **settings)
    if len(paths) == 1:
        return known
    return known | {
        "l1_ratios": as_text([path.ratio for path in paths]),
        "alphas": as_text([path.penalties.fitted.tolist() for path in paths]),
        "solver": as_text([path.fitter.solver for path in paths]),
    }


def arrays_of(path: RatioPath, Cs: Array | None, dtype: Any) -> Arrays:
    """The arrays of one path; `Cs` as they were given, None where alphas were."""
    K, S, design = path.problem.n_classes, path.problem.total_weight, path.problem.design
    tried = path.penalties.tried(len(path.fits))
    alphas, places = path.penalties.given, path.penalties.places[tried]
    if Cs is None:
        Cs = np.array([penalty_and_C(alpha, K, S, path.ratio) for alpha in alphas])
    by_fold = list(zip(*path.fits, strict=True))
    # A start that needs no step counts as one, as in scikit-learn.
    counts = [[max(1, result.n_iter) for result in fold] for fold in by_fold]
    coefs = [[_with_intercept(design, result.W, dtype) for result in fold] for fold in by_fold]
    return Arrays(
        alphas[tried],
        Cs[tried],
        np.array(path.scores).T[:, places],
        np.array(counts, dtype=np.int32)[None, :, places],
        np.array(coefs)[:, places],
    )


def _with_intercept(design: Design, W: Array, dtype: Any) -> Any:
    coef, last = to_coef(design.in_units_of_X(W), design.intercept, dtype)
    return np.column_stack([coef, last]) if design.intercept else coef


def stacked_arrays(parts: Sequence[Arrays], same_Cs: bool) -> Arrays:
    """The arrays of all paths, with an axis over them before that over the penalties.

    As in scikit-learn, n_iter is then without the axis of length one that it has for a single
    path, and Cs that are the same for all paths are shown once.
    """
    alphas, Cs, scores, n_iter, coefs = zip(*parts, strict=True)
    shown = max(Cs, key=len) if same_Cs else padded(Cs, 0)
    counts = padded([part[0] for part in n_iter], 1)
    return Arrays(padded(alphas, 0), shown, padded(scores, 1), counts, padded(coefs, 1))


def padded(parts: Sequence[Array], axis: int) -> Array:
    """Arrays of different lengths along an axis, stacked along a new one before it."""
    longest = max(part.shape[axis] for part in parts)
    filled = []
    for part in parts:
        widths = [(0, 0)] * part.ndim
        widths[axis] = (0, longest - part.shape[axis])
        floats = part.astype(np.result_type(part, np.float32)) if widths[axis][1] else part
        filled.append(np.pad(floats, widths, constant_values=np.nan) if widths[axis][1] else part)
    return np.stack(filled, axis=axis)
