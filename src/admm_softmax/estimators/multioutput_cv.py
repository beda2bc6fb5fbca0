"""`MultiOutputSoftmaxRegressionCV`: each of many targets with the α that validates best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_real
from admm_softmax._parallel import use_threads
from admm_softmax.design import row_counts
from admm_softmax.estimators.multioutput import MultiOutputClassifierBase
from admm_softmax.problem import Problem
from admm_softmax.targets.scores import evaluate

ALPHAS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(eq=False, repr=False, kw_only=True)
class MultiOutputSoftmaxRegressionCV(MultiOutputClassifierBase):
    """`MultiOutputSoftmaxRegression` with an α per target, chosen by cross-validation.

    All targets and folds share the Gram matrix and the passes. Under each α, from the largest
    to the smallest, fits start from those under the α before.

    Parameters
    ----------
    alphas : sequence of float
        Strengths α > 0 to choose from.
    cv : int, splitter or iterable
        As in scikit-learn; a number of folds means shuffled ones, with a fixed seed.
    scoring : "loss" or "accuracy"
        What decides: the least mean loss, or the highest accuracy, of the rows left out.
    fit_intercept, class_weight, missing, max_iter, tol, n_threads, memory_limit
        As in `MultiOutputSoftmaxRegression`.

    Attributes
    ----------
    alpha_ : array of shape (T,)
        The α of each target.
    scores_ : array of shape (T, folds, alphas)
        Scores of the rows left out: minus the loss, or the accuracy. NaN where a fold has no
        label of a target.
    classes_, coef_, intercept_, n_iter_, status_
        As in `MultiOutputSoftmaxRegression`, of fits to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from admm_softmax import MultiOutputSoftmaxRegressionCV
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> Y = np.stack([X[:, 0] > 0, X[:, 1] + X[:, 2] > 0], axis=1)
    >>> MultiOutputSoftmaxRegressionCV(alphas=[1.0, 1e-3]).fit(X, Y).alpha_
    array([0.001, 0.001])
    """

    alphas: Sequence[float] = field(default=ALPHAS, kw_only=False)
    cv: Any = 5
    scoring: Literal["loss", "accuracy"] = "loss"

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> MultiOutputSoftmaxRegressionCV:
        """Choose α for every target, and fit to all rows.

        Arguments are those of `MultiOutputSoftmaxRegression.fit`.
        """
        if self.scoring not in ("loss", "accuracy"):
            raise ValueError(f"scoring must be 'loss' or 'accuracy', got {self.scoring!r}")
        alphas = np.array([check_real("alphas", a, "positive", above=0.0) for a in self.alphas])
        if not len(alphas):
            raise ValueError("alphas must hold at least one number, got none")
        with use_threads(self.n_threads):
            design = self._rows(X, reset=True)
            columns, targets = self._targets(Y, design, sample_weight)
            problem = self._shared(design, sample_weight)
            folds = self._folds(design.n_rows)
            scores = self._validated(problem, targets, folds, alphas)
            # The mean over folds decides; of equal ones, the largest α.
            order = np.argsort(-alphas, kind="stable")
            best = order[np.nanmean(scores, axis=1)[:, order].argmax(axis=1)]
            found = self._minimise(problem, targets, alphas[best])
        self.alpha_, self.scores_ = alphas[best], scores
        self._store(columns, found, design.dtype)
        self._warn(found, depth=3)
        return self

    def _folds(self, n_rows: int) -> list[Any]:
        """How often each row is in the validation rows of each fold."""
        from sklearn.model_selection import KFold, check_cv  # noqa: PLC0415  (loads all metrics)

        whole = isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool)
        cv = KFold(self.cv, shuffle=True, random_state=0) if whole else check_cv(self.cv)
        return [row_counts(test, n_rows) > 0 for _, test in cv.split(np.zeros((n_rows, 1)))]

    def _validated(
        self, problem: Problem, targets: Sequence[Any], folds: Sequence[Any], alphas: Array
    ) -> Array:
        """The score of every target, fold and α."""
        design = problem.design
        fitted, held_out = (
            # Where rows stay, fold numbers go there, once for all targets.
            [design.counts(rows) for rows in chosen] if design.rows_stay else chosen
            for chosen in ([~fold for fold in folds], folds)
        )
        train = [target.on(rows) for target in targets for rows in fitted]
        test = [target.on(rows) for target in targets for rows in held_out]
        scores = np.empty((len(train), len(alphas)))
        starts: list[Array] | None = None
        for a in np.argsort(-alphas, kind="stable"):
            strengths = [float(alphas[a])] * len(train)
            starts = [each.W for each in self._minimise(problem, train, strengths, starts)]
            found = evaluate(problem, test, starts, self._memory())
            scores[:, a] = -found.loss if self.scoring == "loss" else found.accuracy
        return scores.reshape(len(targets), len(folds), len(alphas))
