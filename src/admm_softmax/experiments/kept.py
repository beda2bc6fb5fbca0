"""Finished runs on disk: what was found, with which settings, when, where and by what."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from admm_softmax._files import replacing
from admm_softmax.report.provenance import describe_machine, describe_versions

Figures = TypeVar("Figures")


class Kept:
    """A folder of runs, a file each.

    made : settings, date, machine and versions of every run asked for, by its name
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, dict[str, str]] = {}

    def __call__(
        self, kind: type[Figures], name: str, settings: str, make: Callable[[], Figures]
    ) -> Figures:
        """What is there for these settings, a dataclass of this kind, or what `make` makes."""
        path = self.folder / f"{name}.json"
        found = _read(path)
        if found is None or not _fits(found, kind, settings):
            figures: Any = make()
            made = {"settings": settings, **provenance()}
            found = {"made": made, "figures": asdict(figures)}
            write_json(path, found)
        self.made[name] = found["made"]
        return kind(**found["figures"])


def provenance() -> dict[str, str]:
    """When, where and by what a figure is made."""
    return {
        "date": date.today().isoformat(),
        "machine": describe_machine(),
        "versions": describe_versions(),
    }


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # absent, or damaged
        return None


def _fits(found: Any, kind: Any, settings: str) -> bool:
    """Whether a file holds all fields of this kind, made with these settings."""
    try:
        names = set(found["figures"])
        return names == {f.name for f in fields(kind)} and found["made"]["settings"] == settings
    except (KeyError, TypeError):
        return False


def write_json(path: Path, content: Mapping[str, Any]) -> Path:
    """Write JSON, with null for what is no finite number, for which JSON has no name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_finite(content), indent=1, allow_nan=False)
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
