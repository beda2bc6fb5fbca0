"""Tables with named columns, as frames: CSV, Parquet and Arrow, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax.reading.request import PARQUET, Request, kind_of, opened, suffix_of
from admm_softmax.storage.foreign_files import refusing

#: Rows of a frame when a table is read in parts.
FRAME_ROWS = 20_000


def frames(request: Request, rows: int | None = FRAME_ROWS) -> Iterator[Any]:
    """The table in frames of so many rows, shard after shard; None gives each shard whole.

    Row ids stay what they are: of CSV they are read as text.
    """
    kind, sources = kind_of(request), opened(request)
    columns: list[str] | None = None
    for source in sources if isinstance(sources, list) else [sources]:
        for frame in _of_one(source, kind, request, rows):
            names = [str(name) for name in frame.columns]
            if columns is None:
                columns = names
            elif names != columns:
                raise ValueError(
                    f"shard {source} has the columns {_few(names)}, those before it have "
                    f"{_few(columns)}"
                )
            yield frame


def whole(request: Request) -> Any:
    """The table as one frame."""
    import pandas as pd  # noqa: PLC0415

    parts = list(frames(request, None))
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def names_of(request: Request) -> list[str]:
    """The names of the columns."""
    return [str(name) for name in first_row(request).columns]


def first_row(request: Request) -> Any:
    """A frame of the first row; ValueError if there is none."""
    for frame in frames(request, 1):
        if len(frame):
            return frame
    raise ValueError(f"{request.name} has no rows")


def _of_one(source: Any, kind: str, request: Request, rows: int | None) -> Iterator[Any]:
    if kind in (".csv", ".tsv"):
        return _csv(source, kind, request, rows)
    return _parquet(source, rows) if kind in PARQUET else _arrow(source, rows)


def _csv(source: Any, kind: str, request: Request, rows: int | None) -> Iterator[Any]:
    try:
        import pandas as pd  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("CSV files need pandas: pip install 'admm-softmax[cli]'") from error
    separator = "\t" if kind == ".tsv" else ","
    if kind == ".csv" and isinstance(source, Path) and suffix_of(source) == source.suffix.lower():
        with source.open("rb") as file:
            header = file.readline()
        separator = ";" if b"," not in header and b";" in header else separator
    texts = None if request.ids is None else {request.ids: str}
    settings: dict[str, Any] = {"sep": separator, "dtype": texts, "low_memory": False}
    with refusing(request.name, "a CSV file"):
        if rows is None:
            yield pd.read_csv(source, **settings)
            return
        with pd.read_csv(source, chunksize=rows, **settings) as parts:
            yield from parts


def _parquet(source: Path, rows: int | None) -> Iterator[Any]:
    try:
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'admm-softmax[cli]'") from error
    with refusing(source, "a Parquet file"), pq.ParquetFile(source) as file:
        if rows is None:
            yield file.read().to_pandas()
            return
        for batch in file.iter_batches(rows):
            yield batch.to_pandas()


def _arrow(source: Path, rows: int | None) -> Iterator[Any]:
    """Arrow's file and stream formats (Feather is the first)."""
    try:
        import pyarrow as pa  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("Arrow files need pyarrow: pip install 'admm-softmax[cli]'") from error
    with refusing(source, "an Arrow file"), pa.memory_map(str(source)) as file:
        try:
            reader = pa.ipc.open_file(file)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            file.seek(0)
            reader = pa.ipc.open_stream(file)
            batches = iter(reader)
        if rows is None:
            table = pa.Table.from_batches(list(batches), reader.schema)
            table.validate(full=True)
            yield table.to_pandas()
            return
        for batch in batches:
            batch.validate(full=True)
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows).to_pandas()


def is_text(column: Any) -> bool:
    """Whether a column of a frame holds something else than numbers and truth values."""
    return getattr(column.dtype, "kind", "O") not in "fiub"


def is_vectors(column: Any) -> bool:
    """Whether a column holds a vector per row."""
    return is_text(column) and len(column) > 0 and np.ndim(column.iloc[0]) == 1


def require(names: Sequence[str], wanted: Sequence[str], where: str, why: str) -> None:
    """Raise ValueError unless a table has the columns wanted."""
    missing = [name for name in wanted if name not in names]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(f"{where} has no column {missing[0]!r}{more}, {why}; it has {_few(names)}")


def require_numbers(frame: Any, where: str, first: int, encode: Sequence[str] = ()) -> None:
    """Raise ValueError at the first column with text, and at the first value that is missing."""
    import pandas as pd  # noqa: PLC0415

    if not len(frame):
        raise ValueError(f"{where} has no rows")
    for name in frame.columns:
        column = frame[name]
        missing = np.flatnonzero(column.isna().to_numpy())
        if len(missing):
            raise ValueError(
                f"column {name!r} of {where} has no value in row {first + int(missing[0])} "
                f"({len(missing)} in all): fill it, leave out the rows, or --drop {name}"
            )
        if name in encode or not is_text(column):
            continue
        wrong = np.flatnonzero(pd.to_numeric(column, errors="coerce").isna().to_numpy())
        at = int(wrong[0]) if len(wrong) else 0
        raise ValueError(
            f"column {name!r} of {where} holds text, {str(column.iloc[at])[:40]!r} in row "
            f"{first + at}: --encode makes one-hot columns of text, --drop {name} leaves it out"
        )


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return f"{shown}, …" if len(names) > 10 else shown
