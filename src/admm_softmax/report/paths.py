"""A path of penalties as rows of a table."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def path_rows(model: Any) -> list[dict[str, Any]]:
    """One row per penalty tried by a fitted SoftmaxRegressionCV, from strong to weak.

    score and deviation are mean and standard deviation over the folds (None for one fold).
    """
    is_grid = model.alphas_.ndim > 1
    alphas = model.alphas_ if is_grid else model.alphas_[None]
    scores = model.scores_ if is_grid else model.scores_[:, None]
    n_iter = np.asarray(model.n_iter_, dtype=np.float64).reshape(scores.shape)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of means over nothing
        for r, ratio in enumerate(model.l1_ratios_):
            for a in np.argsort(-alphas[r], kind="stable"):
                own = scores[:, r, a]
                if np.isnan(alphas[r, a]) or np.isnan(own).all():
                    continue
                rows.append(
                    {
                        "alpha": float(alphas[r, a]),
                        "l1_ratio": float(ratio),
                        "score": float(np.nanmean(own)),
                        "deviation": float(np.nanstd(own)) if len(own) > 1 else None,
                        "iterations": float(np.nanmean(n_iter[:, r, a])),
                        "is_best": bool(
                            alphas[r, a] == model.alpha_ and float(ratio) == model.l1_ratio_
                        ),
                    }
                )
    return rows
