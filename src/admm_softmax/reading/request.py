"""What to read, and which of its columns or arrays are labels, ids and weights."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from admm_softmax.sources.opening import paths_of

#: Read as frames with named columns, a few rows at a time.
TABLES = (".csv", ".tsv", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
PARQUET = (".parquet", ".pq")
#: Read block by block by `RowBlocks`.
STREAMED = (".npy", ".safetensors", ".h5", ".hdf5", ".zarr")
#: Read at once.
WHOLE = (".npz", ".svm", ".svmlight", ".libsvm", ".pt", ".pth")
SVMLIGHT = (".svm", ".svmlight", ".libsvm")
#: Files above so many bytes are not hashed.
HASHED_BYTES = 4 << 30


@dataclass(frozen=True)
class Request:
    """What a user asks for.

    path : a file, a pattern, a folder of shards, or "-" for standard input
    labels : a file of labels, beside the rows
    target : the column of a table, or the array of a file, that holds the labels; several
        columns are soft labels
    ids : the column of row ids
    weights : the column of sample weights, or a .npy file of them
    drop : columns to leave out
    encode : whether text columns become one-hot columns
    key : which array of a file holds the rows, or the only column of vectors
    zero_based : whether columns of svmlight files are counted from 0
    format : the kind of standard input, as an extension without its dot
    """

    path: str
    labels: str | None = None
    target: tuple[str, ...] = ()
    ids: str | None = None
    weights: str | None = None
    drop: tuple[str, ...] = ()
    encode: bool = False
    key: str | None = None
    zero_based: bool = False
    format: str = "csv"

    @property
    def is_stdin(self) -> bool:
        """Whether rows come from standard input."""
        return self.path == "-"

    @property
    def name(self) -> str:
        """What errors call it."""
        return "standard input" if self.is_stdin else self.path

    @property
    def special(self) -> tuple[str, ...]:
        """Columns that are not features."""
        weights = () if self.weights is None or is_file(self.weights) else (self.weights,)
        ids = () if self.ids is None else (self.ids,)
        return (*self.target, *ids, *weights, *self.drop)


def is_file(name: str) -> bool:
    """Whether weights are named by a file rather than by a column."""
    return name.endswith(".npy")


def files_of(path: str) -> list[Path]:
    """The files that a path, a pattern or a folder of shards stands for, all of one kind.

    In a folder, files whose names begin with y are labels of those that begin with x.
    """
    folder = Path(path)
    if not folder.is_dir() or folder.suffix == ".zarr":
        found = paths_of(path)
        for file in found:
            _require_known(file)
        return found
    files = sorted(file for file in folder.iterdir() if _is_known(file))
    rows = [file for file in files if file.name.startswith(("x", "X"))]
    chosen = rows if rows and label_shards(folder) else files
    kinds = sorted({file.suffix.lower() for file in chosen})
    if len(kinds) != 1:
        found_kinds = f"files of the kinds {', '.join(kinds)}" if kinds else "none"
        raise ValueError(
            f"the folder {path} must hold files of one kind that can be read "
            f"({', '.join(ALL)}), got {found_kinds}"
        )
    return chosen


def label_shards(folder: Path) -> list[Path]:
    """The .npy files of a folder whose names begin with y."""
    return sorted(file for file in folder.glob("[yY]*.npy"))


def kind_of(request: Request) -> str:
    """The extension that decides how the rows are read."""
    if request.is_stdin:
        kind = f".{request.format}"
        if kind not in (*TABLES, *SVMLIGHT):
            raise ValueError(f"standard input must be csv, tsv or svmlight, got {request.format}")
        return kind
    return suffix_of(files_of(request.path)[0])


def suffix_of(file: Path) -> str:
    """The extension of a file, also of one that is compressed (`.csv.gz`)."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    compressed = len(suffixes) > 1 and suffixes[-1] in (".gz", ".bz2", ".xz", ".zst")
    return suffixes[-2] if compressed else (suffixes or [""])[-1]


ALL = (*TABLES, *STREAMED, *WHOLE)


def _is_known(file: Path) -> bool:
    return suffix_of(file) in ALL and not file.name.startswith(".")


def _require_known(file: Path) -> None:
    if not _is_known(file):
        raise ValueError(
            f"{file} must be one of {', '.join(ALL)}, got {suffix_of(file) or 'no extension'}"
        )


def opened(request: Request) -> Any:
    """Standard input as a binary stream, or the files."""
    return sys.stdin.buffer if request.is_stdin else files_of(request.path)


def digests(request: Request) -> list[dict[str, Any]]:
    """Name, size and SHA-256 of every file of a request; no hash of folders and huge files."""
    if request.is_stdin:
        return []
    paths = [*files_of(request.path), *([Path(request.labels)] if request.labels else [])]
    return [_digest(path) for path in paths]


def _digest(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {"file": path.name}
    size = path.stat().st_size
    if size > HASHED_BYTES:
        return {"file": path.name, "bytes": size}
    total = sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            total.update(piece)
    return {"file": path.name, "bytes": size, "sha256": total.hexdigest()}
