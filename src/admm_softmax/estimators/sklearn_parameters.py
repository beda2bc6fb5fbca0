"""Checks of parameters that say yes or no, and of those that only LogisticRegression has."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from admm_softmax._checks import check_choice, check_flag
from admm_softmax.penalty import Tikhonov

#: The values that change nothing, and what to do instead of others.
_NEUTRAL: dict[str, tuple[tuple[Any, ...], str]] = {
    "dual": (
        (False,),
        "it is liblinear's; solver='auto' solves wide data in the space of their rows by itself",
    ),
    "intercept_scaling": (
        (1,),
        "it is liblinear's, whose penalty covers the intercept, as does penalize_intercept=True",
    ),
    "use_legacy_attributes": (
        (False,),
        "scores_ and coefs_paths_ are arrays over folds and penalties, not dictionaries by class",
    ),
}

#: Parameters that are True or False, and those with a few names.
_FLAGS = ("fit_intercept", "penalize_intercept", "standardize", "warm_start")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "keep": ("best", "last"),
    "monitor": ("loss", "accuracy"),
    "refit": (True, False, "all"),
}


def check_settings(estimator: Any) -> None:
    """Raise unless flags are flags, names are known, and neutral parameters neutral."""
    for name in _FLAGS:
        check_flag(name, getattr(estimator, name, False))
    for name, choices in _CHOICES.items():
        if hasattr(estimator, name):
            check_choice(name, getattr(estimator, name), choices)
    check_neutral(estimator)


def check_neutral(estimator: Any) -> None:
    """Raise unless these parameters have a value that changes nothing."""
    for name, (values, instead) in _NEUTRAL.items():
        value = getattr(estimator, name, values[0])
        if not (isinstance(value, bool | np.bool | Real) and value in values):
            raise ValueError(f"{name}={value!r} is not supported: {instead}")
    jobs = getattr(estimator, "n_jobs", None)
    # Any number of jobs gives the same model there, and here.
    if jobs is not None and not (isinstance(jobs, Integral) and jobs != 0):
        raise ValueError(
            f"n_jobs must be None or a whole number other than 0, got {jobs!r}; it changes "
            "nothing: use n_threads=… to limit threads"
        )


def penalty_object(given: Any, l1_ratio: float | None) -> Any:
    """The penalty of an estimator, without the names that scikit-learn has for the usual one.

    Its "l2" is the penalty without `l1_ratio`, its "elasticnet" the one with it; None stands for
    both here, and so does `Tikhonov()`. "deprecated" is the default of scikit-learn 1.8 and later.
    """
    if isinstance(given, Tikhonov):
        if given.L is not None:
            raise ValueError("penalty=Tikhonov(L=…) is not supported: give operator=… instead")
        return None
    if not isinstance(given, str):
        return given
    if given == "elasticnet" and l1_ratio is None:
        raise ValueError("penalty='elasticnet' needs l1_ratio, a number from 0 to 1, got None")
    if given in ("elasticnet", "deprecated") or (given == "l2" and not l1_ratio):
        return None
    instead = {
        "l1": "use l1_ratio=1",
        "l2": f"it is the penalty with l1_ratio=0, and l1_ratio is {l1_ratio}",
        "none": "use C=np.inf or alpha=0",
    }
    reason = instead.get(given, "give None or an object of admm_softmax.penalties")
    raise ValueError(f"penalty={given!r} is not supported: {reason}")
