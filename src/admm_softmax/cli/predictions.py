"""Predictions as they are written: CSV, lines of JSON, Parquet or .npy, block by block."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias

import numpy as np

from admm_softmax.cli.output import plain
from admm_softmax.storage import arrays
from admm_softmax.storage.atomic import replacing

#: Called with ids, labels and probabilities (or None) of a block.
Write: TypeAlias = Callable[[Any, Any, Any], None]


class Header(NamedTuple):
    """The name of the ids, the classes, and whether probabilities are written."""

    ids: str
    classes: list[Any]
    proba: bool

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        more = [f"p_{label}" for label in self.classes] if self.proba else []
        return [self.ids, "label", *more]


@contextmanager
def writer(out: str, header: Header, as_json: bool) -> Iterator[Write]:
    """What writes blocks to a file, whole or not at all, or to standard output."""
    if out == "-":
        yield (_lines if as_json else _csv)(sys.stdout, header)
        return
    path = Path(out)
    kinds: dict[str, Any] = {".csv": _csv, ".jsonl": _lines}
    kind = path.suffix.lower()
    if kind not in (*kinds, ".parquet", ".npy"):
        raise ValueError(f"predictions go to .csv, .jsonl, .parquet or .npy, got {out}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        if kind in kinds:
            with part.open("w", encoding="utf-8", newline="") as file:
                yield kinds[kind](file, header)
        elif kind == ".npy":
            parts: list[Any] = []
            yield lambda _, labels, p: parts.append(labels if p is None else p)
            with part.open("xb") as binary:
                arrays.write(binary, np.concatenate(parts) if parts else np.zeros(0))
        else:
            with _Parquet(part, header) as table:
                yield table.write


def _csv(file: TextIO, header: Header) -> Write:
    rows = csv.writer(file, lineterminator="\n")
    waiting = [header.names]  # until there is something to write below it

    def write(ids: Any, labels: Any, p: Any) -> None:
        if waiting:
            rows.writerow(waiting.pop())
        given = plain(list(ids)), labels.tolist(), [()] * len(labels) if p is None else p.tolist()
        rows.writerows([i, label, *more] for i, label, more in zip(*given, strict=True))

    return write


def _lines(file: TextIO, header: Header) -> Write:
    def write(ids: Any, labels: Any, p: Any) -> None:
        given = plain(list(ids)), labels.tolist(), [()] * len(labels) if p is None else p.tolist()
        for i, label, more in zip(*given, strict=True):
            record = dict(zip(header.names, [i, label, *more], strict=True))
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    return write


class _Parquet:
    """A Parquet file with a row group per block."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path, self.header = path, header
        self.file: Any = None

    def __enter__(self) -> _Parquet:
        return self

    def write(self, ids: Any, labels: Any, p: Any) -> None:
        """Write a block."""
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        columns = [plain(list(ids)), labels.tolist(), *([] if p is None else p.T)]
        table = pa.table(dict(zip(self.header.names, columns, strict=True)))
        if self.file is None:
            self.file = pq.ParquetWriter(self.path, table.schema)
        self.file.write_table(table)

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()
