"""Object code on disk, for the next process: found again without loading Numba.

A folder holds what was compiled from one state of the sources, by one version of the compilers,
for one CPU and under one set of Numba's settings. In it each function has a file: a digest of
what follows, a line of facts in JSON, and the object code. Files appear under their name when they
are complete, so that processes may write at the same time; one that is damaged is as good as none.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import Any, NamedTuple

import llvmlite
from llvmlite import binding

#: Settings of Numba's that change no code.
_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_DISABLE_JIT"}
_DIGEST_SIZE = sha256().digest_size
_PREFIX = "admm-softmax-"
#: How many folders may stand side by side: some versions times some CPUs, at up to 1 MB each.
KEPT_FOLDERS = 32


class Record(NamedTuple):
    """A compiled function as it is kept."""

    #: What the object code calls it.
    symbol: str
    #: The functions that it calls, by the names under which they are kept.
    calls: list[str]
    #: What it takes, for functions that Python calls: see `entries`.
    kinds: list[Any]
    code: bytes


def find(name: str) -> Record | None:
    """The function that was kept under this name, if it was and is whole."""
    found = read(name)
    if found is None:
        return None
    facts, code = found
    return Record(facts["symbol"], facts["calls"], facts["kinds"], code)


def keep(name: str, record: Record) -> None:
    """Keep a function under this name, if there is a place to write to."""
    facts = {"symbol": record.symbol, "calls": record.calls, "kinds": record.kinds}
    write(name, facts, record.code)


def read(name: str) -> tuple[dict[str, Any], bytes] | None:
    """Facts and bytes that were kept under a name; None where there are none, or damaged ones."""
    for folder in folders():
        with suppress(OSError, ValueError):
            content = _file(folder, name).read_bytes()
            digest, rest = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
            line, _, code = rest.partition(b"\n")
            # Of another name if both names differ in characters only that a file's has not.
            if digest == sha256(rest).digest() and (facts := json.loads(line))["name"] == name:
                return facts, code
    return None


def write(name: str, facts: dict[str, Any], code: bytes = b"") -> None:
    """Keep facts and bytes under a name, in the first folder that can be written to."""
    rest = json.dumps({"name": name, **facts}).encode() + b"\n" + code
    for folder in folders():
        with suppress(OSError):
            _replace(_file(folder, name), sha256(rest).digest() + rest)
            return


def _replace(file: Path, content: bytes) -> None:
    """Write a file so that others see all of it or nothing."""
    if not file.parent.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        _forget_old(file.parent)
    unfinished = file.with_name(f".{file.name}.{os.getpid()}-{token_hex(4)}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def _forget_old(new: Path) -> None:
    """Remove all but the newest folders beside a new one: every change of the sources makes one."""
    folders = new.parent.glob(f"{_PREFIX}*")
    by_age = sorted((folder.stat().st_mtime, folder) for folder in folders if folder != new)
    for _, folder in by_age[: max(0, len(by_age) + 1 - KEPT_FOLDERS)]:
        rmtree(folder, ignore_errors=True)


def _file(folder: Path, name: str) -> Path:
    return folder / (re.sub(r"[^\w.]+", "-", name.removeprefix("admm_softmax.")) + ".code")


def writable_folder() -> Path | None:
    """Where code is kept; None where nothing can be written."""
    for folder in folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
    return None


def folders() -> list[Path]:
    """Where code may be kept: in NUMBA_CACHE_DIR; else beside the sources, else with the user's."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    roots = [Path(chosen)] if chosen else [Path(__file__).parent / "__pycache__", *_users_caches()]
    return [root / f"{_PREFIX}{_key()}" for root in roots]


def _users_caches() -> list[Path]:
    """The folder for caches of this user, where there is a home."""
    named = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    with suppress(RuntimeError):
        return [Path(named) if named else Path.home() / ".cache"]
    return []


def _key() -> str:
    """What code depends on, as the name of a folder."""
    settings = sorted(
        (name, value)
        for name, value in os.environ.items()
        if name.startswith("NUMBA_") and name not in _HARMLESS
    )
    return _digest(tuple(settings), _host())


@cache
def _digest(settings: tuple[tuple[str, str], ...], host: tuple[str, str]) -> str:
    named = dict(settings)
    if "NUMBA_CPU_NAME" in named and "NUMBA_CPU_FEATURES" in named:
        host = ("", "")  # machines that all compile for the same CPU share what they compile
    python = sys.implementation.cache_tag, object.__basicsize__
    versions = version("numba"), llvmlite.__version__, python
    facts = settings, host, versions, binding.get_process_triple(), _sources()
    return sha256(repr(facts).encode()).hexdigest()[:16]


@cache
def _host() -> tuple[str, str]:
    """Name and features of the CPU that this runs on, as LLVM sees it."""
    try:
        return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot tell
        return binding.get_host_cpu_name(), ""


@cache
def _sources() -> str:
    """A digest of all kernels: the functions that one calls may be compiled into it."""
    digest = sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    # Numba reads its settings from here too.
    with suppress(OSError):
        digest.update(Path(".numba_config.yaml").read_bytes())
    return digest.hexdigest()
