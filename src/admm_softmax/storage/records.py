"""Finished runs on disk: results, settings and provenance, one JSON file per run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from admm_softmax.storage.atomic import replacing

Figures = TypeVar("Figures")


class Records:
    """A folder of runs, one file per run.

    provenance : called once per new run; what it returns is kept with the settings
    made : settings and provenance of every run asked for, by its name
    """

    def __init__(self, folder: Path, provenance: Callable[[], Mapping[str, str]]) -> None:
        self.folder = folder
        self.provenance = provenance
        self.made: dict[str, dict[str, str]] = {}

    def __call__(
        self, kind: type[Figures], name: str, settings: str, make: Callable[[], Figures]
    ) -> Figures:
        """The results kept under `name` if the settings agree, else those of `make`.

        kind : the dataclass of the results
        """
        path = self.folder / f"{name}.json"
        found = _read(path)
        if found is None or not _fits(found, kind, settings):
            figures: Any = make()
            made = {"settings": settings, **self.provenance()}
            found = {"made": made, "figures": asdict(figures)}
            write_json(path, found)
        self.made[name] = found["made"]
        return kind(**found["figures"])


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):  # absent, or damaged
        return None


def _fits(found: Any, kind: Any, settings: str) -> bool:
    """Whether a file holds all fields of this kind, made with these settings."""
    try:
        names = set(found["figures"])
        return names == {f.name for f in fields(kind)} and found["made"]["settings"] == settings
    except (KeyError, TypeError):
        return False


def write_json(path: Path, content: Mapping[str, Any]) -> Path:
    """Write JSON, with null for NaN and infinity, which JSON cannot express."""
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
