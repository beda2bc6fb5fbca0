"""`MultiOutputSoftmaxRegression`: many targets on the same rows, in shared passes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from admm_softmax._checks import check_count, check_real
from admm_softmax._parallel import use_threads
from admm_softmax._validation import check_weights
from admm_softmax.design import Design, as_design, is_dask, row_counts
from admm_softmax.estimators.base import FLOATS, penalty_and_C
from admm_softmax.estimators.inputs import opened
from admm_softmax.estimators.multioutput_labels import (
    Column,
    columns_of,
    encode_column,
    is_missing,
    target_of,
)
from admm_softmax.estimators.multioutput_on_device import (
    few_rows,
    named_there,
    placed_targets,
    sampled,
    share_right,
    weights_there,
)
from admm_softmax.kernels.softmax import softmax
from admm_softmax.kernels.thresholds import TARGET_COLUMNS
from admm_softmax.problem import Problem
from admm_softmax.sources.memory import memory_bytes
from admm_softmax.targets.labels import Target
from admm_softmax.targets.minimise import Found, minimise
from admm_softmax.targets.placed import PlacedTarget


@dataclass(eq=False, repr=False, kw_only=True)
class MultiOutputClassifierBase(ClassifierMixin, BaseEstimator):
    """Settings, checks and prediction that the estimators of many targets share."""

    fit_intercept: bool = True
    class_weight: Any = None
    missing: Any = None
    max_iter: int = 1000
    tol: float = 1e-4
    n_threads: int | None = None
    memory_limit: int | str | None = None

    def predict(self, X: Any) -> Any:
        """The most probable class of every row for each target: (n, T)."""
        check_is_fitted(self)
        design = self._rows(X, reset=False)
        classes, codes = self.classes_, self._codes(design)
        if design.rows_stay:
            return named_there(design, classes, codes)
        return np.stack([c[k] for c, k in zip(classes, codes, strict=True)], axis=1)

    def predict_proba(self, X: Any) -> list[Any]:
        """Probabilities of the classes: one (n, K) array per target."""
        check_is_fitted(self)
        return self._of_scores(self._rows(X, reset=False), lambda scores: softmax(scores)[0])

    def decision_function(self, X: Any) -> list[Any]:
        """Scores of the classes per target: (n,) for two classes, else (n, K)."""
        check_is_fitted(self)
        found = self._of_scores(
            self._rows(X, reset=False), lambda s: s[:, 1:] - s[:, :1] if s.shape[1] == 2 else s
        )
        return [scores[:, 0] if scores.shape[1] == 1 else scores for scores in found]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose labels are all predicted; missing labels do not count."""
        check_is_fitted(self)
        design = self._rows(X, reset=False)
        codes = self._codes(design)
        if design.rows_stay:
            return share_right(self, design, codes, y, sample_weight)
        columns = columns_of(y, design.n_rows, "y")
        self._check_targets(len(columns))
        right = np.ones(design.n_rows, dtype=bool)
        for classes, places, column in zip(self.classes_, codes, columns, strict=True):
            right &= (classes[places] == column) | is_missing(column, self.missing)
        return float(np.average(right, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Sparse input is fine, and y has a column per target."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags

    def _check_targets(self, given: int) -> None:
        if given != len(self.classes_):
            raise ValueError(f"y must have {len(self.classes_)} targets, got {given}")

    def _rows(self, X: Any, reset: bool) -> Design:
        """X as a design."""
        if is_dask(X):
            raise TypeError(f"{type(self).__name__} does not take Dask data: fit one target each")
        intercept = bool(self.fit_intercept)
        X, _ = opened(X, None, intercept)
        if not isinstance(X, Design):
            X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=reset)
            return as_design(X, intercept=intercept, check_finite=False)
        if X.intercept != intercept:
            raise ValueError(
                f"X is a design with intercept={X.intercept}, but fit_intercept is {intercept}"
            )
        if reset:
            self.n_features_in_ = X.shape[1]
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return X

    def _targets(
        self, Y: Any, design: Design, sample_weight: Any
    ) -> tuple[list[Column], list[Any]]:
        """Classes and labels of every target, beside the rows where those stay."""
        check_count("max_iter", self.max_iter, "a whole number ≥ 0", least=0)
        check_real("tol", self.tol, "≥ 0", above=0.0, closed=True)
        if design.rows_stay:
            return placed_targets(design, Y, self.missing, self.class_weight, sample_weight)
        n_rows = design.n_rows
        weights = None if sample_weight is None else check_weights(sample_weight, n_rows)
        columns = [
            encode_column(y, self.missing, f"target {t}")
            for t, y in enumerate(columns_of(Y, n_rows))
        ]
        return columns, [target_of(c, weights, self.class_weight) for c in columns]

    def _shared(self, design: Design, sample_weight: Any = None) -> Problem:
        """Rows and penalty; α is that of each target."""
        labels: Any = np.zeros(design.n_rows, np.intp)
        if design.rows_stay:
            sample_weight = weights_there(design, sample_weight)
            labels = design.map_rows(lambda w: (0 * w).astype(np.intp), sample_weight)
        return Problem.of(
            design, labels, 1.0, n_classes=2, sample_weight=sample_weight, check_finite=False
        )

    def _minimise(
        self, problem: Problem, targets: Sequence[Any], alphas: Any, starts: Any = None
    ) -> list[Found]:
        settings: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        return minimise(problem, targets, alphas, starts=starts, memory=self._memory(), **settings)

    def _memory(self) -> int | None:
        return None if self.memory_limit is None else memory_bytes(self.memory_limit)

    def _store(self, columns: Sequence[Column], found: Sequence[Found], dtype: Any) -> None:
        self.classes_ = [column.classes for column in columns]
        self._W = [each.W for each in found]
        ends = [(W[:-1], W[-1]) if self.fit_intercept else (W, 0 * W[0]) for W in self._W]
        self.coef_ = [np.ascontiguousarray(features.T).astype(dtype) for features, _ in ends]
        self.intercept_ = [last.astype(dtype) for _, last in ends]
        self.n_iter_ = np.array([each.n_iter for each in found], dtype=np.int32)
        self.status_ = [each.status for each in found]

    def _warn(self, found: Sequence[Found], depth: int) -> None:
        troubled = [t for t, each in enumerate(found) if each.status.remedy]
        if troubled:
            first = found[troubled[0]]
            warnings.warn(
                f"{type(self).__name__}: {len(troubled)} of {len(found)} fits did not reach tol = "
                f"{self.tol:.2e}; fit {troubled[0]} ended with {first.status} after "
                f"{first.n_iter} iterations, at max|∇F| = {first.gradient_norm:.2e}. "
                f"{first.status.remedy}",
                ConvergenceWarning,
                stacklevel=depth,
            )

    def _codes(self, design: Design) -> list[Any]:
        """The position of the most probable class of every row, for each target."""
        found = self._of_scores(design, lambda scores: scores.argmax(axis=1)[:, None])
        return [codes[:, 0] for codes in found]

    def _of_scores(self, design: Design, function: Callable[[Any], Any]) -> list[Any]:
        """A function of each target's scores (b, K) for all rows, some targets at a time.

        The function returns a matrix with as many rows; they are computed beside the rows.
        """
        found: list[Any] = []
        with use_threads(self.n_threads):
            for part in _parts([W.shape[1] for W in self._W]):
                ends = np.cumsum([0, *[W.shape[1] for W in self._W[part]]])
                widths: list[int] = []
                both = design.map_scores(
                    np.concatenate(self._W[part], axis=1),
                    partial(_side_by_side, function, ends, widths),
                )
                own = [both[:, i:j] for i, j in pairwise(np.cumsum([0, *widths]))]
                found += own if design.rows_stay else map(np.ascontiguousarray, own)
        return found


def _side_by_side(function: Callable[[Any], Any], ends: Any, widths: list[int], scores: Any) -> Any:
    """The function of every target's columns, and how many columns each has."""
    made = [function(_of_classes(scores[:, i:j])) for i, j in pairwise(ends)]
    widths[:] = [each.shape[1] for each in made]
    return np.concatenate(made, axis=1)


def _of_classes(scores: Any) -> Any:
    """Scores of all classes: those of two are ∓ half of the one."""
    return np.concatenate([-scores / 2, scores / 2], axis=1) if scores.shape[1] == 1 else scores


def _parts(widths: Sequence[int]) -> list[slice]:
    """Consecutive targets of about `TARGET_COLUMNS` columns together."""
    parts, start, filled = [], 0, 0
    for t, width in enumerate(widths):
        if filled and filled + width > TARGET_COLUMNS:
            parts.append(slice(start, t))
            start, filled = t, 0
        filled += width
    return [*parts, slice(start, len(widths))]


@dataclass(eq=False, repr=False, kw_only=True)
class MultiOutputSoftmaxRegression(MultiOutputClassifierBase):
    """One softmax regression for each of many targets on the same rows X.

    Minimises for every target t, over the rows that have its label, with Sₜ their weight, ::

        Fₜ(W) = (1/Sₜ) Σᵢ sᵢ [ logsumexp(xᵢW) − cᵢₜ·xᵢW ] + (α/2) ‖W‖²

    The solutions are those of single fits. All targets share the Gram matrix of X, its
    eigendecomposition, and the passes: one pass over X takes a step of up to 256 columns.

    Parameters
    ----------
    alpha : float, optional
        Strength α ≥ 0 of the penalty, as in `SoftmaxRegression`.
    C : float, optional
        The same in scikit-learn's units: α = 1/(Sₜ·C), or 2/(Sₜ·C) for two classes. Give alpha or
        C, not both; without either, C = 1.
    fit_intercept : bool
        Whether to fit an intercept, which is not penalised.
    class_weight : dict, "balanced" or None
        As in scikit-learn, for each target by its own labels.
    missing : label, optional
        What stands for a missing label, for example −1. NaN and None always do. A row takes
        part in the fits of those targets that it has labels of.
    max_iter, tol
        Each target stops after max_iter steps, or at max|∇F| ≤ tol.
    n_threads : int, optional
        Threads; None takes every core.
    memory_limit : int or str, optional
        Bytes, or for example "1GB", for the labels of the targets in a pass, of which there are
        then fewer than 256 columns. None does not limit them.

    Attributes
    ----------
    classes_, coef_, intercept_ : lists of arrays
        As `SoftmaxRegression` has them, one entry per target.
    n_iter_ : array of shape (T,)
        Steps taken.
    status_ : list of Status
        How each fit ended.

    Examples
    --------
    >>> import numpy as np
    >>> from admm_softmax import MultiOutputSoftmaxRegression
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> Y = np.stack([X[:, 0] > 0, X[:, 1] > 0], axis=1)
    >>> clf = MultiOutputSoftmaxRegression(alpha=0.1).fit(X, Y)
    >>> clf.predict(X).shape, [p.shape for p in clf.predict_proba(X)]
    ((50, 2), [(50, 2), (50, 2)])
    """

    alpha: float | None = field(default=None, kw_only=False)
    C: float | None = None

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> MultiOutputSoftmaxRegression:
        """Fit to rows X with the labels Y.

        X : what `SoftmaxRegression.fit` takes, except for Dask data
        Y : labels of shape (n, T), a frame or an indicator matrix with one column per target, or a
            list of T vectors. Targets may have different numbers of classes.
        sample_weight : weights ≥ 0 of shape (n,), optional
        """
        with use_threads(self.n_threads):
            design = self._rows(X, reset=True)
            columns, targets = self._targets(Y, design, sample_weight)
            problem = self._shared(design, sample_weight)
            found = self._minimise(problem, targets, self._alphas(targets))
        self._store(columns, found, design.dtype)
        self._warn(found, depth=3)
        return self

    def fit_subsets(
        self, X: Any, y: Any, subsets: Sequence[Any], sample_weight: Any = None
    ) -> MultiOutputSoftmaxRegression:
        """Fit the labels y of one target to many samples of the rows.

        Each fit is that of its rows alone; `coef_` and the others have one entry per sample.

        subsets : for each fit its rows, by index (a row that is named twice counts twice: a
            bootstrap sample) or by mask
        """
        with use_threads(self.n_threads):
            design = self._rows(X, reset=True)
            if len(subsets) == 0:
                raise ValueError("subsets must hold at least one sample of the rows, got none")
            columns, targets = self._targets([y], design, sample_weight)
            make = self._samples_there if design.rows_stay else self._samples
            design, weights, samples, targets = make(columns[0], targets[0], subsets, design)
            found = self._minimise(self._shared(design, weights), targets, self._alphas(targets))
        self._store(samples, found, design.dtype)
        self._warn(found, depth=3)
        return self

    def _samples(
        self, column: Column, target: Target, subsets: Sequence[Any], design: Design
    ) -> tuple[Design, Any, list[Column], list[Any]]:
        """Rows, weights, classes and labels of every sample."""
        codes, weights = column.codes, target.weights
        chosen = [row_counts(rows, design.n_rows) for rows in subsets]
        used = np.flatnonzero(np.any([counts > 0 for counts in chosen], axis=0))
        if 2 * len(used) < design.n_rows:  # few rows: passes need not see the others
            design, codes = design.picked(used), codes[used]
            weights = None if weights is None else weights[used]
            chosen = [counts[used] for counts in chosen]
        samples = [_sample(Column(codes, column.classes), n) for n in chosen]
        targets = [
            target_of(own, weights, self.class_weight, counts.astype(np.float64))
            for own, counts in zip(samples, chosen, strict=True)
        ]
        return design, weights, samples, targets

    def _samples_there(
        self, column: Column, target: PlacedTarget, subsets: Sequence[Any], _: Design
    ) -> tuple[Design, Any, list[Column], list[Any]]:
        """The same for rows that stay on their device."""
        target, chosen = few_rows(target, subsets)
        samples, targets = sampled(target, column.classes, chosen, self.class_weight)
        return target.design, target.weights, samples, targets

    def _alphas(self, targets: Sequence[Any]) -> list[float]:
        if self.alpha is not None and self.C is not None:
            raise ValueError(f"give alpha or C, not both: got alpha={self.alpha} and C={self.C}")
        if self.alpha is not None:
            return [check_real("alpha", self.alpha, "≥ 0", above=0.0, closed=True)] * len(targets)
        C = 1.0 if self.C is None else check_real("C", self.C, "positive", above=0.0)
        return [penalty_and_C(C, t.n_classes, t.total_weight) for t in targets]


def _sample(column: Column, counts: Any) -> Column:
    """The classes that a sample of the rows has, and codes in terms of them."""
    there = np.bincount(column.codes[(counts > 0) & (column.codes >= 0)])
    kept = np.flatnonzero(there)
    if len(kept) < 2:
        raise ValueError(f"each subset must hold at least two classes, got {len(kept)}")
    table = np.full(len(column.classes) + 1, -1, column.codes.dtype)
    table[kept] = np.arange(len(kept))
    return Column(table[column.codes], column.classes[kept])
