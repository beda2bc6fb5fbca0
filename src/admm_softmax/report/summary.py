"""One page about a fit, a sweep or an evaluation: what is in it, and in which words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax.estimators.model_folder import estimator_of, feature_names
from admm_softmax.evaluation import Evaluation
from admm_softmax.report.paths import path_rows
from admm_softmax.report.svg import (
    Line,
    coefficient_image,
    confusion_chart,
    line_chart,
    reliability_chart,
)
from admm_softmax.storage.atomic import replacing

#: Classes in the matrix of confusions, classes and coefficients in tables, at most.
MOST_IN_MATRIX, MOST_CLASSES, MOST_COEFFICIENTS = 30, 50, 6
_FIGURES = {
    "accuracy": ("Accuracy", "share of rows whose class is right"),
    "top_k": ("Top-{k} accuracy", "the right class is among the {k} most probable"),
    "log_loss": ("Log loss", "0 is perfect; surprise at the right class"),
    "brier": ("Brier score", "0 is perfect; squared error of the probabilities"),
    "calibration_error": ("Calibration error", "how far confidence is from accuracy"),
}


@dataclass(frozen=True)
class Panel:
    """A chart with its heading and a sentence."""

    heading: str
    words: str
    chart: str


@dataclass
class Summary:
    """What the template shows; parts that are not known are empty."""

    title: str
    lead: str
    cards: list[tuple[str, str]] = field(default_factory=list)
    figures: list[tuple[str, str, str, str]] = field(default_factory=list)
    level: str = ""
    panels: list[Panel] = field(default_factory=list)
    matrix: Panel | None = None
    classes: list[tuple[str, ...]] = field(default_factory=list)
    hidden_classes: int = 0
    coefficients: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)
    images: list[tuple[str, str]] = field(default_factory=list)
    details: dict[str, str] = field(default_factory=dict)


def write_summary(
    path: Path,
    model: Any = None,
    metadata: Mapping[str, Any] | None = None,
    evaluation: Evaluation | None = None,
    *,
    title: str | None = None,
    image_shape: tuple[int, int] | None = None,
) -> Path:
    """Write the page of a model, of an evaluation, or of both; returns its path.

    model, metadata : a fitted model, and what its folder says about it
    image_shape : where features are the pixels of an image, its height and width
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    if model is None and evaluation is None:
        raise ValueError("a report needs a model or an evaluation, got neither")
    content = Summary(title or _title(model, evaluation), _lead(model, metadata, evaluation))
    if evaluation is not None:
        _add_evaluation(content, evaluation)
    if model is not None:
        _add_model(content, model, metadata or {}, image_shape)
    environment = Environment(
        loader=PackageLoader("admm_softmax.report"), autoescape=True, undefined=StrictUndefined
    )
    template = environment.get_template("summary.html")
    html = template.render(page=content, today=date.today().isoformat())
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_text(html, encoding="utf-8")
    return path


def _title(model: Any, evaluation: Evaluation | None) -> str:
    classes = evaluation.classes if model is None and evaluation else estimator_of(model).classes_
    few = ", ".join(str(name) for name in list(classes)[:4])
    return f"Telling {few}{' …' if len(classes) > 4 else ''} apart"


def _lead(model: Any, metadata: Mapping[str, Any] | None, evaluation: Evaluation | None) -> str:
    """What someone who reads nothing else should know."""
    words = []
    if model is not None:
        last = estimator_of(model)
        rows = (metadata or {}).get("data", {}).get("n_rows")
        learnt = f"learnt from {rows:,} examples" if rows else "fitted"
        words.append(
            f"A model {learnt}, which assigns one of {len(last.classes_)} classes to an example by "
            f"{last.n_features_in_:,} measurements of it."
        )
    if evaluation is not None:
        right = evaluation.figures["accuracy"]
        error = evaluation.figures["calibration_error"].value
        words.append(
            f"On {evaluation.n_rows:,} labelled examples it was right in "
            f"{100 * right.value:.1f} % of cases (with as many other examples, "
            f"{100 * right.low:.1f} to {100 * right.high:.1f} % would not surprise). "
            f"{_trust(error)}"
        )
    else:
        words.append(
            "How good it is on new examples is not part of this page: evaluate it on examples "
            "that it was not fitted to."
        )
    return " ".join(words)


def _trust(error: float) -> str:
    if error < 0.02:
        return "Its probabilities can be taken at their word."
    if error < 0.08:
        return f"Its probabilities are off by {100 * error:.0f} points on average."
    return f"Its probabilities should not be trusted: they are off by {100 * error:.0f} points."


