"""The command line: `admm-softmax demo` and `admm-softmax data fetch`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

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
    options = parser.parse_args(arguments)
    if options.command == "demo":
        return _demo(options.out)
    names = datasets.NAMES if options.name == "all" else (options.name,)
    return _fetch(names, options.data_dir)


def _demo(out: Path) -> int:
    from rich.console import Console  # noqa: PLC0415  (the experiments load Matplotlib)
    from rich.table import Table  # noqa: PLC0415

    from admm_softmax.experiments.digits import run_demo  # noqa: PLC0415

    rows, page = run_demo(out)
    table = Table(title="Digits: the same split, the same penalty")
    for column in ("method", "seconds", "iter.", "objective", "test loss", "accuracy"):
        justify: Literal["left", "right"] = "left" if column == "method" else "right"
        table.add_column(column, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*row.cells())
    console = Console()
    console.print(table)
    console.print(f"Plots and report: {page}", highlight=False)
    return 0


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
