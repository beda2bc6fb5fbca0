"""The command line: `admm-softmax demo`, `data fetch` and `reproduce`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import admm_softmax
from admm_softmax import datasets


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="admm-softmax", description="Fast, exact multinomial logistic regression."
    )
    parser.add_argument("--version", action="version", version=admm_softmax.__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="train on digits and compare with scikit-learn")
    demo.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write to")
    data = commands.add_parser("data", help="image sets and pre-trained weights")
    fetch = data.add_subparsers(dest="action", required=True).add_parser(
        "fetch", help="put a data set into the cache"
    )
    fetch.add_argument("name", choices=[*datasets.NAMES, "all"])
    fetch.add_argument("--data-dir", type=Path, help="a folder that may have the files already")
    _add_reproduce(commands)
    options = parser.parse_args(arguments)
    if options.command == "demo":
        return _demo(options.out)
    if options.command == "reproduce":
        return _reproduce(options)
    names = datasets.NAMES if options.name == "all" else (options.name,)
    return _fetch(names, options.data_dir)


def _add_reproduce(commands: Any) -> None:
    parser = commands.add_parser("reproduce", help="the paper's experiments, tables and figures")
    parser.add_argument("name", choices=["mnist", "cifar10", "all"])
    parser.add_argument("--out", type=Path, default=Path("reproduction"), help="folder to write to")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds a method and seed")
    parser.add_argument("--seeds", type=int, default=3, help="draws of filters and splits")
    parser.add_argument(
        "--authors-split",
        action="store_true",
        help="run MNIST once more with the authors' split, which leaves most validation images "
        "among the training images, and show what that does",
    )
    parser.add_argument(
        "--grid-rows",
        type=int,
        default=10_000,
        help="training rows of CIFAR-10's grid over alpha and rho; 0 leaves it out",
    )
    parser.add_argument("--data-dir", help="a folder that may have the data already")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")


def _reproduce(options: argparse.Namespace) -> int:
    from rich.console import Console  # noqa: PLC0415  (the experiments load Matplotlib)

    from admm_softmax.experiments.reproduce import (  # noqa: PLC0415
        Options,
        prepare,
        reproduce,
        write_results,
    )
    from admm_softmax.experiments.story import comparison, write_report  # noqa: PLC0415

    names = ("mnist", "cifar10") if options.name == "all" else (options.name,)
    try:
        settings = {
            name: Options(
                budget=options.budget,
                seeds=options.seeds,
                leak=options.authors_split and name == "mnist",
                grid_rows=options.grid_rows if name == "cifar10" else 0,
                data_dir=options.data_dir,
                verbose=not options.quiet,
            )
            for name in names
        }
        for name in names:
            prepare(name, options.out / name, settings[name])
    except (ValueError, ImportError, datasets.DatasetError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    console = Console()
    results = []
    for name in names:
        results.append(reproduce(name, options.out / name, settings[name]))
        table = comparison(results[-1])
        console.print(_table(results[-1].setting.title, table.columns[:4], table.rows))
    write_results(results, options.out)
    page = write_report(results, options.out)
    console.print(f"Figures and report: {page}", highlight=False)
    return 0


def _demo(out: Path) -> int:
    from rich.console import Console  # noqa: PLC0415  (the experiments load Matplotlib)

    from admm_softmax.experiments.digits import run_demo  # noqa: PLC0415

    rows, page = run_demo(out)
    columns = ["method", "seconds", "iter.", "objective", "test loss", "accuracy"]
    title = "Digits: the same split, the same penalty"
    console = Console()
    console.print(_table(title, columns, [row.cells() for row in rows]))
    console.print(f"Plots and report: {page}", highlight=False)
    return 0


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row[: len(columns)])
    return table


def _fetch(names: Sequence[str], data_dir: Path | None) -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    code = 0
    for name in names:
        try:
            found = datasets.fetch(name, data_dir=data_dir)
        except (datasets.DatasetError, OSError) as error:
            print(error, file=sys.stderr)
            code = 1
        else:
            shapes = ", ".join("×".join(map(str, a.shape)) for a in found.arrays.values())
            print(f"{name}: {shapes}; from {found.source}; in {found.path}")
    return code
