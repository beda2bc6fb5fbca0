"""The demo: digits, against scikit-learn's LogisticRegression on the same split.

On data this small the time of a fit depends on more than the method, so the comparison gives
scikit-learn what it can use. BLAS's threads can slow a small fit down tenfold: a peer runs with
the better of one BLAS thread and one per core. That is chosen by fits before the clock starts,
which warm it up as well. Then all methods take turns, and the medians are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, log_loss
from sklearn.model_selection import train_test_split

from admm_softmax._parallel import blas_threads, cpu_count
from admm_softmax.estimators import SoftmaxRegression
from admm_softmax.plots.confusion import draw_confusion
from admm_softmax.plots.images import draw_coef, draw_predictions
from admm_softmax.problem import Problem
from admm_softmax.report.page import Figure, Page, Section, Table, write_page
from admm_softmax.solvers import ADMM

#: Weak regularisation, the same for both libraries.
ALPHA = 1e-3
#: scikit-learn's solvers for these data.
PEERS = ("lbfgs", "newton-cg", "newton-cholesky")
#: The choice of threads ends after the turn in which so many seconds are over, but only where a
#: turn takes so many does one suffice.
PATIENCE, LONG_TURN = 1.0, 10.0
#: The method whose fit is drawn.
SHOWN_MODEL = "ours, 'admm'"


@dataclass(frozen=True)
class Method:
    """A name, what makes an unfitted model, and the BLAS threads of a peer (None: ours)."""

    name: str
    make: Callable[[], Any]
    blas: int | None = None

    def fit(self, split: dict[str, Any]) -> Any:
        """A model fitted on the training rows."""
        with nullcontext() if self.blas is None else blas_threads(self.blas):
            return self.make().fit(split["X"], split["y"])

    @property
    def label(self) -> str:
        """The name; of a peer, library, solver and threads on lines of their own in the cell."""
        if self.blas is None:
            return self.name
        name = self.name.replace(", ", ",\n")
        return f"{name}\n({self.blas} BLAS thread{'s' if self.blas > 1 else ''})"


@dataclass(frozen=True)
class Row:
    """One method's line in the table."""

    method: str
    seconds: float
    iterations: int
    objective: float
    test_loss: float
    test_accuracy: float

    def cells(self) -> list[str]:
        """The figures as they are printed."""
        return [
            self.method,
            f"{self.seconds:.3f}",
            str(self.iterations),
            f"{self.objective:.6f}",
            f"{self.test_loss:.4f}",
            f"{100 * self.test_accuracy:.2f} %",
        ]


def run_demo(out: Path, *, repeats: int = 5) -> tuple[list[Row], Path]:
    """Train, compare, and write plots and `report.html` into `out`."""
    split = _split()
    out.mkdir(parents=True, exist_ok=True)
    methods = _methods(split)
    seconds = _medians([partial(method.fit, split) for method in methods], repeats)
    models = {method.name: _final(method, split) for method in methods}
    rows = [
        _row(method, took, models[method.name], split)
        for method, took in zip(methods, seconds, strict=True)
    ]
    page = Page(
        title="Digits: softmax regression against scikit-learn",
        summary=_summary(rows, split),
        sections=[_comparison(rows, repeats), *_story(models[SHOWN_MODEL], split)],
    )
    return rows, write_page(page, out / "report.html")


def best_threads(fit: Callable[[int], object], *, is_warm: bool = False) -> int:
    """The number of threads, one or one per core, with which `fit(threads)` is faster.

    A first fit does not count, unless the caller has made one: a cold one is slower. Then the
    two take turns, every other turn in the opposite order: three turns, or two where they last
    longer than PATIENCE, or one longer than LONG_TURN. The least time of each is compared.
    """
    order = sorted({1, cpu_count()})
    if not is_warm:
        fit(order[-1])
    least, start = dict.fromkeys(order, float("inf")), time.perf_counter()
    for turn in range(3):
        for threads in order:
            least[threads] = min(least[threads], _seconds(partial(fit, threads)))
        order.reverse()
        if time.perf_counter() - start > (PATIENCE if turn else LONG_TURN):
            break
    return min(least, key=least.__getitem__)


def _methods(split: dict[str, Any]) -> list[Method]:
    """Ours, and the peers with the threads that suit them; all have run once."""
    ours = partial(SoftmaxRegression, ALPHA, max_iter=2000)
    methods = [
        Method("ours, 'auto'", ours),
        Method(SHOWN_MODEL, partial(ours, solver="admm")),
        Method("ours, the paper's ADMM", partial(ours, solver=ADMM(rho=0.02))),
    ]
    for method in methods:
        method.fit(split)
    C = 1.0 / (len(split["X"]) * ALPHA)
    for solver in PEERS:
        make = partial(LogisticRegression, C=C, solver=solver, max_iter=2000)
        with_threads = partial(Method, f"scikit-learn, {solver}", make)
        methods.append(with_threads(_best_for(with_threads, split)))
    return methods


