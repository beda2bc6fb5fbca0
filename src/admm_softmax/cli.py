"""The command line: `admm-softmax demo`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import admm_softmax


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="admm-softmax", description="Fast, exact multinomial logistic regression."
    )
    parser.add_argument("--version", action="version", version=admm_softmax.__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="train on digits and compare with scikit-learn")
    demo.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write to")
    options = parser.parse_args(arguments)
    return _demo(options.out)


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
