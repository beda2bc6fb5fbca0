"""Where results come from: the machine and the versions, one line each."""

from __future__ import annotations

import os
import platform
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from admm_softmax._cpu import vector_instructions
from admm_softmax._parallel import cpu_count
from admm_softmax._version import __version__


def provenance() -> dict[str, str]:
    """Date, machine and versions of a result that is computed now."""
    return {
        "date": date.today().isoformat(),
        "machine": describe_machine(),
        "versions": describe_versions(),
    }


def describe_machine() -> str:
    """The processor, its vectors, its cores that this process may use, and the memory."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    vectors = vector_instructions()
    parts = [f"{model} ({vectors})" if vectors else model, f"{cpu_count()} cores"]
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        parts.append(f"{memory / 2**30:.0f} GB")
    return ", ".join(parts)


def describe_versions() -> str:
    """Versions of the library, of its main dependencies and of Python."""
    found = [f"admm-softmax {__version__}"]
    for name in ("scikit-learn", "numpy", "scipy", "numba", "torch"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # torch is optional
            continue
    return ", ".join([*found, f"Python {platform.python_version()}"])
