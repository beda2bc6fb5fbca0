"""The demo: digits, against scikit-learn's LogisticRegression on the same split."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from admm_softmax.estimators import SoftmaxRegression
from admm_softmax.problem import Problem
from admm_softmax.report.figures import confusion, digits_and_predictions, weight_images
from admm_softmax.report.page import Figure, Page, Section, Table, write_page
from admm_softmax.solvers import ADMM

#: Weak regularisation that both libraries are given.
ALPHA = 1e-3


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


def run_demo(out: Path, *, repeats: int = 3) -> tuple[list[Row], Path]:
    """Train, compare, and write plots and `report.html` into `out`."""
    split = _split()
    out.mkdir(parents=True, exist_ok=True)
    rows, fitted = [], {}
    for name, make in _methods(len(split["X"])).items():
        seconds, model = _timed(make, split, repeats)
        fitted[name] = model
        rows.append(_row(name, seconds, model, split))
    main = fitted["ours, 'admm'"]
    page = Page(
        title="Digits: softmax regression against scikit-learn",
        summary=_summary(rows, split),
        sections=[Section(tables=[_table(rows)], figures=_figures(main, split))],
    )
    return rows, write_page(page, out / "report.html")


def _methods(n_rows: int) -> dict[str, Callable[[], Any]]:
    C = 1.0 / (n_rows * ALPHA)
    settings: dict[str, Any] = {"max_iter": 2000}
    return {
        "ours, 'auto'": lambda: SoftmaxRegression(ALPHA, **settings),
        "ours, 'admm'": lambda: SoftmaxRegression(ALPHA, solver="admm", **settings),
        "ours, the paper's ADMM": lambda: SoftmaxRegression(
            ALPHA, solver=ADMM(rho=0.02), **settings
        ),
        "scikit-learn, lbfgs": lambda: LogisticRegression(C=C, **settings),
        "scikit-learn, newton-cg": lambda: LogisticRegression(C=C, solver="newton-cg", **settings),
    }


def _split() -> dict[str, Any]:
    X, y = load_digits(return_X_y=True)
    X_rest, X_test, y_rest, y_test = train_test_split(
        X / 16.0, y, test_size=0.25, random_state=0, stratify=y
    )
    X, X_val, y, y_val = train_test_split(
        X_rest, y_rest, test_size=0.2, random_state=0, stratify=y_rest
    )
    return {"X": X, "y": y, "X_val": X_val, "y_val": y_val, "X_test": X_test, "y_test": y_test}


def _timed(make: Callable[[], Any], split: dict[str, Any], repeats: int) -> tuple[float, Any]:
    """The median time of a fit, and a fitted model. Ours then gets validation rows too."""
    times = []
    for _ in range(repeats):
        model = make()
        begin = time.perf_counter()
        model.fit(split["X"], split["y"])
        times.append(time.perf_counter() - begin)
    if isinstance(model, SoftmaxRegression):
        # Validation is drawn, not used to choose: the comparison is of optimisers.
        model.set_params(keep="last").fit(
            split["X"], split["y"], X_val=split["X_val"], y_val=split["y_val"]
        )
    return float(np.median(times)), model


def _row(name: str, seconds: float, model: Any, split: dict[str, Any]) -> Row:
    problem = Problem.of(split["X"], split["y"], ALPHA)
    W = np.vstack([model.coef_.T, model.intercept_])
    return Row(
        method=name,
        seconds=seconds,
        iterations=int(np.max(model.n_iter_)),
        objective=problem.objective(W),
        test_loss=float(log_loss(split["y_test"], model.predict_proba(split["X_test"]))),
        test_accuracy=float(model.score(split["X_test"], split["y_test"])),
    )


def _figures(model: SoftmaxRegression, split: dict[str, Any]) -> list[Figure]:
    predicted = model.predict(split["X_test"])
    return [
        Figure(
            "history",
            "How the fit with solver 'admm' went: ADMM first, L-BFGS from where it slows.",
            model.history_.plot(),
        ),
        Figure(
            "weights",
            "The weights of each class as an image: blue speaks for the class, red against.",
            weight_images(model.coef_, (8, 8), model.classes_),
        ),
        Figure(
            "predictions",
            "Test digits and what the model says; mistakes first, in red.",
            digits_and_predictions(split["X_test"], split["y_test"], predicted, (8, 8)),
        ),
        Figure(
            "confusion",
            "Test rows by true and predicted class.",
            confusion(split["y_test"], predicted, model.classes_),
        ),
    ]


def _table(rows: list[Row]) -> Table:
    return Table(
        columns=["method", "seconds", "iterations", "objective", "test loss", "test accuracy"],
        rows=[row.cells() for row in rows],
        caption=f"The same split, the same penalty (alpha = {ALPHA:g}), default tolerances; "
        "median time of three fits. A lower objective is a more exact fit.",
    )


def _summary(rows: list[Row], split: dict[str, Any]) -> str:
    best = min(row.objective for row in rows)
    ours = rows[0]
    return (
        f"{len(split['X'])} handwritten digits to train on, {len(split['X_test'])} to test on, "
        f"64 pixels each, ten classes. SoftmaxRegression ends at {ours.objective:.6f}, "
        f"{(ours.objective - best) / best:.1e} relative above the lowest objective in the table, "
        f"and classifies {100 * ours.test_accuracy:.2f} % of the test digits rightly."
    )
