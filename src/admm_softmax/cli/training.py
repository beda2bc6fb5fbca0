"""`fit` and `sweep`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from admm_softmax.cli import options as o
from admm_softmax.cli.output import is_terminal, note, print_facts, print_json, print_table, say
from admm_softmax.storage.atomic import replacing

Alpha = Annotated[
    str, typer.Option(help="Strength of the penalty; auto chooses it on a path of 20.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Model folder to write.")]


def fit(
    data: o.Data,
    out: Out = Path("model"),
    labels: o.Labels = None,
    target: o.Target = None,
    alpha: Alpha = "auto",
    validation: o.Validation = None,
    validation_labels: o.ValidationLabels = None,
    folds: o.Folds = 5,
    l1_ratio: o.L1Ratio = 0.0,
    standardize: o.Standardize = False,
    balanced: o.Balanced = False,
    encode: o.Encode = False,
    ids: o.Ids = None,
    drop: o.Drop = None,
    weights: o.Weights = None,
    key: o.Key = None,
    zero_based: o.ZeroBased = False,
    format: o.Format = "csv",
    solver: o.Solver = "auto",
    tol: o.Tol = 1e-4,
    max_iter: o.MaxIter = 1000,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds of the solver at most; not with --alpha auto.")
    ] = None,
    threads: o.Threads = None,
    seed: o.Seed = None,
    checkpoint: o.Checkpoint = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="Write model.onnx into the folder.")] = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fit a classifier to rows in a file, and write a model folder.

    Example:  admm-softmax fit train.csv --target label --out model

    Example:  admm-softmax fit x.npy --labels y.npy --alpha 1e-3 --out model
    """
    from admm_softmax.fitting import Plan, summary  # noqa: PLC0415  (loads scikit-learn)

    number = _alpha(alpha)
    if number is None and time_limit is not None:
        raise typer.BadParameter("--time-limit is for one fit: give --alpha a number")
    wanted = o.request(data, labels, target, ids, drop, key, zero_based, format, weights, encode)
    settings = _settings(
        l1_ratio, standardize, balanced, solver, tol, max_iter, threads, seed, checkpoint
    )
    settings["verbose"] = is_terminal() and not (quiet or json)
    if time_limit is not None:
        settings["time_limit"] = time_limit
    plan = Plan(alpha=number, folds=folds, settings=settings)
    model, train = _fitted(plan, wanted, validation, validation_labels)
    facts = {"model": str(_saved(model, out, train, onnx)), **summary(model, train)}
    if json:
        print_json(facts)
        return
    _print_summary(facts)
    say(f"model: {out}")


