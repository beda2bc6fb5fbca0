"""Many fits: the whole path of penalties, by cross-validation or on validation rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, validate_data

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count, check_real
from admm_softmax._labels import Targets, encode, encode_more, most_probable
from admm_softmax._weights import to_coef
from admm_softmax.estimators.base import (
    FLOATS,
    SoftmaxClassifier,
    penalty_and_C,
    warn_about_many,
)
from admm_softmax.estimators.regression import SoftmaxRegression
from admm_softmax.kernels.softmax import label_scores
from admm_softmax.path.alphas import as_alphas, middle
from admm_softmax.path.folds import split
from admm_softmax.path.follow import Fitter, follow, has_turned
from admm_softmax.path.plots import draw_path
from admm_softmax.problem import Problem, check_weights
from admm_softmax.solvers import Result, Solver
from admm_softmax.solvers.progress import Bar

#: Scores weights, one W a fold.
Judge: TypeAlias = Callable[[Fitter, list[Array]], Array]

#: Scores that come with a pass over the rows, also for soft labels: place and sign.
_OWN_SCORES = {"neg_log_loss": (0, -1.0), "accuracy": (1, 1.0)}


class SoftmaxRegressionCV(SoftmaxClassifier):
    """Softmax regression whose penalty is chosen by cross-validation, or on validation rows.

    After scikit-learn's LogisticRegressionCV. All penalties and folds share one Gram matrix
    and few factorisations of it; each fit starts where the two before it point; and the fits
    of all folds go through X together.

    Parameters
    ----------
    alphas : int or sequence of float
        Penalties to try: a list, or so many over a range found from the scale of the data
        and the number of rows. They are fitted from strong to weak.
    Cs : int or sequence of float, optional
        The same in scikit-learn's units, for the rows given to `fit`; comes before alphas.
    cv : int, splitter or iterable
        Folds, as in scikit-learn; a number makes stratified folds. Not used with X_val.
    scoring : str, callable or None
        As in scikit-learn. "neg_log_loss" and "accuracy" also take soft labels. None is
        accuracy.
    refit : bool
        Whether to fit once more, to all rows, under the best penalty. Otherwise the folds'
        coefficients under that penalty are averaged. With X_val the model is the one that
        did best there.
    patience : int, optional
        End the path when so many penalties in a row have scored worse than the best, and
        leave the weaker ones, which take longest, untried. None tries all.
    operator, reference, fit_intercept, penalize_intercept, class_weight
        As in `SoftmaxRegression`. Balanced class weights are those of all rows.
    solver, max_iter, tol, n_threads, random_state
        As in `SoftmaxRegression`, for every fit.
    verbose : bool
        Show a progress bar over the path.

    Attributes
    ----------
    alpha_, C_ : float
        The penalty with the best mean score (the strongest among equals), in both units.
    alphas_, Cs_ : arrays
        Those that were tried, from strong to weak.
    scores_ : array of shape (n_folds, n_alphas)
        On the rows held out; with X_val there is one fold.
    coefs_paths_ : array of shape (n_folds, n_alphas, K, d + 1)
        Coefficients with intercepts last, if there are any; 1 instead of K for two classes.
    n_iter_ : array of shape (n_folds, n_alphas)
        Iterations of every fit.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in `SoftmaxRegression`.
    history_, status_
        Of the last fit: that to all rows, or the one chosen on validation rows. None where
        folds were averaged.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import SoftmaxRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SoftmaxRegressionCV(alphas=[1.0, 0.1, 0.01, 1e-3], cv=3).fit(X, y)
    >>> clf.alpha_, clf.scores_.shape
    (0.001, (3, 4))
    >>> clf.predict(X[:2])
    array([0, 0])
    """

    def __init__(
        self,
        alphas: int | Sequence[float] = 20,
        *,
        Cs: int | Sequence[float] | None = None,
        cv: Any = 5,
        scoring: Any = "neg_log_loss",
        refit: bool = True,
        patience: int | None = None,
        operator: Any = None,
        reference: Any = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        class_weight: Any = None,
        solver: str | Solver = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.alphas = alphas
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.patience = patience
        self.operator = operator
        self.reference = reference
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        groups: Any = None,
    ) -> SoftmaxRegressionCV:
        """Fit the path, choose a penalty, and fit under it.

        Parameters
        ----------
        X, y, sample_weight
            As in `SoftmaxRegression`. Scores are weighted too.
        X_val, y_val, sample_weight_val : optional
            Validation rows to score on, instead of folds.
        groups : optional
            For splitters that ask for groups.
        """
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None")
        if self.patience is not None:
            check_count("patience", self.patience, "at least 1 or None")
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
        targets = encode(y, X.shape[0], self.class_weight, sample_weight)
        problem = self._problem(X, targets, 1.0)
        alphas = self._alphas(problem)
        validation = self._validation(targets.classes, X_val, y_val, sample_weight_val)
        if validation is None:
            labels = most_probable(y)
            pairs = list(check_cv(self.cv, labels, classifier=True).split(X, labels, groups))
            training = split(problem, pairs)
            judge = self._judge_folds(pairs, problem, X, y, sample_weight, targets.classes)
        else:
            training = [problem]
            rows = [
                (
                    validation.design.block(slice(0, validation.design.n_rows)),
                    y_val,
                    sample_weight_val,
                )
            ]
            judge = self._judge([validation], rows, targets.classes, X.dtype)
        fitter = Fitter(
            problem.with_alpha(middle(alphas)),
            fits=len(alphas) * len(training),
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=self._seed(),
        )
        scores: list[Array] = []
        with Bar(bool(self.verbose), "path", len(alphas) * len(training)) as bar:

            def visit(alpha: float, results: list[Result]) -> bool:
                scores.append(judge(fitter, [result.W for result in results]))
                words = f"alpha {alpha:.2e}, score {scores[-1].mean():.6g}"
                bar.advance(words, len(training))
                return has_turned(_means(scores), self.patience)

            path = follow(fitter, training, alphas, visit)
        best = int(np.argmax(_means(scores)))
        last = self._last_fit(fitter, problem.with_alpha(alphas[best]), path[best], validation)
        self._store(X.dtype, problem, targets, alphas[: len(path)], scores, path, best, last)
        fits = [result for results in path for result in results]
        if last is not None and not any(last is result for result in fits):
            fits.append(last)
        warn_about_many(fits, self.tol, type(self).__name__, fitter.meeting.interrupted)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score that `scoring` names."""
        check_is_fitted(self)
        return _score(self, self.scoring, X, y, sample_weight)

    def plot(self) -> Any:
        """Draw scores and the size of the weights against α; returns the Matplotlib figure."""
        check_is_fitted(self)
        d = self.n_features_in_
        norms = np.linalg.norm(self.coefs_paths_[..., :d], axis=-1).mean(axis=0)
        name = self.scoring if isinstance(self.scoring, str) else "score"
        label = {"neg_log_loss": "negative log loss"}.get(name, name)
        return draw_path(self.alphas_, self.scores_, norms, label=label, chosen=self.alpha_)

    def _alphas(self, problem: Problem) -> Array:
        if self.Cs is None:
            return as_alphas(self.alphas, problem)
        given: Any = self.Cs
        if np.ndim(given) == 0:
            return as_alphas(given, problem)
        K, S = problem.n_classes, problem.total_weight
        Cs = [check_real(f"Cs[{i}]", C, "positive", above=0.0) for i, C in enumerate(given)]
        return as_alphas([penalty_and_C(C, K, S) for C in Cs], problem)

    def _judge_folds(
        self,
        pairs: list[tuple[Any, Any]],
        problem: Problem,
        X: Any,
        y: Any,
        sample_weight: Any,
        classes: Any,
    ) -> Judge:
        s = None if sample_weight is None else check_weights(sample_weight, X.shape[0])
        if self.class_weight is not None:  # fits are weighted by class, scores are not
            plain = encode(y, X.shape[0], None, sample_weight)
            S = float(plain.weights.sum())
            problem = replace(
                problem, labels=plain.labels, weights=plain.weights / S, total_weight=S, cache={}
            )
        parts = [np.asarray(others) for _, others in pairs]
        rows = [
            (
                _safe_indexing(X, part),
                _safe_indexing(y, part),
                None if s is None else s[part],
            )
            for part in parts
            if not self._scores_itself()
        ]
        return self._judge([problem.on(part) for part in parts], rows, classes, X.dtype)

    def _judge(
        self, held_out: list[Problem], rows: list[tuple[Any, Any, Any]], classes: Any, dtype: Any
    ) -> Judge:
        if self._scores_itself():
            return _OwnScores(self.scoring or "accuracy", held_out)
        intercept = held_out[0].design.intercept
        return _OtherScores(_scorer(self.scoring), rows, classes, intercept, dtype)

    def _scores_itself(self) -> bool:
        return self.scoring is None or (
            isinstance(self.scoring, str) and self.scoring in _OWN_SCORES
        )

    def _last_fit(
        self,
        fitter: Fitter,
        problem: Problem,
        results: list[Result],
        validation: Problem | None,
    ) -> Result | None:
        """The fit whose weights become the model's; None to average the folds'."""
        if validation is not None:
            return results[0]
        if not self.refit:
            return None
        mean = np.mean([result.W for result in results], axis=0)
        return fitter.fit([problem], [mean])[0]

    def _store(
        self,
        dtype: Any,
        problem: Problem,
        targets: Targets,
        alphas: Array,
        scores: list[Array],
        path: list[list[Result]],
        best: int,
        last: Result | None,
    ) -> None:
        # All at once and at the end: a fit that fails leaves the last one whole.
        K, S, intercept = problem.n_classes, problem.total_weight, problem.design.intercept
        self.classes_ = targets.classes
        self.alphas_, self.alpha_ = alphas, float(alphas[best])
        self.Cs_ = np.array([penalty_and_C(alpha, K, S) for alpha in alphas])
        self.C_ = float(self.Cs_[best])
        self.scores_ = np.array(scores).T
        by_fold = list(zip(*path, strict=True))
        self.n_iter_ = np.array([[result.n_iter for result in fold] for fold in by_fold])
        self.coefs_paths_ = np.array(
            [[_with_intercept(result.W, intercept, dtype) for result in fold] for fold in by_fold]
        )
        W = last.W if last is not None else np.mean([result.W for result in path[best]], axis=0)
        self.coef_, self.intercept_ = to_coef(W, intercept, dtype)
        self.history_ = None if last is None else last.history
        self.status_ = None if last is None else last.status
        self._alpha, self._total_weight = self.alpha_, S


