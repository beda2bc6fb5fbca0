"""Write `stored.json`: `python -m tests.histories.record [--reads] [case ...]`.

Without a name all cases are recorded. With `--reads` only the counts of reads are, and the
iterates stay: for a change that reads X less often on the way to the same iterates.

What is stored is what the library did before a change that should not alter it. Record a case
that is new, or one whose iterates are meant to change, by its name, and with a word in the
commit why; do not record anew what merely fails.
"""

from __future__ import annotations

import json
import math
from argparse import ArgumentParser
from pathlib import Path

from tests.histories.cases import CASES
from tests.histories.compare import READS
from tests.histories.traces import Columns

STORED = Path(__file__).with_name("stored.json")


def load() -> dict[str, dict[str, list[float | None]]]:
    """The stored columns, by case."""
    return json.loads(STORED.read_text()) if STORED.exists() else {}


def as_json(columns: Columns) -> dict[str, list[float | None]]:
    """None for what is missing: ADMM looks at the gradient every few iterations only."""
    return {
        name: [None if math.isnan(x) else x for x in column] for name, column in columns.items()
    }


def main(arguments: list[str] | None = None) -> None:
    """Record some cases or all, and forget those that are no more."""
    parser = ArgumentParser(description="Record histories of small runs.")
    parser.add_argument("cases", nargs="*", metavar="case", help="all without any")
    parser.add_argument("--reads", action="store_true", help="the counts of reads alone")
    asked = parser.parse_args(arguments)
    histories = load()
    for name in asked.cases or CASES:
        found = as_json(CASES[name].trace())
        if asked.reads:
            counts = {column: x for column, x in found.items() if column in READS}
            found = {**histories[name], **counts}
        histories[name] = found
    lines = [
        f"{json.dumps(name)}: {json.dumps(histories[name])}"
        for name in sorted(histories)
        if name in CASES
    ]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
