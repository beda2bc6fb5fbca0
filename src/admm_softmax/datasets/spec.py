"""What a data set consists of, and the check that these are its bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


class DatasetError(RuntimeError):
    """Data that cannot be found, read or trusted.

    >>> from admm_softmax import datasets
    >>> try:
    ...     datasets.load_mnist(data_dir="/nowhere", download=False)
    ... except datasets.DatasetError as error:
    ...     print("not here")
    ... # doctest: +SKIP
    not here
    """


@dataclass(frozen=True)
class Format:
    """Files that together hold a data set, and the function that reads them.

    A file may be gzipped, with `.gz` after its name. `archives` are the tar files in which
    they are distributed.
    """

    files: tuple[str, ...]
    decode: Callable[[Mapping[str, bytes]], Arrays]
    archives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A remote source: `fetch` puts its files into an empty folder.

    `needs` is a module without which the files cannot be read, and what to install for it.
    """

    name: str
    fetch: Callable[[Path], None]
    needs: tuple[str, str] | None = None


@dataclass(frozen=True)
class Spec:
    """A data set: its arrays, their checksums, and where to look.

    `encode` yields the arrays as the publisher's own files, by name; `checksums` has the
    SHA-256 of each. It is the same for every compression, archive and format.

    `folders` are searched within the user's folder, `installed` on the system.
    """

    name: str
    dtype: str
    shapes: Mapping[str, tuple[int, ...]]
    encode: Callable[[Arrays], Iterator[tuple[str, bytes]]]
    checksums: Mapping[str, str]
    formats: tuple[Format, ...]
    folders: tuple[str, ...] = (".",)
    installed: tuple[Path, ...] = ()
    sources: tuple[Source, ...] = ()


def check(spec: Spec, arrays: Arrays) -> None:
    """Raise DatasetError unless the arrays are those of the data set, to the byte."""
    for name, shape in spec.shapes.items():
        array = arrays[name]
        if array.shape != shape or array.dtype != spec.dtype:
            raise DatasetError(
                f"{name} must be {spec.dtype} of shape {shape}, "
                f"got {array.dtype} of shape {array.shape}"
            )
    for file, content in spec.encode(arrays):
        digest = hashlib.sha256(content).hexdigest()
        if digest != spec.checksums[file]:
            raise DatasetError(
                f"wrong checksum: the content of {file} must have SHA-256 "
                f"{spec.checksums[file]}, got {digest}"
            )
