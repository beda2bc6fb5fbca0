"""The tables of a reproduction: accuracies next to the paper's, seconds, progress over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from admm_softmax.experiments.protocol import Outcome, by_method
from admm_softmax.experiments.reproduce import Better, Results
from admm_softmax.report.page import Table


def comparison(results: Results) -> Table:
    """Misfit and accuracy of each method, the paper's and ours."""
    rows = []
    for method, outcomes in by_method(results.outcomes).items():
        paper = results.setting.reported[method]
        rows.append(
            [
                method,
                f"{paper.misfit:.3f}, {100 * paper.accuracy:.2f} %",
                _spread([o.test_loss for o in outcomes], 3),
                _spread([100 * o.test_accuracy for o in outcomes], 2, " %"),
                _spread([100 * o.val_accuracy for o in outcomes], 2, " %"),
                _spread([100 * o.train_accuracy for o in outcomes], 2, " %"),
            ]
        )
    return Table(
        ["method", "the paper's", "our misfit", "our accuracy", "validation", "training"],
        rows,
        "Misfit (mean cross entropy) and accuracy on the 10,000 test images, the paper's and ours; "
        "validation and training accuracy of the same iterates. Mean ± standard deviation over the "
        "seeds.",
    )


def speed(results: Results) -> Table:
    """Iterations of each method, and seconds per iteration."""
    rows = []
    for method, outcomes in by_method(results.outcomes).items():
        rows.append(
            [
                method,
                _endings(outcomes),
                f"{np.median([o.iterations for o in outcomes]):.0f}",
                f"{np.median([o.kept_iteration for o in outcomes]):.0f}",
                f"{np.median([o.setup_seconds for o in outcomes]):.1f}",
                "–" if (each := median_seconds(outcomes)) is None else f"{each:.3f}",
            ]
        )
    return Table(
        ["method", "ended", "iterations", "kept", "first, s", "others, s"],
        rows,
        "How the runs ended, and after how many seconds; the number of iterations (SGD: epochs); "
        "the iteration kept; the seconds of the first iteration (for ADMM with Gram matrix and "
        "factorisation) and per iteration after it, which is more where the line search tries "
        "several steps. Medians over the seeds.",
    )


def progress(results: Results) -> Table:
    """The best validation accuracy of each method at several times."""
    times = [share * results.options.budget for share in (0.1, 0.2, 1 / 3, 2 / 3)]
    rows = []
    for method, outcomes in by_method(results.outcomes).items():
        cells = []
        for time in (*times, np.inf):
            best = [_best_within(outcome, time) for outcome in outcomes]
            known = [accuracy for accuracy in best if accuracy is not None]
            cells.append(f"{100 * mean(known):.2f} %" if len(known) == len(best) else "–")
        rows.append([method, *cells])
    return Table(
        ["method", *(f"{round(time, 3):g} s" for time in times), "the end"],
        rows,
        "The best validation accuracy within this many seconds, mean over the seeds.",
    )


def _best_within(outcome: Outcome, seconds: float) -> float | None:
    """The best validation accuracy within these seconds; None before the first iterate."""
    records = zip(outcome.history["seconds"], outcome.history["val_accuracy"], strict=True)
    return max((accuracy for second, accuracy in records if second <= seconds), default=None)


def better(results: Results) -> Table:
    """Results on the test rows with alpha chosen by the library."""
    rows = []
    for chosen in by_penalty(results):
        rows.append(
            [
                f"L = {chosen[0].penalty}",
                ", ".join(f"{row.alpha:.1e}" for row in chosen),
                _spread([row.test_loss for row in chosen], 3),
                _spread([100 * row.test_accuracy for row in chosen], 2, " %"),
                _spread([row.seconds for row in chosen], 0),
            ]
        )
    return Table(
        ["penalty", "alpha", "test misfit", "test accuracy", "seconds"],
        rows,
        "The same features and rows. Seconds are those of the whole path of 20 fits.",
    )


def leak(results: Results) -> Table:
    """Accuracies under the clean split and under the authors'."""
    rows = []
    clean = by_method([outcome for outcome in results.outcomes if outcome.seed == 0])
    for method, outcomes in by_method(results.authors_split).items():
        accuracies = [
            accuracy
            for outcome in (*clean[method], *outcomes)
            for accuracy in (outcome.val_accuracy, outcome.test_accuracy)
        ]
        rows.append([method, *(f"{100 * accuracy:.2f} %" for accuracy in accuracies)])
    return Table(
        ["method", "clean: validation", "test", "authors': validation", "test"],
        rows,
        "Accuracy of the iterate with the best validation accuracy, seed 0; validation and test "
        "rows are the same under both splits.",
    )


def median_seconds(outcomes: Sequence[Outcome]) -> float | None:
    """The median seconds per iteration after the first; None if there is no second one."""
    known = [o.seconds_per_iteration for o in outcomes if o.seconds_per_iteration is not None]
    return float(np.median(known)) if known else None


def _endings(outcomes: Sequence[Outcome]) -> str:
    """How the runs ended: "time limit, 300 s", one entry per status."""
    endings = []
    for status in dict.fromkeys(outcome.status for outcome in outcomes):
        seconds = np.median([o.seconds for o in outcomes if o.status == status])
        endings.append(f"{status.replace('_', ' ')}, {seconds:.0f} s")
    return "; ".join(endings)


def by_penalty(results: Results) -> list[list[Better]]:
    """The results with alpha chosen by the library, one list per penalty."""
    penalties = dict.fromkeys(row.penalty for row in results.better)
    return [[row for row in results.better if row.penalty == name] for name in penalties]


def _spread(values: Sequence[float], digits: int, unit: str = "") -> str:
    """Mean and standard deviation: "97.50 ± 0.10 %"."""
    spread = f" ± {deviation(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{spread}{unit}"


def mean(values: Sequence[float]) -> float:
    """The mean, over seeds for example."""
    return float(np.mean(values))


def deviation(values: Sequence[float]) -> float:
    """The standard deviation over seeds; zero for a single seed."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
