"""`probe`: the protocol of linear probes, from files of features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer

from admm_softmax.cli import options as o
from admm_softmax.cli.output import is_terminal, note, print_json, print_table, say
from admm_softmax.reading import Request
from admm_softmax.storage.atomic import replacing

OtherLabels = Annotated[str | None, typer.Option(help="Their labels, where DATA has --labels.")]
TestRows = Annotated[str | None, typer.Option(help="Rows to measure on, like DATA.")]
ValidationRows = Annotated[
    str | None, typer.Option(help="Rows to choose C on, like DATA; a share of DATA if not given.")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="JSON file of the result.")]
ModelFolder = Annotated[Path | None, typer.Option(help="Model folder for the final fit.")]
Picture = Annotated[Path | None, typer.Option(help="Picture of the sweep: .png or .svg.")]
Recipe = Annotated[str, typer.Option(help="dinov2 or clip.")]
Cs = Annotated[str | None, typer.Option("--Cs", help="scikit-learn's C to try, by commas.")]
Metric = Annotated[
    str | None,
    typer.Option(help="Decides: accuracy, top5, mean_per_class, log_loss, macro_f1, auroc, map."),
]
Normalize = Annotated[str, typer.Option(help="none, l2 or standardize.")]
Shots = Annotated[str | None, typer.Option(help="Rows per class to try, by commas.")]
Repeats = Annotated[int, typer.Option(help="Draws for each number of shots.")]
Resamples = Annotated[int, typer.Option(help="Of the bootstrap.")]
Seed = Annotated[int, typer.Option(help="Seed of what is random.")]
ProbeTol = Annotated[
    float | None,
    typer.Option(help="Fits stop when every |∇F| entry is at most this; 1e-3 / classes, or 1e-5."),
]
Folder = Annotated[
    Path | None, typer.Option(help="Keeps fits: the same command goes on after an interruption.")
]


def probe(
    data: o.Data,
    labels: o.Labels = None,
    target: o.Target = None,
    validation: ValidationRows = None,
    validation_labels: OtherLabels = None,
    test: TestRows = None,
    test_labels: OtherLabels = None,
    out: Out = None,
    model: ModelFolder = None,
    plot: Picture = None,
    recipe: Recipe = "dinov2",
    cs: Cs = None,
    metric: Metric = None,
    normalize: Normalize = "none",
    shots: Shots = None,
    repeats: Repeats = 5,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    folder: Folder = None,
    key: o.Key = None,
    drop: o.Drop = None,
    tol: ProbeTol = None,
    max_iter: o.MaxIter = 1000,
    threads: o.Threads = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Evaluate frozen features: try every C, choose on validation rows, refit, and test.

    Example:  admm-softmax probe train.npz --test test.npz --out probe.json

    Example:  admm-softmax probe x.npy --labels y.npy --shots 1,2,4
    """
    from admm_softmax.probes import probe as run_probe  # noqa: PLC0415  (loads scikit-learn)

    train = o.request(data, labels, target, None, drop, key)
    found = run_probe(
        _rows(train),
        _rows(_other(train, validation, validation_labels)),
        _rows(_other(train, test, test_labels)),
        recipe=recipe,
        Cs=None if cs is None else o.numbers("--Cs", cs),
        metric=metric,
        normalize=cast(Any, normalize),  # checked there
        shots=() if shots is None else [int(size) for size in o.numbers("--shots", shots)],
        repeats=repeats,
        samples=resamples,
        seed=seed,
        folder=folder,
        max_iter=max_iter,
        n_threads=threads,
        verbose=is_terminal() and not (quiet or json),
        **cast(Any, {} if tol is None else {"tol": tol}),
    )
    written = _written(found, out, model, plot)
    if json:
        print_json({**found.to_json(), "written": written})
        return
    _print(found, written)


def _other(train: Request, path: str | None, labels: str | None) -> Request | None:
    return None if path is None else replace(train, path=path, labels=labels)


def _rows(wanted: Request | None) -> Any:
    """(X, y) of a file; None without one."""
    if wanted is None:
        return None
    from admm_softmax.reading import read  # noqa: PLC0415

    found = read(wanted)
    if found.y is None:
        raise ValueError(
            f"{found.name} has no labels: name their column or array by --target, or their file "
            "by --labels, --validation-labels or --test-labels"
        )
    n, d = found.shape
    note(f"{found.name}: {n:,} rows, {d:,} columns")
    return found.X, found.y


def _written(found: Any, out: Path | None, model: Path | None, plot: Path | None) -> list[str]:
    if out is not None:
        found.to_json(out)
    if model is not None:
        found.estimator.save(model)
    if plot is not None:
        with replacing(plot) as part:
            found.plot().savefig(part, format=plot.suffix[1:] or "png")
    return [str(path) for path in (out, model, plot) if path is not None]


def _print(found: Any, written: list[str]) -> None:
    rows = [
        [f"{C:.3g}", f"{alpha:.3g}", f"{score:.4f}", "best" if i == found.best else ""]
        for i, (C, alpha, score) in enumerate(
            zip(found.Cs, found.alphas, found.val_scores, strict=True)
        )
    ]
    title = f"{found.metric} on {found.n_val:,} validation rows ({found.recipe})"
    print_table(title, ["C", "alpha", found.metric, ""], rows)
    if found.test:
        tests = [[name, *(f"{x:.4f}" for x in figure)] for name, figure in found.test.items()]
        title = f"C = {found.C:.3g}: {found.n_test:,} test rows"
        print_table(title, ["metric", "value", "low", "high"], tests)
    if found.shots:
        sizes = sorted({shot.shots for shot in found.shots})
        values = [[s.value for s in found.shots if s.shots == size] for size in sizes]
        few = [
            [str(size), f"{np.mean(v):.4f}", f"{np.std(v):.4f}"]
            for size, v in zip(sizes, values, strict=True)
        ]
        print_table("Few rows per class", ["rows", "mean", "± draws"], few)
    for path in written:
        say(f"written: {path}")
