"""What a solver needs, besides W, to go on where it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from admm_softmax.design import Design, Rows

#: Values by name: numbers, texts, None, arrays, handles to rows, and sequences and mappings of
#: these. Nothing in a state may be changed once it has been yielded.
State: TypeAlias = Mapping[str, Any]

#: Row arrays of more bytes are not stored. Where rows are many, the solver makes them anew.
LARGEST_ROWS = 2**28
#: Stands for stored rows, with their array.
ROWS_KEY = "$rows"


def with_rows(value: Any, change: Callable[[Rows], Any]) -> Any:
    """The same state with change(rows) in place of every handle."""
    if isinstance(value, Rows):
        return change(value)
    if isinstance(value, Mapping):
        return {name: with_rows(part, change) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [with_rows(part, change) for part in value]
    return value


def gathered(state: State | None, design: Design) -> Any:
    """The state as it is stored: rows as arrays, or None where they are too large or stay."""

    def gather(rows: Rows) -> Any:
        if design.rows_stay or rows.n_rows * (rows.columns or 1) * 8 > LARGEST_ROWS:
            return None
        return {ROWS_KEY: design.gather(rows)}

    return with_rows(state, gather)


def placed(stored: Any, design: Design) -> Any:
    """The inverse: arrays of rows are put where the rows of X are."""
    if isinstance(stored, dict):
        if ROWS_KEY in stored:
            return design.place(stored[ROWS_KEY])
        return {name: placed(part, design) for name, part in stored.items()}
    if isinstance(stored, list):
        return [placed(part, design) for part in stored]
    return stored
