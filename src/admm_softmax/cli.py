"""The command line: `admm-softmax demo`, `data fetch` and `reproduce`."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Callable, Sequence
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
        return _explained(lambda: _demo(options.out))
    if options.command == "reproduce":
        return _explained(lambda: _reproduce(options))
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
        help="training rows of CIFAR-10's grid over alpha and rho; 10000 if not given, "
        "0 leaves it out",
    )
    parser.add_argument("--data-dir", help="a folder that may have the data already")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    parser.set_defaults(refuse=parser.error)


def _reproduce(arguments: argparse.Namespace) -> int:
    from rich.console import Console  # noqa: PLC0415  (the experiments load Matplotlib)

    from admm_softmax.experiments.data import prepare  # noqa: PLC0415
    from admm_softmax.experiments.reproduce import (  # noqa: PLC0415
        Options,
        reproduce,
        write_results,
    )
    from admm_softmax.experiments.story import comparison, write_report  # noqa: PLC0415

    names = ("mnist", "cifar10") if arguments.name == "all" else (arguments.name,)
    if arguments.authors_split and "mnist" not in names:
        arguments.refuse("--authors-split is for mnist, and cifar10 alone was asked for")
    if arguments.grid_rows is not None and "cifar10" not in names:
        arguments.refuse("--grid-rows is for cifar10, and mnist alone was asked for")
    grid_rows = 10_000 if arguments.grid_rows is None else arguments.grid_rows
    out: Path = arguments.out
    try:
        options = {
            name: Options(
                budget=arguments.budget,
                seeds=arguments.seeds,
                authors_split=arguments.authors_split and name == "mnist",
                grid_rows=grid_rows if name == "cifar10" else 0,
                data_dir=arguments.data_dir,
                verbose=not arguments.quiet,
            )
            for name in names
        }
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except (ValueError, OSError) as error:
        arguments.refuse(str(error))
    for name in names:
        prepare(name, data_dir=arguments.data_dir, verbose=not arguments.quiet)
    console = Console()
    results = []
    for name in names:
        try:
            results.append(reproduce(name, out / name, options[name], console.print))
        except KeyboardInterrupt:
            console.print(f"What is finished is kept in {out}, and not done again.")
            raise
        table = comparison(results[-1])
        console.print(_table(results[-1].setting.title, table.columns[:4], table.rows))
        write_results(results, out)
        page = write_report(results, out)
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


def _explained(command: Callable[[], int]) -> int:
    """Run a command; what is not there, and Ctrl-C, end in a line instead of a trace."""
    try:
        return command()
    except (ImportError, datasets.DatasetError) as error:
        is_report = isinstance(error, ImportError) and error.name in ("matplotlib", "jinja2")
        remedy = ": pip install 'admm-softmax[report]'" if is_report else ""
        print(f"{error}{remedy}", file=sys.stderr)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    return 1


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