def _best_for(with_threads: Callable[[int], Method], split: dict[str, Any]) -> int:
    return best_threads(lambda threads: with_threads(threads).fit(split))


def _split() -> dict[str, Any]:
    X, y = load_digits(return_X_y=True)
    X_rest, X_test, y_rest, y_test = train_test_split(
        X / 16.0, y, test_size=0.25, random_state=0, stratify=y
    )
    X, X_val, y, y_val = train_test_split(
        X_rest, y_rest, test_size=0.2, random_state=0, stratify=y_rest
    )
    return {"X": X, "y": y, "X_val": X_val, "y_val": y_val, "X_test": X_test, "y_test": y_test}


def _medians(fits: list[Callable[[], Any]], repeats: int) -> list[float]:
    """The median seconds of each fit; they take turns."""
    times = [[_seconds(fit) for fit in fits] for _ in range(repeats)]
    return [float(median) for median in np.median(times, axis=0)]


def _seconds(fit: Callable[[], object]) -> float:
    begin = time.perf_counter()
    fit()
    return time.perf_counter() - begin


def _final(method: Method, split: dict[str, Any]) -> Any:
    """The model to look at. Ours gets validation rows too."""
    model = method.fit(split)
    if isinstance(model, SoftmaxRegression):
        # Validation rows are for the plot, not for the choice of an iterate.
        model.set_params(keep="last").fit(
            split["X"], split["y"], X_val=split["X_val"], y_val=split["y_val"]
        )
    return model


def _row(method: Method, seconds: float, model: Any, split: dict[str, Any]) -> Row:
    problem = Problem.of(split["X"], split["y"], ALPHA)
    W = np.vstack([model.coef_.T, model.intercept_])
    return Row(
        method=method.label,
        seconds=seconds,
        iterations=int(np.max(model.n_iter_)),
        objective=problem.objective(W),
        test_loss=float(log_loss(split["y_test"], model.predict_proba(split["X_test"]))),
        test_accuracy=float(model.score(split["X_test"], split["y_test"])),
    )


def _story(model: SoftmaxRegression, split: dict[str, Any]) -> list[Section]:
    """What happened in one fit, what the model looks at, and what it gets wrong."""
    predicted = model.predict(split["X_test"])
    counts = confusion_matrix(split["y_test"], predicted, labels=model.classes_)
    n_val, n_test = len(split["y_val"]), len(split["y_test"])
    wrong = int(np.sum(predicted != split["y_test"]))
    return [
        Section(
            "How did the fit go?",
            [
                "The method 'admm', step by step: ADMM first, and L-BFGS from where it slows. It "
                "learns from the training digits only; the curves named validation are measured "
                f"on {n_val} other digits, and decide nothing."
            ],
            figures=[
                Figure("history", "Loss, accuracy, gradient and residuals.", model.history_.plot())
            ],
        ),
        Section(
            "What does the model look at?",
            figures=[
                Figure(
                    "coefficients",
                    "The coefficients of each digit as an image: blue pixels speak for it, red "
                    "ones against it.",
                    draw_coef(model.coef_, (8, 8), model.classes_),
                )
            ],
        ),
        Section(
            "What does it get wrong?",
            [f"{wrong} of the {n_test} test digits, which no fit has seen."],
            figures=[
                Figure(
                    "predictions",
                    "Test digits, mistakes first: in red what it is, and what the model says.",
                    draw_predictions(split["X_test"], split["y_test"], predicted, (8, 8)),
                ),
                Figure(
                    "confusion",
                    "Test digits by true and predicted class.",
                    draw_confusion(counts, model.classes_),
                ),
            ],
        ),
    ]


def _comparison(rows: list[Row], repeats: int) -> Section:
    table = Table(
        columns=["method", "seconds", "iterations", "objective", "test loss", "test accuracy"],
        rows=[row.cells() for row in rows],
        caption=f"The same split, the same penalty (alpha = {ALPHA:g}), default tolerances. "
        f"Seconds are medians of {repeats} fits; the methods took turns, and had run before. "
        "scikit-learn ran with the better of one BLAS thread and one per core. "
        "A lower objective is a more exact fit.",
    )
    return Section("How does it compare with scikit-learn?", tables=[table])


def _summary(rows: list[Row], split: dict[str, Any]) -> str:
    best = min(row.objective for row in rows)
    ours = rows[0]
    return (
        f"{len(split['X'])} handwritten digits to train on, {len(split['X_val'])} to validate on, "
        f"{len(split['X_test'])} to test on, 64 pixels each, ten classes. "
        f"SoftmaxRegression ends at {ours.objective:.6f}, "
        f"{(ours.objective - best) / best:.1e} relative above the lowest objective in the table, "
        f"and classifies {100 * ours.test_accuracy:.2f} % of the test digits correctly."
    )
