"""What commands print: tables for people, JSON for machines; paths are never wrapped."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


def is_terminal() -> bool:
    """Whether someone watches the error stream, where progress is shown."""
    return bool(sys.stderr and sys.stderr.isatty())


def say(text: str) -> None:
    """Print a line as it is, however long it is."""
    Console().print(text, soft_wrap=True, highlight=False, markup=False)


def note(text: str) -> None:
    """Print a line to the error stream, for a person who watches it."""
    if is_terminal():
        Console(stderr=True).print(text, soft_wrap=True, highlight=False, markup=False)


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object in one line; NaN and infinity become null."""
    print(json.dumps(plain(content), ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Values as JSON has them."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; numbers are to the right."""
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row[: len(columns)])
    Console().print(table)


def print_facts(facts: Mapping[str, str]) -> None:
    """Print names and values, one per line, the values aligned."""
    width = max(map(len, facts))
    for name, value in facts.items():
        say(f"{name.ljust(width)}  {value}")
