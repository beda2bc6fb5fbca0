"""`predict` and `evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from admm_softmax.cli import options as o
from admm_softmax.cli.output import print_json, print_table, say
from admm_softmax.cli.predictions import Header, writer
from admm_softmax.reading import Block, Request, blocks


def predict(
    model: o.Model,
    data: o.Data,
    out: Annotated[
        str,
        typer.Option("--out", "-o", help="File: .csv, .jsonl, .parquet or .npy; - is the output."),
    ] = "-",
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities, too.")] = False,
    ids: o.Ids = None,
    drop: o.Drop = None,
    key: o.Key = None,
    zero_based: o.ZeroBased = False,
    format: o.Format = "csv",
    trust: o.Trust = False,
    json: o.Json = False,
) -> None:
    """Predict rows in a file of any size, a block at a time; row ids are kept.

    Example:  admm-softmax predict model test.csv --id id --proba --out p.csv

    Example:  cat test.csv | admm-softmax predict model - > predictions.csv
    """
    wanted = o.request(data, None, None, ids, drop, key, zero_based, format)
    loaded = _load(model, trust)
    header = Header(wanted.ids or "row", list(loaded.classes_), proba)
    count = 0
    with writer(out, header, json) as write:
        for block in _blocks(loaded, model, wanted):
            if proba:
                probabilities = loaded.predict_proba(block.X)
                labels = loaded.classes_[probabilities.argmax(axis=1)]
            else:
                probabilities, labels = None, loaded.predict(block.X)
            numbers = range(block.first, block.first + len(labels))
            write(numbers if block.ids is None else block.ids, labels, probabilities)
            count += len(labels)
    if out == "-":
        return
    if json:
        print_json({"predictions": out, "n_rows": count})
    else:
        say(f"{count:,} predictions: {out}")


def evaluate(
    model: o.Model,
    data: o.Data,
    labels: o.Labels = None,
    target: o.Target = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="JSON file, for `report` and machines.")
    ] = None,
    top_k: Annotated[int, typer.Option(help="k of top-k accuracy.")] = 5,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap.")] = 1000,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    ids: o.Ids = None,
    drop: o.Drop = None,
    key: o.Key = None,
    zero_based: o.ZeroBased = False,
    format: o.Format = "csv",
    trust: o.Trust = False,
    json: o.Json = False,
) -> None:
    """Compare predictions with labels: accuracy, losses, calibration, every class.

    Example:  admm-softmax evaluate model test.csv --target label
    """
    from admm_softmax.evaluation import evaluate as evaluate_blocks  # noqa: PLC0415
    from admm_softmax.storage.records import write_json  # noqa: PLC0415

    loaded = _load(model, trust)
    given = target or _training_target(model)
    wanted = o.request(data, labels, given, ids, drop, key, zero_based, format)

    def scored() -> Iterator[tuple[Any, Any]]:
        for block in _blocks(loaded, model, wanted):
            if block.y is None:
                raise ValueError(
                    f"{wanted.name} has no labels: name their column or array by --target, or "
                    "their file by --labels"
                )
            yield loaded.predict_log_proba(block.X), block.y

    found = evaluate_blocks(
        scored(), loaded.classes_, k=top_k, resamples=resamples, level=level, seed=seed
    )
    content = {"kind": "evaluation", "model": str(model), "data": wanted.name, **found.to_json()}
    if out is not None:
        write_json(out, content)
    if json:
        print_json(content)
        return
    _print_evaluation(found, wanted.name)
    if out is not None:
        say(f"evaluation: {out}")


def _load(path: Path, trust: bool) -> Any:
    from admm_softmax.estimators.model_folder import load  # noqa: PLC0415  (loads scikit-learn)

    return load(path, trust=trust)


def _facts(path: Path) -> dict[str, Any]:
    from admm_softmax.estimators.model_folder import read_metadata  # noqa: PLC0415

    return read_metadata(path) if path.is_dir() else {}


def _training_target(path: Path) -> str | None:
    return ",".join(_facts(path).get("data", {}).get("target", ())) or None


def _blocks(model: Any, path: Path, wanted: Request) -> Iterator[Block]:
    """The rows to predict, with the columns that the model takes."""
    first = model.steps[0][1] if hasattr(model, "steps") else model
    names = getattr(first, "feature_names_in_", None)
    texts = ()
    if hasattr(first, "transformers_"):
        texts = tuple(
            name for kind, _, own in first.transformers_ if kind == "text" for name in own
        )
    return blocks(
        wanted,
        columns=None if names is None else [str(name) for name in names],
        n_features=int(first.n_features_in_),
        known=_facts(path).get("data", {}).get("not_features", ()),
        texts=texts,
    )


_WORDS = {
    "accuracy": "accuracy",
    "top_k": "top-{k} accuracy",
    "log_loss": "log loss",
    "brier": "Brier score",
    "calibration_error": "expected calibration error",
}
#: Classes that are printed at most.
CLASSES_SHOWN = 20


def _print_evaluation(found: Any, name: str) -> None:
    rows = [
        [_WORDS[key].format(k=found.k), f"{f.value:.4f}", f"{f.low:.4f} – {f.high:.4f}"]
        for key, f in found.figures.items()
    ]
    title = f"{found.n_rows:,} rows of {Path(name).name}"
    print_table(title, ["figure", "value", f"{100 * found.level:g} % interval"], rows)
    classes = [
        [
            str(row["class"]),
            *(_share(row[key]) for key in ("precision", "recall", "f1")),
            str(row["rows"]),
        ]
        for row in found.per_class[:CLASSES_SHOWN]
    ]
    print_table("Classes", ["class", "precision", "recall", "F1", "rows"], classes)
    if len(found.per_class) > CLASSES_SHOWN:
        say(f"{len(found.per_class) - CLASSES_SHOWN} more classes: --json or --out has them all")
    elif len(found.classes) <= 12:
        counts = [
            [str(c), *map(str, row)] for c, row in zip(found.classes, found.confusion, strict=True)
        ]
        print_table("Rows by true and predicted class", ["true", *map(str, found.classes)], counts)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
