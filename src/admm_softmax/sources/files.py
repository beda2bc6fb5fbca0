"""Rows that lie one after the other in a file: `.npy`, `np.memmap`, safetensors."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax.sources.base import PIECE_BYTES, Piece, Source
from admm_softmax.sources.mapping import mapped

#: The types of safetensors that hold real numbers. V2 stands for bfloat16.
_SAFETENSORS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "V2", "I64": "<i8", "I32": "<i4",
    "I16": "<i2", "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


class FileRows(Source):
    """n rows of the same number of bytes, from an offset of a file on.

    Rows that are in the page cache are mapped, a slice at a time, and not copied; others are
    read through a small buffer.
    """

    lasting = False
    fills = True

    def __init__(self, path: Any, offset: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.path = Path(path)
        self.name = str(path)
        self.offset = offset
        self.n_rows, *rest = shape
        self.row_shape = tuple(rest)
        self.dtype = np.dtype(dtype)
        self.row_bytes = prod(self.row_shape) * self.dtype.itemsize
        size, needed = self.path.stat().st_size, offset + self.n_rows * self.row_bytes
        if size < needed:
            raise ValueError(f"{path} has {size} bytes, but {shape} rows need {needed}: truncated?")

    def read(self, wanted: Sequence[slice]) -> Iterator[Piece]:
        """The rows of some slices, mapped, or in pieces that the next one overwrites."""
        step = max(1, PIECE_BYTES // max(1, self.row_bytes))
        room = np.empty((step, *self.row_shape), self.dtype)
        memory = memoryview(room.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        with open(self.path, "rb", buffering=0) as file:
            for part in wanted:
                first = self.offset + part.start * self.row_bytes
                shape = (part.stop - part.start, *self.row_shape)
                rows = mapped(file, first, shape, self.dtype)
                if rows is not None:
                    yield part.start, rows
                    continue
                file.seek(first)
                for start in range(part.start, part.stop, step):
                    count = min(step, part.stop - start)
                    self._fill(file, memory[: count * self.row_bytes], start)
                    yield start, room[:count]

    def mapped(self, rows: slice) -> Any:
        """The rows of a slice where the page cache has them, else None."""
        shape = (rows.stop - rows.start, *self.row_shape)
        with open(self.path, "rb", buffering=0) as file:
            return mapped(file, self.offset + rows.start * self.row_bytes, shape, self.dtype)

    def fill(self, rows: slice, out: Any) -> None:
        """Read the rows of a slice into an array in C order of the same type."""
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.offset + rows.start * self.row_bytes)
            self._fill(file, memoryview(out.reshape(-1).view(np.uint8)), rows.start)

    def _fill(self, file: Any, memory: memoryview, start: int) -> None:
        done = 0
        while done < len(memory):
            got = file.readinto(memory[done:])
            if not got:
                row = start + done // self.row_bytes
                raise ValueError(f"{self.path} ends at row {row}: it became shorter while read")
            done += got


def npy_rows(path: Any) -> FileRows:
    """The rows of a `.npy` file in C order."""
    with open(path, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = read(file)
        except OSError:
            raise
        except Exception as error:  # NumPy parses the header as Python, which can raise anything
            raise ValueError(f"{path} is not a .npy file: {error}") from error
        offset = file.tell()
    if by_columns and len(shape) > 1:
        raise ValueError(
            f"{path} is stored column by column, so that rows cannot be read: save "
            "np.ascontiguousarray of it"
        )
    if dtype.hasobject:
        raise TypeError(f"{path} must hold real numbers, got type {dtype}")
    if not shape:
        raise ValueError(f"{path} must hold rows, got a single number")
    return FileRows(path, offset, shape, dtype)


def memmap_rows(X: np.memmap[Any, Any]) -> FileRows | None:
    """The rows of a memory map as rows of its file; None where they do not lie there in order."""
    root: Any = X
    while isinstance(root.base, np.memmap):
        root = root.base
    row_bytes = prod(X.shape[1:]) * X.itemsize
    in_order = X[:1].flags.c_contiguous and (len(X) < 2 or X.strides[0] == row_bytes)
    # A private map (mode "c") may differ from the file.
    readable = isinstance(root.base, mmap.mmap) and root.mode in ("r", "r+", "w+")
    if not (in_order and readable and root.filename is not None and os.path.exists(root.filename)):
        return None
    offset = root.offset + X.ctypes.data - root.ctypes.data
    return FileRows(root.filename, offset, X.shape, X.dtype)


def safetensors_rows(path: Any, key: str | None = None) -> FileRows:
    """The rows of one tensor of a safetensors file: the one named, or the only one with rows.

    The format is a length, a header in JSON, and the tensors' bytes in C order.
    """
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 2 <= size <= Path(path).stat().st_size:
            raise ValueError(f"{path} is not a safetensors file: its header has {size} bytes")
        try:
            header = json.loads(file.read(size))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not a safetensors file: {error}") from error
    header = _checked_header(header, path)
    if key is None:
        tensors = [name for name, facts in header.items() if len(facts["shape"]) > 1]
        if len(tensors) != 1:
            raise ValueError(f"{path} holds the tensors {[*header]}: name one by key=")
        (key,) = tensors
    if key not in header:
        raise ValueError(f"{path} has no tensor {key!r}; it holds {[*header]}")
    facts = header[key]
    if facts["dtype"] not in _SAFETENSORS:
        raise TypeError(f"{path} must hold real numbers, got type {facts['dtype']} in {key!r}")
    shape, dtype = tuple(facts["shape"]), _SAFETENSORS[facts["dtype"]]
    return FileRows(path, 8 + size + facts["data_offsets"][0], shape, dtype)


def _checked_header(header: Any, path: Any) -> dict[str, Any]:
    """The tensors of a header by name, each with a type, a shape and offsets."""
    tensors = {} if not isinstance(header, dict) else header
    tensors.pop("__metadata__", None)
    for name, given in tensors.items():
        facts = given if isinstance(given, dict) else {}
        sizes: list[Any] = [facts.get("shape"), facts.get("data_offsets")]
        whole = all(
            isinstance(part, list) and all(type(size) is int and size >= 0 for size in part)
            for part in sizes
        )
        if not (whole and len(sizes[1]) == 2 and isinstance(facts.get("dtype"), str)):
            raise ValueError(f"{path} is not a safetensors file: tensor {name!r} is {facts}")
    return tensors