@dataclass(frozen=True)
class _OwnScores:
    """Scores that a pass over the rows held out yields, all folds in one."""

    scoring: str
    held_out: list[Problem]

    def __call__(self, fitter: Fitter, weights: list[Array]) -> Array:
        column, sign = _OWN_SCORES[self.scoring]
        return np.asarray(sign * fitter.evaluate(self.held_out, weights)[:, column])


@dataclass(frozen=True)
class _OtherScores:
    """Scores of scikit-learn's, or of the user's, for a fitted model: X, y and weights a fold."""

    scoring: Any
    rows: list[tuple[Any, Any, Any]]
    classes: Any
    intercept: bool
    dtype: Any

    def __call__(self, fitter: Fitter, weights: list[Array]) -> Array:
        return np.array([self._one(W, *rows) for W, rows in zip(weights, self.rows, strict=True)])

    def _one(self, W: Array, X: Any, y: Any, sample_weight: Any) -> float:
        fitted = SoftmaxRegression()
        fitted.classes_ = self.classes
        fitted.coef_, fitted.intercept_ = to_coef(W, self.intercept, self.dtype)
        fitted.n_features_in_ = fitted.coef_.shape[1]
        return _score(fitted, self.scoring, X, y, sample_weight)


def _score(estimator: Any, scoring: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """The score of a fitted model, for any `scoring`."""
    if scoring == "neg_log_loss":
        # As scikit-learn's, and for soft labels as well.
        log_p = estimator.predict_log_proba(X)
        labels = encode_more(y, len(log_p), estimator.classes_, "y", "X")
        w = check_weights(sample_weight, len(log_p))
        return float(w @ label_scores(log_p, labels) / w.sum())
    y, scorer = most_probable(y), _scorer(scoring)
    if sample_weight is None:
        return float(scorer(estimator, X, y))
    return float(scorer(estimator, X, y, sample_weight=sample_weight))


def _scorer(scoring: Any) -> Any:
    if scoring is None or isinstance(scoring, str):
        return get_scorer(scoring or "accuracy")
    if not callable(scoring):
        raise TypeError(f"scoring must be a name, a function or None, got {scoring!r}")
    return scoring


def _means(scores: list[Array]) -> list[float]:
    """Mean scores, an undefined one worse than any other."""
    means = [float(s.mean()) for s in scores]
    if all(np.isnan(means)):
        raise ValueError(f"every score is NaN: {len(means)} of {len(means)} penalties")
    return [-np.inf if np.isnan(mean) else mean for mean in means]


def _with_intercept(W: Array, intercept: bool, dtype: Any) -> Any:
    coef, last = to_coef(W, intercept, dtype)
    return np.column_stack([coef, last]) if intercept else coef