def _add_evaluation(content: Summary, found: Evaluation) -> None:
    content.level = f"{100 * found.level:g} %"
    for key, figure in found.figures.items():
        name, meaning = (words.format(k=found.k) for words in _FIGURES[key])
        interval = f"{figure.low:.4f} – {figure.high:.4f}"
        content.figures.append((name, f"{figure.value:.4f}", interval, meaning))
    content.cards.append(("right", f"{100 * found.figures['accuracy'].value:.1f} %"))
    content.cards.append(("rows evaluated", f"{found.n_rows:,}"))
    content.panels.append(
        Panel(
            "Can its probabilities be believed?",
            "Accuracy against confidence; on the dashed line both agree. A dot is as large as "
            "its share of the rows.",
            reliability_chart(found.reliability, "accuracy against confidence"),
        )
    )
    if len(found.classes) <= MOST_IN_MATRIX:
        content.matrix = Panel(
            "What is mistaken for what?",
            "Rows by true class (down) and predicted class (across); mistakes are red.",
            confusion_chart(found.confusion, found.classes, "rows by true and predicted class"),
        )
    worst = sorted(found.per_class, key=lambda row: row["f1"] or 0.0)
    shown = found.per_class if len(found.per_class) <= MOST_CLASSES else worst[:MOST_CLASSES]
    content.hidden_classes = len(found.per_class) - len(shown)
    content.classes = [
        (
            str(row["class"]),
            *(_share(row[name]) for name in ("precision", "recall", "f1")),
            f"{row['rows']:,}",
        )
        for row in shown
    ]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _add_model(
    content: Summary,
    model: Any,
    metadata: Mapping[str, Any],
    image_shape: tuple[int, int] | None,
) -> None:
    last = estimator_of(model)
    rows = metadata.get("data", {}).get("n_rows")
    if rows:
        content.cards.append(("rows fitted", f"{rows:,}"))
    content.cards.append(("features", f"{last.n_features_in_:,}"))
    content.cards.append(("classes", f"{len(last.classes_):,}"))
    content.cards.append(("alpha", f"{last._alpha:.3g}"))
    if hasattr(last, "scores_"):
        content.panels.append(_path_panel(last))
    if last.history_ is not None:
        content.panels.extend(_history_panels(last))
    content.coefficients = _largest_coefficients(last, feature_names(model))
    if image_shape is not None:
        content.images = _images(last, image_shape)
    content.details = _details(last, metadata)


def _path_panel(last: Any) -> Panel:
    rows = [row for row in path_rows(last) if row["l1_ratio"] == last.l1_ratio_]
    rows = [row for row in rows if row["alpha"] > 0]
    name = last.scoring if isinstance(last.scoring, str) else "score"
    words = {"neg_log_loss": "minus the log loss"}.get(name, name)
    line = Line(words, [r["alpha"] for r in rows], [r["score"] for r in rows], dots=True)
    mark = (last.alpha_, f"{last.alpha_:.2g}") if last.alpha_ > 0 else None
    chart = line_chart([line], "penalty α", log_x=True, mark=mark, label="score along the path")
    return Panel(
        "Which penalty?",
        f"The score ({words}) on rows held out, higher is better; the dashed line is the penalty "
        "that was chosen.",
        chart,
    )


def _history_panels(last: Any) -> list[Panel]:
    history = last.history_
    steps = history["iteration"]
    names = {"objective": "objective", "loss": "training loss", "val_loss": "validation loss"}
    lines = [Line(names[n], steps, history[n]) for n in names if n in history.columns]
    losses = line_chart(lines, "iteration", log_y=True, label="objective and losses")
    norms = Line("largest gradient entry", steps, history["gradient_norm"])
    level = (float(last.tol), f"tol = {last.tol:g}")
    gradient = line_chart([norms], "iteration", log_y=True, level=level, label="gradient")
    ended = "it ended" if last.status_ is None else f"It ended as “{last.status_}”"
    return [
        Panel("How did the fit go?", "What is minimised, step by step.", losses),
        Panel(
            "Is it done?",
            f"The largest entry of the gradient, which is zero at the exact answer. {ended}.",
            gradient,
        ),
    ]


def _largest_coefficients(
    last: Any, names: Sequence[str] | None
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Per class the features that speak most for or against it."""
    coef = last.coef_.toarray() if hasattr(last.coef_, "toarray") else np.asarray(last.coef_)
    words = list(names) if names is not None else [f"x{j}" for j in range(coef.shape[1])]
    labels = [str(label) for label in last.classes_]
    labels = [labels[1]] if len(coef) == 1 else labels
    found = []
    for label, row in list(zip(labels, coef, strict=True))[:MOST_CLASSES]:
        order = np.argsort(-np.abs(row), kind="stable")[:MOST_COEFFICIENTS]
        found.append((label, [(words[j], f"{row[j]:+.3g}") for j in order if row[j] != 0]))
    return found


def _images(last: Any, shape: tuple[int, int]) -> list[tuple[str, str]]:
    coef = last.coef_.toarray() if hasattr(last.coef_, "toarray") else np.asarray(last.coef_)
    if coef.shape[1] != shape[0] * shape[1]:
        raise ValueError(
            f"image_shape {shape[0]} × {shape[1]} has {shape[0] * shape[1]} pixels, and the model "
            f"has {coef.shape[1]} features"
        )
    most = float(np.abs(coef).max())
    labels = last.classes_[-1:] if len(coef) == 1 else last.classes_
    pairs = list(zip(labels, coef, strict=True))[:MOST_CLASSES]
    return [(str(label), coefficient_image(row.reshape(shape), most)) for label, row in pairs]


def _details(last: Any, metadata: Mapping[str, Any]) -> dict[str, str]:
    changed = {
        name: value
        for name, value in last.get_params(deep=False).items()
        if repr(value) != repr(getattr(type(last)(), name))
    }
    found = {"estimator": type(last).__name__}
    found["settings"] = ", ".join(f"{n} = {v!r}" for n, v in changed.items()) or "defaults"
    if last.history_ is not None:
        found["solver"] = f"{last.history_.solver}: {last.history_.reason}"
    data = metadata.get("data", {})
    if data.get("path"):
        found["data"] = str(data["path"])
    for file in data.get("files", []):
        if "sha256" in file:
            found[f"SHA-256 of {file['file']}"] = file["sha256"]
    if metadata.get("created"):
        found["fitted"] = metadata["created"]
    if metadata.get("versions"):
        found["versions"] = ", ".join(f"{n} {v}" for n, v in metadata["versions"].items())
    return found
