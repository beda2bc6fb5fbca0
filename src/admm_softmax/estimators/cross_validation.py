"""`SoftmaxRegressionCV`: a penalty chosen by cross-validation or on validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from admm_softmax._checks import check_count
from admm_softmax._interrupts import held_interrupt
from admm_softmax._parallel import use_threads
from admm_softmax._validation import check_weights
from admm_softmax.design import PartitionedDesign, as_design
from admm_softmax.estimators.base import (
    SoftmaxClassifier,
    alpha_of_C,
    penalty_and_C,
    warn_about_many,
)
from admm_softmax.estimators.coefficients import to_coef
from admm_softmax.estimators.l1_ratio_paths import as_l1_ratios, fit_paths
from admm_softmax.estimators.labels import Targets, encode
from admm_softmax.estimators.routing import Routed, route_fit, route_score, router_of
from admm_softmax.estimators.scoring import (
    HeldOut,
    score,
    scores_identity,
    scores_of_folds,
    scores_of_rows,
)
from admm_softmax.estimators.selection import (
    RatioPath,
    Rule,
    arrays_of,
    check_rule,
    choose_among,
    paths_identity,
    stacked_arrays,
)
from admm_softmax.estimators.sklearn_callbacks import (
    CallbackSupportMixin,
    as_one_task,
    warn_caller,
)
from admm_softmax.estimators.sklearn_parameters import check_settings
from admm_softmax.estimators.splits import fold_pairs
from admm_softmax.estimators.validation_distance import distance
from admm_softmax.kernels.compile_clock import announcing
from admm_softmax.path.alphas import Penalties, as_alphas, as_Cs, middle
from admm_softmax.path.fitter import Fitter
from admm_softmax.path.folds import split
from admm_softmax.plots.path import draw_path
from admm_softmax.problem import Problem
from admm_softmax.solvers import Result, run
from admm_softmax.solvers.auto import as_solver
from admm_softmax.solvers.checkpoint import open_checkpoints
from admm_softmax.storage.identity import as_text


@dataclass(eq=False, repr=False, kw_only=True)
class SoftmaxRegressionCV(CallbackSupportMixin, SoftmaxClassifier):
    """Softmax regression whose penalty is chosen by cross-validation, or on validation rows.

    After scikit-learn's LogisticRegressionCV. All penalties and folds share one Gram matrix
    and few factorisations of it; each fit starts at an extrapolation of the two before it; and
    the fits of all folds share passes over X.

    Parameters
    ----------
    alphas : int or sequence of float
        Penalties to try: a list, or how many to try over a range found from the scale of the
        data and the number of rows. They are fitted from strong to weak.
    Cs : int or sequence of float, optional
        The same in scikit-learn's units; overrides alphas. As there, a number stands for so many
        from 1e-4 to 1e4, and C weighs the sum of a fold's own losses. Infinity is no penalty.
    cv : int, splitter or iterable
        Folds, as in scikit-learn; a number makes stratified folds. Not used with X_val.
    scoring : str, callable or None
        As in scikit-learn, but "neg_log_loss" by default, also of the method `score`. It and
        "accuracy" also take soft labels. None is accuracy.
    refit : bool or "all"
        Whether to fit once more, to all rows, under the best penalty. Otherwise the folds'
        coefficients under that penalty are averaged. With X_val the model is the one that
        did best there; "all" fits it once more, to training and validation rows together.
    patience : int, optional
        End the path when this many penalties in a row have scored worse than the best; the
        weaker ones, which take longest, are then not tried. None tries all.
    l1_ratios : sequence of float, optional
        Values of `l1_ratio` to try, each with its own path of alphas; overrides l1_ratio.
    choose : "best" or "one_standard_error"
        The penalty with the best mean score, or the strongest whose mean score is within one
        standard error of that.
    l1_ratio, penalty, operator, reference, fit_intercept, penalize_intercept
        As in `SoftmaxRegression`.
    standardize, class_weight
        As in `SoftmaxRegression`; deviations and balanced class weights are those of all rows.
    solver, max_iter, tol, n_threads, random_state
        As in `SoftmaxRegression`, for every fit.
    verbose : bool
        Show a progress bar over the path.
    checkpoint, checkpoint_every
        As in `SoftmaxRegression`: fits that have ended are not run again, others go on.
    dual, intercept_scaling, n_jobs, use_legacy_attributes
        For code written for LogisticRegressionCV: accepted where they change nothing.

    Attributes
    ----------
    alpha_, C_ : float
        The penalty with the best mean score (the first among equals), in both units.
    alphas_, Cs_ : arrays
        The penalties tried: as given, in their order; else from strong to weak.
    scores_ : array of shape (n_folds, n_alphas)
        Scores on the rows held out; with X_val there is one fold.
    coefs_paths_ : array of shape (n_folds, n_alphas, K, d + 1)
        Coefficients with intercepts last, if there are any; 1 instead of K for two classes.
    n_iter_ : array of shape (1, n_folds, n_alphas)
        Iterations of every fit.
    l1_ratio_, l1_ratios_ : float, array
        The l1_ratio chosen, and those tried. Where `l1_ratios` was given, alphas_ has a
        leading axis over them (and Cs_, unless Cs was given), scores_ and coefs_paths_ one after
        the folds, and n_iter_ is (n_folds, n_ratios, n_alphas); NaN fills paths that ended early.
    coef_, intercept_, classes_, n_nonzero_, selected_features_, n_features_in_, feature_names_in_
        As in `SoftmaxRegression`.
    history_, status_, best_iteration_
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

    alphas: int | Sequence[float] = field(default=20, kw_only=False)
    Cs: int | Sequence[float] | None = None
    cv: Any = 5
    scoring: Any = "neg_log_loss"
    refit: bool | Literal["all"] = True
    patience: int | None = None
    l1_ratios: Sequence[float] | None = None
    choose: Rule = "best"
    use_legacy_attributes: bool = False

    #: With metadata routing, groups are the splitter's, which asks for them itself.
    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        groups: Any = None,
        **params: Any,
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
        **params
            With scikit-learn's metadata routing: what splitter and scorer ask for. Routing also
            decides whether scores are weighted.
        """
        check_settings(self)
        if self.patience is not None:
            check_count("patience", self.patience, "at least 1 or None")
        with held_interrupt() as hold, use_threads(self.n_threads), announcing(self.verbose):
            rows = HeldOut(X, y, sample_weight)
            routed = route_fit(self, rows, groups, params)
            self._fit(rows, HeldOut(X_val, y_val, sample_weight_val), routed)
        hold.release()
        return self

    @as_one_task
    def _fit(self, rows: HeldOut, validation_rows: HeldOut, routed: Routed) -> None:
        # Folds and scores look at rows and labels again: what is in files is opened once.
        X, y = self._opened(rows.X, rows.y, reset=True)
        rows = rows._replace(X=X, y=y)
        X, targets = self._checked(*rows)
        if validation_rows.X is not None:
            X_val, y_val = self._opened(validation_rows.X, validation_rows.y)
            validation_rows = validation_rows._replace(X=X_val, y=y_val)
        ratios = self._ratios(len(targets.classes))
        problem = self._problem(X, targets, 1.0, ratios[0][1])
        validation = self._validation(problem, targets.classes, *validation_rows)
        pairs: list[tuple[Any, Any]] = []
        if validation is None:
            pairs = fold_pairs(self.cv, X, rows.y, targets, routed.split)
            training = split(problem, pairs)
            to_score = rows._replace(X=X, sample_weight=routed.sample_weight)
            fold_scores = scores_of_folds(
                self.scoring, pairs, problem, to_score, targets.classes, routed.score
            )
        else:
            training = [problem]
            to_score = validation_rows._replace(X=self._rows_to_score(validation_rows, validation))
            fold_scores = scores_of_rows(
                self.scoring, validation, to_score, targets.classes, X.dtype, routed.score
            )
        check_rule(self.choose, len(training))
        # C weighs a sum: with fewer rows than all, the same C is a larger α.
        scales = [
            1.0 if self.Cs is None else problem.total_weight / p.total_weight for p in training
        ]
        plans: list[RatioPath] = []
        for given, own in ratios:
            under = problem
            if own != ratios[0][1]:
                under = problem.with_penalty(self._problem(X, targets, 1.0, own).penalty)
            plans.append(self._plan(under, given, own, len(training), f"ratio-{len(plans)}-"))
        with open_checkpoints(
            self.checkpoint,
            self.checkpoint_every,
            lambda: paths_identity(
                plans,
                scales=as_text(scales),
                class_weight=as_text(self.class_weight),
                **scores_identity(
                    self.scoring, pairs, validation, routed.sample_weight, routed.score
                ),
            ),
        ) as checkpoints:
            for plan in plans:
                plan.fitter.checkpoints = checkpoints
            paths = fit_paths(
                plans, training, fold_scores, scales, self.patience, verbose=bool(self.verbose)
            )
            chosen, best = self._chosen(paths)
            if validation is not None and self.refit == "all":
                last: Result | None = self._fit_to_both(chosen, best, rows, validation_rows)
            else:
                last = self._last_fit(chosen, best, validation)
        self._store(X.dtype, targets, paths, chosen, best, last)
        self._warn(paths, last, [] if validation is None else distance(problem, validation))

    def _ratios(self, n_classes: int) -> list[tuple[float, float]]:
        """Values of l1_ratio to try: as they were given, and in W's units."""
        given = as_l1_ratios(self.l1_ratios, self.l1_ratio)
        in_sklearn_units = self.Cs is not None
        return [(r, self._l1_ratio(r, n_classes, in_sklearn_units)) for r in given]

    def _plan(
        self, problem: Problem, given: float, ratio: float, n_folds: int, prefix: str
    ) -> RatioPath:
        """A path before its fits; `prefix` begins their names in the checkpoints."""
        penalties = self._penalties(problem, ratio)
        fitter = Fitter(
            problem.with_alpha(middle(penalties.fitted)),
            fits=len(penalties.fitted) * n_folds,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=self._seed(),
        )
        fitter.prefix = prefix if self.l1_ratios is not None else ""
        return RatioPath(given, ratio, problem, penalties, fitter)

    def _chosen(self, paths: list[RatioPath]) -> tuple[RatioPath, int]:
        """The best path, and the position of the best penalty among those given."""
        if all(np.isnan(np.array(path.scores)).all() for path in paths):
            what = f"{type(self).__name__}: every score is undefined: the first penalty is taken"
            warn_caller(what, UndefinedMetricWarning)
        return choose_among(paths, self.choose)

    def _warn(self, paths: list[RatioPath], last: Result | None, far: list[str]) -> None:
        fits = [result for path in paths for results in path.fits for result in results]
        if last is not None and not any(last is result for result in fits):
            fits.append(last)
        interrupted = any(path.fitter.scheduler.interrupted for path in paths)
        warn_about_many(fits, self, type(self).__name__, interrupted)
        for words in far:
            warn_caller(f"{type(self).__name__}: {words}", UserWarning)

    def _rows_to_score(self, rows: HeldOut, validation: Problem) -> Any:
        remote = validation.design.is_remote
        return validation.design if remote else self._checked_rows(rows.X, reset=False)

    def score(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """The score that `scoring` names: by default minus the log loss, not the accuracy."""
        weight, more = route_score(self, sample_weight, params)
        check_is_fitted(self)
        X, y = self._opened(X, y)
        return score(self, self.scoring, X, y, weight, **more)

    def get_metadata_routing(self) -> Any:
        """Where metadata go: to this estimator, its splitter and its scorer."""
        return router_of(self)

    def plot(self) -> Any:
        """Draw scores and norms of the coefficients against α; returns the Matplotlib figure."""
        check_is_fitted(self)
        d, place = self.n_features_in_, list(self.l1_ratios_).index(self.l1_ratio_)
        alphas, scores, paths = self.alphas_, self.scores_, self.coefs_paths_
        if self.l1_ratios is not None:
            alphas, scores, paths = alphas[place], scores[:, place], paths[:, place]
        order = np.argsort(-alphas, kind="stable")
        order = order[alphas[order] > 0]  # nor NaN, where the path ended early
        norms = np.linalg.norm(paths[:, order][..., :d], axis=-1).mean(axis=0)
        name = self.scoring if isinstance(self.scoring, str) else "score"
        label = {"neg_log_loss": "negative log loss"}.get(name, name)
        chosen = self.alpha_ if self.alpha_ > 0 else None
        return draw_path(alphas[order], scores[:, order], norms, label=label, chosen=chosen)

    def _penalties(self, problem: Problem, ratio: float) -> Penalties:
        if self.Cs is None:
            return Penalties.of(as_alphas(self.alphas, problem))
        K, S = problem.n_classes, problem.total_weight
        return Penalties.of([alpha_of_C(C, K, S, ratio) for C in as_Cs(self.Cs)])

    def _last_fit(self, chosen: RatioPath, best: int, validation: Problem | None) -> Result | None:
        """The fit whose coefficients become the model's; None to average those of the folds."""
        results, fitter = chosen.at(best), chosen.fitter
        if validation is not None:
            return results[0]
        if not self.refit:
            return None
        problem = chosen.problem.with_alpha(float(chosen.penalties.given[best]))
        mean = np.mean([result.W for result in results], axis=0)
        try:
            return fitter.fit([problem], [mean], f"refit-{problem.penalty.alpha:.6e}")[0]
        except KeyboardInterrupt:  # before it had moved
            fitter.scheduler.interrupted = True
            return None

    def _fit_to_both(self, chosen: RatioPath, best: int, rows: HeldOut, others: HeldOut) -> Result:
        """Fit to training and validation rows together, without copying X."""
        problem, alpha = chosen.problem, float(chosen.penalties.given[best])
        if problem.design.is_remote:
            raise ValueError("refit='all' needs rows on this machine, got rows on others")
        more = as_design(
            self._checked_rows(others.X, reset=False), intercept=problem.design.intercept
        )
        # In the units of the fits before it: there alpha was chosen.
        design = PartitionedDesign([problem.design, problem.design.matching(more)])
        parts = ((problem.design, rows.sample_weight), (more, others.sample_weight))
        weights = np.concatenate([check_weights(s, part.n_rows) for part, s in parts])
        y = np.concatenate([np.asarray(rows.y), np.asarray(others.y)])
        targets = encode(y, len(y), self.class_weight, weights)
        both = Problem.of(
            design, targets.labels, sample_weight=targets.weights, n_classes=problem.n_classes
        )
        if self.Cs is not None:  # C weighs a sum, and there are more rows
            alpha *= problem.total_weight / both.total_weight
        both = both.with_penalty(problem.penalty.with_alpha(alpha))
        fitter = chosen.fitter
        return run(
            both,
            as_solver(self.solver, both, tol=self.tol, seed=self._seed()).solver,
            W0=chosen.at(best)[0].W,
            tol=both.penalty.resolution(self.tol),
            max_iter=self.max_iter,
            checkpoint=fitter.checkpoints.slot(f"{fitter.prefix}both-{alpha:.6e}"),
        )

    def _store(
        self,
        dtype: Any,
        targets: Targets,
        paths: list[RatioPath],
        chosen: RatioPath,
        best: int,
        last: Result | None,
    ) -> None:
        # All at once and at the end: a fit that fails leaves the last one whole.
        design, S = chosen.problem.design, chosen.problem.total_weight
        K, alpha = len(targets.classes), float(chosen.penalties.given[best])
        Cs = None if self.Cs is None else as_Cs(self.Cs)
        parts = [arrays_of(path, Cs, dtype) for path in paths]
        shown = parts[0] if self.l1_ratios is None else stacked_arrays(parts, Cs is not None)
        self.alphas_, self.Cs_, self.scores_, self.n_iter_, self.coefs_paths_ = shown
        self.classes_ = targets.classes
        self.l1_ratios_ = np.array([path.l1_ratio for path in paths])
        self.l1_ratio_, self.alpha_ = float(chosen.l1_ratio), alpha
        self.C_ = float(penalty_and_C(alpha, K, S, chosen.ratio) if Cs is None else Cs[best])
        mean = np.mean([result.W for result in chosen.at(best)], axis=0)
        W = design.in_units_of_X(mean if last is None else last.W)
        self.coef_, self.intercept_ = to_coef(W, design.intercept, dtype)
        self.best_iteration_ = None if last is None else last.kept_iteration
        self.history_ = None if last is None else last.history
        self.status_ = None if last is None else last.status
        self._alpha, self._ratio, self._total_weight = self.alpha_, chosen.ratio, S
