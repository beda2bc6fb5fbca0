"""`probe`: the protocol of a linear probe, from features to test metrics."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._checks import check_count, check_real
from admm_softmax.estimators import SoftmaxRegression, softmax_path
from admm_softmax.estimators.base import penalty_and_C
from admm_softmax.estimators.coefficients import from_coef
from admm_softmax.kernels.softmax import softmax
from admm_softmax.path.result import Path as SoftmaxPath
from admm_softmax.probes.data import Normalize, Part, part_of
from admm_softmax.probes.metrics import Metric, as_metric, as_multilabel, best_of, bootstrap
from admm_softmax.probes.multilabel import DECIDING, MultiLabelSweep, check_multilabel
from admm_softmax.probes.recipes import Recipe, recipe_of
from admm_softmax.probes.result import Interval, ProbeResult, Shot

REPORTED = ("accuracy", "top5", "mean_per_class", "log_loss")
#: Bounds on max|∇F| where none is given. On MNIST's convolutions (K = 10) 1e-5 took 7 % more time
#: than 1e-4 for 45 C, and gave the validation accuracies of lbfgs after 1,000 iterations. With K
#: classes a class has 1/K of the rows, of which fewer and fewer are wrong, and entries of the
#: gradient are as much smaller. (12,811 × 384, K = 1000, 45 C: under 1e-6, 1e-7 and 1e-8 the best
#: validation accuracies were 0.772, 0.790 and 0.784, in 34, 44 and 74 s; lbfgs reached 0.789.)
LOOSEST_TOL, TOL_TIMES_SQUARED_CLASSES = 1e-5, 0.1


def probe(
    train: Any,
    val: Any = None,
    test: Any = None,
    *,
    recipe: str = "dinov2",
    Cs: Sequence[float] | None = None,
    metric: str | Callable[..., float] | None = None,
    report: Sequence[str | Callable[..., float]] | None = None,
    normalize: Normalize = "none",
    refit: bool | None = None,
    val_share: float | None = None,
    shots: Sequence[int] = (),
    repeats: int = 5,
    samples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    folder: str | Path | None = None,
    **settings: Any,
) -> ProbeResult:
    """Fit under every C, choose by validation rows, refit, and measure on test rows.

    train, val, test : (X, y), or a `.pt`, `.npz`, `.safetensors` or `.h5` file with "features" and
        "labels". X is what `SoftmaxRegression.fit` takes, also a file; tensors on a device stay
        there. y are labels of any kind, or an indicator matrix (n, T): T labels, one C for all.
    recipe : "dinov2" or "clip". Gives Cs, metric, refit and val_share where those are not set;
        see `admm_softmax.probes.RECIPES`.
    Cs : scikit-learn's C to try.
    metric : what decides on the validation rows: "accuracy", "top5", "mean_per_class",
        "log_loss", "macro_f1", "auroc", "map", or a function of class codes and probabilities, of
        which more is better. Among equal values the strongest penalty is chosen. For an indicator
        matrix "map" (the default), "auroc" or a function of it and of probabilities (n, T).
    report : metrics of the test rows: accuracy, top5, mean_per_class, log_loss; or map and auroc.
    normalize : "l2" makes rows of length one, block by block; "standardize" takes columns in
        units of their standard deviation, which is implied and copies nothing.
    refit : whether the final model is fitted to training and validation rows, under the same C.
    val_share : without `val`: the share of the training rows, drawn at random, that validates.
    shots, repeats : also choose C and measure with so many training rows per class, `repeats`
        draws each; by `metric`, on the test rows if there are any, else on validation rows.
    samples, level : bootstrap samples of the test rows (0 for none), and level of the intervals.
    seed, folder : of everything that is drawn; keeps fits, so that a killed call goes on.
    **settings : of `SoftmaxRegression` for every fit: tol, max_iter, solver, class_weight, ….
        Without one, tol is 0.1 / K², and 1e-5 at most: the published recipes ask for the minimum.

    >>> from sklearn.datasets import load_digits
    >>> import admm_softmax
    >>> X, y = load_digits(return_X_y=True)
    >>> found = admm_softmax.probe((X[:900], y[:900]), test=(X[900:], y[900:]), Cs=[1e-4, 1e-3])
    >>> found.C, round(found.test["accuracy"].value, 2)
    (0.001, 0.93)
    """
    began, chosen = time.perf_counter(), recipe_of(recipe, Cs=Cs, refit=refit, val_share=val_share)
    check_count("samples", samples, "a whole number ≥ 0", least=0)
    parts = _parts(train, val, test, normalize, chosen.val_share, seed)
    others = {"shots": shots, "folder": folder}
    sweep = _sweep_of(parts, chosen, metric, normalize, settings, others)
    found = _evaluated(sweep, parts, chosen, report, (shots, repeats), (samples, level), seed)
    return replace(found, recipe=recipe, seconds=time.perf_counter() - began)


class _Parts(NamedTuple):
    """Rows to fit, to choose by, and to measure on."""

    rows: Part
    held_out: Part
    tested: Part | None


def _parts(
    train: Any, val: Any, test: Any, normalize: Normalize, val_share: float, seed: int
) -> _Parts:
    if normalize not in ("none", "l2", "standardize"):
        raise ValueError(f"normalize must be 'none', 'l2' or 'standardize', got {normalize!r}")
    rows = part_of(train, normalize, "train")
    rows, held_out = _split(rows, val_share, seed) if val is None else (
        rows, part_of(val, normalize, "val")
    )  # fmt: skip
    return _Parts(rows, held_out, None if test is None else part_of(test, normalize, "test"))


def _sweep_of(
    parts: _Parts,
    chosen: Recipe,
    metric: str | Callable[..., float] | None,
    normalize: Normalize,
    settings: dict[str, Any],
    others: dict[str, Any],
) -> Any:
    """The sweep over C for the labels at hand; both kinds have the same methods."""
    tried = _checked_Cs(chosen.Cs)
    if parts.rows.labels.ndim == 2:
        check_multilabel(parts, normalize, settings, others)
        return MultiLabelSweep(tried, as_multilabel(metric or DECIDING), settings)
    decides, folder = as_metric(metric or chosen.metric), others["folder"]
    scaled = {"standardize": normalize == "standardize", **settings}
    return _Sweep(tried, decides, scaled, Path(folder) if folder else None)


def _evaluated(
    sweep: Any,
    parts: _Parts,
    chosen: Recipe,
    report: Sequence[str | Callable[..., float]] | None,
    draws: tuple[Sequence[int], int],
    bootstraps: tuple[int, float],
    seed: int,
) -> ProbeResult:
    """The choice among the C, and what the final model reaches."""
    rows, held_out, tested = parts
    wanted = [sweep.as_metric(each) for each in (sweep.reported if report is None else report)]
    found = sweep.run(rows, held_out, "sweep")
    final = sweep.refit(rows, held_out, found, chosen.refit)
    return ProbeResult(
        recipe="",
        source=chosen.source,
        metric=sweep.metric.name,
        Cs=sweep.Cs,
        alphas=found.alphas,
        val_scores=found.scores,
        best=found.best,
        test=_measured(sweep, final, tested, wanted, *bootstraps, seed),
        shots=_few_shots(sweep, rows, held_out, tested or held_out, *draws, seed),
        n_train=rows.design.n_rows,
        n_val=held_out.design.n_rows,
        n_test=0 if tested is None else tested.design.n_rows,
        seconds=0.0,
        estimator=final,
    )


@dataclass(frozen=True)
class _Found:
    """A sweep: α and score of every C, the best, and the fits."""

    alphas: Array
    scores: Array
    best: int
    path: SoftmaxPath
    #: Where the fit of each C is in the path.
    places: Any

    @property
    def coefficients(self) -> tuple[Any, Any]:
        """Those of the best fit."""
        place = self.places[self.best]
        return self.path.coefs[place], self.path.intercepts[place]


@dataclass(frozen=True)
class _Sweep:
    """Fits under every C, and the choice among them."""

    Cs: Array
    metric: Metric
    settings: dict[str, Any]
    folder: Path | None
    reported = REPORTED
    as_metric = staticmethod(as_metric)

    def run(self, rows: Part, validation: Part, name: str) -> _Found:
        """Fit to some rows under every C, and choose by others."""
        n, K = len(rows.labels), rows.of_labels(lambda y: len(np.unique(y)))
        alphas = np.array([penalty_and_C(C, K, n) for C in self.Cs])
        with warnings.catch_warnings():
            # scikit-learn takes one row per class for a regression.
            warnings.filterwarnings("ignore", "The number of unique classes is greater")
            path = softmax_path(
                rows.design, rows.labels, alphas.tolist(), **self._settings(K), **self._kept(name)
            )
        places = np.array([int(np.abs(np.log(path.alphas / alpha)).argmin()) for alpha in alphas])
        codes = validation.codes(path.classes, "val")
        fits = zip(path.coefs, path.intercepts, strict=True)
        scores = np.array(
            [validation.measured(self.metric, codes, _proba(validation, *fit, K)) for fit in fits]
        )[places]
        best = best_of(self.Cs, self.metric.sign * scores)
        return _Found(alphas, scores, best, path, places)

    def refit(self, rows: Part, validation: Part, found: _Found, both: bool) -> SoftmaxRegression:
        """The model under the C chosen, of the training rows or of all, from zero.

        A start from the sweep would leave the model near one that has seen no validation rows:
        where rows can be separated, a gradient is small long before the minimum. With 1,000
        classes of 14 rows such a refit had 0.71 to 0.81 of the test rows right, and one from
        zero 0.93.
        """
        fitted = rows.with_more(validation) if both else rows
        settings = self._settings(len(found.path.classes))
        model = SoftmaxRegression(C=float(self.Cs[found.best]), **settings, **self._kept("refit"))
        return model.fit(fitted.design, fitted.labels)

    def judged(self, model: Any, part: Part) -> tuple[Any, Any]:
        """Class codes of rows to measure on, and their probabilities."""
        return part.codes(model.classes_, "test"), model.predict_proba(part.design)

    def _settings(self, n_classes: int) -> dict[str, Any]:
        """Those of every fit, with a tol for so many classes unless one is given."""
        return {"tol": min(LOOSEST_TOL, TOL_TIMES_SQUARED_CLASSES / n_classes**2), **self.settings}

    def _kept(self, name: str) -> dict[str, Any]:
        return {} if self.folder is None else {"checkpoint": self.folder / name}


def _proba(part: Part, coef: Any, intercept: Any, n_classes: int) -> Any:
    W = from_coef(coef, intercept, n_classes, True)
    return part.design.map_scores(W, lambda scores: softmax(scores)[0])


def _checked_Cs(Cs: Any) -> Array:
    found = np.array([check_real("Cs", C, "positive", above=0.0) for C in np.atleast_1d(Cs)])
    if not len(found):
        raise ValueError("Cs must hold at least one number, got none")
    return found


def _split(rows: Part, share: float, seed: int) -> tuple[Part, Part]:
    """Training rows, and a share of them, drawn at random, to validate."""
    n = len(rows.labels)
    check_real("val_share", share, "between 0 and 1", above=0.0)
    count = int(share * n)
    if not 0 < count < n:
        raise ValueError(f"val_share must leave rows on both sides, got {share} of {n} rows")
    order = np.random.default_rng(seed).permutation(n)
    return rows.at(np.sort(order[count:])), rows.at(np.sort(order[:count]))


def _measured(
    sweep: _Sweep | MultiLabelSweep,
    model: Any,
    tested: Part | None,
    wanted: Sequence[Metric],
    samples: int,
    level: float,
    seed: int,
) -> dict[str, Interval]:
    """Metrics of the final model on the test rows."""
    if tested is None:
        return {}
    codes, P = sweep.judged(model, tested)
    drawn: dict[str, Any] = {"samples": samples, "level": level, "seed": seed}
    return {
        each.name: Interval(*tested.measured(partial(bootstrap, each, **drawn), codes, P))
        for each in wanted
    }


def _few_shots(
    sweep: _Sweep,
    rows: Part,
    validation: Part,
    tested: Part,
    shots: Sequence[int],
    repeats: int,
    seed: int,
) -> tuple[Shot, ...]:
    """Draws of few rows per class: C chosen on the validation rows, and the metric."""
    found = []
    for size in shots:
        check_count("shots", size)
        for repeat in range(check_count("repeats", repeats)):
            places = rows.of_labels(partial(_drawn, size, [seed, size, repeat]))
            drawn = rows.at(np.sort(places))
            result = sweep.run(drawn, validation, f"shots-{size}-{repeat}")
            classes = result.path.classes
            P = _proba(tested, *result.coefficients, len(classes))
            codes = tested.codes(classes, "test")
            value = tested.measured(sweep.metric, codes, P)
            found.append(Shot(size, repeat, float(sweep.Cs[result.best]), value))
    return tuple(found)


def _drawn(size: int, seed: Any, labels: Any) -> Any:
    """Positions of so many rows of each class, at random."""
    random = np.random.default_rng(seed)
    _, codes = np.unique(labels, return_inverse=True)
    counts = np.array(np.bincount(codes).tolist())
    if counts.min() < size:
        raise ValueError(
            f"shots must be at most {counts.min()}, the rows of the rarest class, got {size}"
        )
    firsts = np.cumsum(counts) - counts
    ranks = [
        first + random.choice(n, size, replace=False)
        for first, n in zip(firsts, counts, strict=True)
    ]
    return np.argsort(codes, kind="stable")[np.concatenate(ranks)]
