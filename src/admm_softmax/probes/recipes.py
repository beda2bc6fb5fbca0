"""Published recipes of linear probes, by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Recipe:
    """How a probe chooses its penalty.

    Cs : scikit-learn's C, from strong to weak penalties
    metric : what decides on the validation rows
    val_share : the share of the training rows that validate where no validation rows are given
    refit : whether the final model is fitted to training and validation rows
    source : where this is published
    """

    Cs: Any
    metric: str
    val_share: float
    refit: bool
    source: str


#: The solver is this library's, to its own `tol`: a recipe says what is minimised and chosen.
RECIPES = {
    "dinov2": Recipe(
        Cs=np.logspace(-6, 5, 45),
        metric="accuracy",
        val_share=0.1,
        refit=True,
        source="facebookresearch/dinov2, dinov2/eval/log_regression.py: 45 values of C, a tenth "
        "of the training rows validates, refit on both (there cuML, tol 1e-12, 1000 iterations)",
    ),
    "clip": Recipe(
        Cs=np.logspace(-6, 6, 97),
        metric="accuracy",
        val_share=0.1,
        refit=True,
        source="Radford et al. 2021 (arXiv 2103.00020), appendix A.3: penalties from 1e-6 to 1e6 "
        "at 8 steps per decade, found there by bisection and here all tried; chosen on "
        "validation rows, refit on both (there scikit-learn's lbfgs, 1000 iterations). The "
        "share is ours: the paper takes what each data set has",
    ),
}


def recipe_of(name: str, **changes: Any) -> Recipe:
    """The recipe of this name, with changes that are not None."""
    if name not in RECIPES:
        raise ValueError(f"recipe must be one of {sorted(RECIPES)}, got {name!r}")
    given = {key: value for key, value in changes.items() if value is not None}
    return replace(RECIPES[name], **given)
