"""Reading a data set out of a folder, in whichever format is there."""

from __future__ import annotations

import gzip
import io
import logging
import os
import tarfile
import zlib
from collections.abc import Iterator
from math import prod
from pathlib import Path, PurePosixPath

import numpy as np

from admm_softmax.datasets.spec import Arrays, DatasetError, Format, Spec, check

logger = logging.getLogger("admm_softmax")


def read(spec: Spec, folder: Path) -> Arrays:
    """The verified arrays, from the first complete set of files under `folder`."""
    if not folder.is_dir():
        raise DatasetError("no such folder")
    problems = []
    for where, form in _candidates(spec, folder):
        try:
            source = _from_tar if where.is_file() else _from_folder
            contents = source(where, form, _most_bytes(spec))
            arrays = _decoded(form, contents)
            check(spec, arrays)
        except (DatasetError, OSError) as error:
            problems.append(f"{where.relative_to(folder).as_posix()}: {error}".removeprefix(".: "))
            logger.warning("%s: %s", spec.name, problems[-1])
        else:
            return arrays
    raise DatasetError("; ".join(problems) or "none of the files is there")


def _candidates(spec: Spec, folder: Path) -> Iterator[tuple[Path, Format]]:
    for place in (folder / name for name in spec.folders):
        for form in spec.formats:
            if any(_present(place, file) for file in form.files):
                yield place, form
            for archive in form.archives:
                if (place / archive).is_file():
                    yield place / archive, form


def _present(folder: Path, file: str) -> Path | None:
    paths = (folder / file, folder / f"{file}.gz")
    return next((path for path in paths if path.is_file()), None)


def _most_bytes(spec: Spec) -> int:
    """A limit on unpacked bytes: more than any file of the set has, less than would harm."""
    numbers = sum(prod(shape) for shape in spec.shapes.values())
    return 4 * numbers * np.dtype(spec.dtype).itemsize + 2**20


def _from_folder(folder: Path, form: Format, most: int) -> dict[str, bytes]:
    paths = {file: _present(folder, file) for file in form.files}
    _complete(form, {file for file, path in paths.items() if path})
    return {file: _unzipped(path, _bytes(path, most), most) for file, path in paths.items() if path}


def _bytes(path: Path, most: int) -> bytes:
    """The content of a file that is not too large to be part of the set."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(most + 1) if size <= most else b""
    if size > most or len(content) > most:
        raise DatasetError(f"{path.name} has {size:,} bytes, more than {most:,}")
    return content


class _ModestTarInfo(tarfile.TarInfo):
    """A member whose extended header is short: tarfile takes minutes over one of megabytes."""

    LONGEST_HEADER = 2**16

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type.decode("latin1") in "gxXLK" and self.size > self.LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes is too long")
        return super()._proc_member(tar)  # type: ignore[misc,no-any-return]


def _from_tar(archive: Path, form: Format, most: int) -> dict[str, bytes]:
    """The files of the format, read from the archive and never extracted to disk."""
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(archive, tarinfo=_ModestTarInfo) as tar:
            for member in tar:
                if member.size > most:
                    raise DatasetError(f"{member.name} has more than {most:,} bytes")
                path = PurePosixPath(member.name)
                file = path.name.removesuffix(".gz")
                if file not in form.files or member.isdir():
                    continue
                stream = tar.extractfile(member) if _is_plain(member, path) else None
                if stream is None:
                    raise DatasetError(
                        f"a member must be a plain file with a relative path, got {member.name}"
                    )
                contents[file] = _unzipped(path, stream.read(), most)
                if len(contents) == len(form.files):
                    break
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DatasetError(f"cannot be read: {error}") from error
    _complete(form, set(contents))
    return contents


def _is_plain(member: tarfile.TarInfo, path: PurePosixPath) -> bool:
    return member.isfile() and not path.is_absolute() and ".." not in path.parts


def _unzipped(path: Path | PurePosixPath, content: bytes, most: int) -> bytes:
    if path.suffix != ".gz":
        return content
    try:
        with gzip.open(io.BytesIO(content)) as file:
            unzipped = file.read(most + 1)
    except Exception as error:  # OSError, EOFError or zlib.error
        raise DatasetError(f"{path.name} cannot be unzipped: {error}") from error
    if len(unzipped) > most:
        raise DatasetError(f"{path.name} unzips to more than {most:,} bytes")
    return unzipped


def _complete(form: Format, found: set[str]) -> None:
    missing = [file for file in form.files if file not in found]
    if missing:
        raise DatasetError(f"without {', '.join(missing)}")


def _decoded(form: Format, contents: dict[str, bytes]) -> Arrays:
    try:
        return form.decode(contents)
    except DatasetError:
        raise
    except Exception as error:  # a damaged file or a hostile pickle can raise anything
        names = ", ".join(form.files)
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise DatasetError(f"{names} cannot be read: {reason}") from error
