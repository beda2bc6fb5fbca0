"""`demo`, `data fetch`, `reproduce` and `warm-up`."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import admm_softmax
from admm_softmax import datasets
from admm_softmax.cli.options import Json, Quiet
from admm_softmax.cli.output import print_json, print_table, say
from admm_softmax.storage.folders import make_writable

data = typer.Typer(help="Image sets, and pre-trained parameters of AlexNet.", no_args_is_help=True)
Out = Annotated[Path, typer.Option("--out", help="Folder to write to.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Folder to search first.")]
DATA_SETS = (*datasets.NAMES, "all")


class Experiment(StrEnum):
    """What can be reproduced."""

    mnist = "mnist"
    cifar10 = "cifar10"
    all = "all"


def demo(out: Out = Path("demo-output"), json: Json = False) -> None:
    """Train on digits, compare with scikit-learn, and write a report.

    Example:  admm-softmax demo --out demo-output
    """
    if not json:
        say("training on 1,077 digits, ours and scikit-learn's in turns: about ten seconds")
    from admm_softmax.experiments.digits import run_demo  # noqa: PLC0415  (loads Matplotlib)

    rows, page = run_demo(out)
    if json:
        figures = {row.method.replace("\n", " "): row.test_accuracy for row in rows}
        print_json({"report": page, "test_accuracy": figures})
        return
    columns = ["method", "seconds", "iter.", "objective", "test loss", "accuracy"]
    title = "Digits: the same split, the same penalty"
    print_table(title, columns, [row.cells() for row in rows])
    say(f"Plots and report: {page}")


@data.command("fetch")
def fetch(
    name: Annotated[
        str, typer.Argument(help=f"One of {', '.join(DATA_SETS)}.", show_default=False)
    ],
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Put a data set into the cache.

    Example:  admm-softmax data fetch mnist
    """
    if name not in DATA_SETS:
        raise typer.BadParameter(f"name must be one of {', '.join(DATA_SETS)}, got {name!r}")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    failed = False
    chosen = datasets.NAMES if name == "all" else (name,)
    for each in chosen:
        try:
            found = datasets.fetch(each, data_dir=data_dir)
        except (datasets.DatasetError, OSError) as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        shapes = {part: list(array.shape) for part, array in found.arrays.items()}
        if json:
            facts = {"name": each, "shapes": shapes, "source": found.source, "path": found.path}
            print_json(facts)
        else:
            sizes = ", ".join("×".join(map(str, shape)) for shape in shapes.values())
            say(f"{each}: {sizes}; from {found.source}; in {found.path}")
    if failed:
        raise typer.Exit(1)


def warm_up(json: Json = False) -> None:
    """Compile everything for this machine now, so that the first fit does not.

    Example:  admm-softmax warm-up
    """
    if not json:
        say("compiling for this machine; what is compiled is kept for later processes")
    seconds = admm_softmax.warm_up()
    if json:
        print_json({"seconds": seconds})
    else:
        say(f"ready after {seconds:.1f} s")


def reproduce(
    name: Annotated[Experiment, typer.Argument(help="Which experiment.", show_default=False)],
    out: Out = Path("reproduction"),
    budget: Annotated[float, typer.Option(help="Seconds per method and seed.")] = 300.0,
    seeds: Annotated[int, typer.Option(help="Draws of random filters and splits.")] = 3,
    authors_split: Annotated[
        bool,
        typer.Option(
            "--authors-split",
            help="Run MNIST once more with the authors' split, which leaves most validation "
            "images among the training images, and show what that does.",
        ),
    ] = False,
    grid_rows: Annotated[
        int | None,
        typer.Option(
            help="Training rows of CIFAR-10's grid over alpha and rho; 10000 if not given, 0 "
            "skips the grid.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run the paper's experiments again: tables, figures and a report.

    Example:  admm-softmax reproduce mnist --budget 60 --seeds 1
    """
    names = ("mnist", "cifar10") if name == Experiment.all else (str(name),)
    if authors_split and "mnist" not in names:
        raise typer.BadParameter("--authors-split is for mnist, and cifar10 alone was asked for")
    if grid_rows is not None and "cifar10" not in names:
        raise typer.BadParameter("--grid-rows is for cifar10, and mnist alone was asked for")
    settings = {
        "budget": budget,
        "seeds": seeds,
        "data_dir": None if data_dir is None else str(data_dir),
        "verbose": not (quiet or json),
    }
    rows = 10_000 if grid_rows is None else grid_rows
    own = {
        each: {
            "authors_split": authors_split and each == "mnist",
            "grid_rows": rows if each == "cifar10" else 0,
        }
        for each in names
    }
    _reproduce(out, settings, own, json)


def _reproduce(out: Path, settings: dict[str, Any], own: dict[str, Any], json: bool) -> None:
    from admm_softmax.experiments.data import prepare  # noqa: PLC0415  (loads Matplotlib)
    from admm_softmax.experiments.reproduce import (  # noqa: PLC0415
        Options,
        reproduce,
        write_results,
    )
    from admm_softmax.experiments.reproduction_report import write_report  # noqa: PLC0415
    from admm_softmax.experiments.tables import comparison  # noqa: PLC0415

    try:
        options = {name: Options(**settings, **more) for name, more in own.items()}
        make_writable(out)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from error
    for name in options:
        prepare(name, data_dir=settings["data_dir"], verbose=settings["verbose"])
    results = []
    for name, own_options in options.items():
        try:
            results.append(reproduce(name, out / name, own_options, _quiet if json else say))
        except KeyboardInterrupt:
            say(f"Finished runs are kept in {out} and will not be repeated.")
            raise
        table = comparison(results[-1])
        if not json:
            print_table(results[-1].setting.title, table.columns[:4], table.rows)
        written = write_results(results, out)
        page = write_report(results, out)
    if json:
        print_json({"report": page, "results": written})
    else:
        say(f"Figures and report: {page}")


def _quiet(_: str) -> None:
    """Print nothing: for --quiet."""