def sweep(
    data: o.Data,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the model of the best penalty.")
    ] = Path("sweep"),
    labels: o.Labels = None,
    target: o.Target = None,
    alphas: Annotated[
        str, typer.Option(help="How many penalties to try, or a list of them by commas.")
    ] = "20",
    l1_ratios: Annotated[
        str | None, typer.Option(help="Values of --l1-ratio to try, by commas.")
    ] = None,
    validation: o.Validation = None,
    validation_labels: o.ValidationLabels = None,
    folds: o.Folds = 5,
    standardize: o.Standardize = False,
    balanced: o.Balanced = False,
    encode: o.Encode = False,
    ids: o.Ids = None,
    drop: o.Drop = None,
    weights: o.Weights = None,
    key: o.Key = None,
    zero_based: o.ZeroBased = False,
    format: o.Format = "csv",
    solver: o.Solver = "auto",
    tol: o.Tol = 1e-4,
    max_iter: o.MaxIter = 1000,
    threads: o.Threads = None,
    seed: o.Seed = None,
    checkpoint: o.Checkpoint = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fit many penalties at once, show how each scores, and keep the best.

    Example:  admm-softmax sweep train.csv --target label --alphas 1,0.1,0.01
    """
    from admm_softmax.fitting import Plan  # noqa: PLC0415  (loads scikit-learn)

    wanted = o.request(data, labels, target, ids, drop, key, zero_based, format, weights, encode)
    settings = _settings(
        0.0, standardize, balanced, solver, tol, max_iter, threads, seed, checkpoint
    )
    settings["verbose"] = is_terminal() and not (quiet or json)
    ratios = tuple(o.numbers("--l1-ratios", l1_ratios)) if l1_ratios else ()
    plan = Plan(None, _counted(alphas), ratios, folds, settings)
    model, train = _fitted(plan, wanted, validation, validation_labels)
    _saved(model, out, train, onnx=False)
    _print_sweep(model, out, json)


def _alpha(text: str) -> float | None:
    if text == "auto":
        return None
    (number,) = o.numbers("--alpha", text)
    return number


def _counted(text: str) -> Any:
    """A number of penalties, or a list of them."""
    return int(text) if text.isdigit() else o.numbers("--alphas", text)


def _settings(
    l1_ratio: float,
    standardize: bool,
    balanced: bool,
    solver: str,
    tol: float,
    max_iter: int,
    threads: int | None,
    seed: int | None,
    checkpoint: Path | None,
) -> dict[str, Any]:
    """Options as settings of the estimators."""
    return {
        "l1_ratio": l1_ratio,
        "standardize": standardize,
        "class_weight": "balanced" if balanced else None,
        "solver": solver,
        "tol": tol,
        "max_iter": max_iter,
        "n_threads": threads,
        "random_state": seed,
        "checkpoint": checkpoint,
    }


def _fitted(
    plan: Any, wanted: Any, validation: str | None, validation_labels: str | None
) -> tuple[Any, Any]:
    """The fitted model, and the data set it was fitted to."""
    from admm_softmax.fitting import fit as fit_plan  # noqa: PLC0415  (loads scikit-learn)
    from admm_softmax.reading import read  # noqa: PLC0415

    train = read(wanted)
    n, d = train.shape
    note(f"{train.name}: {n:,} rows, {d:,} columns")
    others = None
    if validation is not None:
        file = replace(wanted, path=validation, labels=validation_labels)
        others = read(replace(file, weights=None) if _is_npy(wanted.weights) else file)
    return fit_plan(plan, train, others), train


def _is_npy(weights: str | None) -> bool:
    return weights is not None and weights.endswith(".npy")


def _saved(model: Any, out: Path, train: Any, onnx: bool) -> Path:
    from admm_softmax.estimators.model_folder import save  # noqa: PLC0415  (loads scikit-learn)

    save(model, out, data=train.facts)
    if onnx:
        from admm_softmax.estimators.onnx_export import to_onnx  # noqa: PLC0415

        graph = to_onnx(model, train.X if train.texts else None)
        with replacing(out / "model.onnx") as part:
            part.write_bytes(graph.SerializeToString())
    return out


def _print_summary(facts: dict[str, Any]) -> None:
    shown = {
        "rows": f"{facts['n_rows']:,}",
        "features": f"{facts['n_features']:,}",
        "classes": f"{facts['n_classes']:,}",
        "alpha": f"{facts['alpha']:.3g}",
    }
    if "score" in facts:
        shown["best score"] = f"{facts['score']:.4f} ({facts['scoring']})"
    if "train_loss" in facts:
        shown["training"] = (
            f"loss {facts['train_loss']:.4f}, accuracy {100 * facts['train_accuracy']:.2f} %"
        )
    if "val_loss" in facts:
        shown["validation"] = (
            f"loss {facts['val_loss']:.4f}, accuracy {100 * facts['val_accuracy']:.2f} %"
        )
    if "iterations" in facts:
        shown["ended"] = (
            f"{facts['status']} after {facts['iterations']} iterations, {facts['seconds']:.2f} s"
        )
    print_facts(shown)


def _print_sweep(model: Any, out: Path, json: bool) -> None:
    from admm_softmax.estimators.model_folder import estimator_of  # noqa: PLC0415
    from admm_softmax.report.paths import path_rows  # noqa: PLC0415

    last = estimator_of(model)
    rows = path_rows(last)
    if json:
        best = {"alpha": last.alpha_, "l1_ratio": last.l1_ratio_}
        print_json({"model": str(out), "scoring": last.scoring, "best": best, "path": rows})
        return
    cells = [
        [
            f"{row['alpha']:.3g}",
            f"{row['l1_ratio']:g}",
            f"{row['score']:.4f}",
            "–" if row["deviation"] is None else f"{row['deviation']:.4f}",
            f"{row['iterations']:.0f}",
            "best" if row["is_best"] else "",
        ]
        for row in rows
    ]
    title = f"Scores ({last.scoring}) on rows held out"
    print_table(title, ["alpha", "l1 ratio", "mean", "± folds", "iter.", ""], cells)
    say(f"model: {out}")
