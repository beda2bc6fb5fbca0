"""Where figures come from: the machine and the versions, in a line each."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy
import scipy
import sklearn

import admm_softmax
from admm_softmax._parallel import cpu_count


def describe_machine() -> str:
    """The processor, its cores that this process may use, and the memory."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    parts = [model, f"{cpu_count()} cores"]
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        parts.append(f"{memory / 2**30:.0f} GB")
    return ", ".join(parts)


def describe_versions() -> str:
    """The library, what it stands on, and the interpreter."""
    modules = {
        "admm-softmax": admm_softmax,
        "scikit-learn": sklearn,
        "NumPy": numpy,
        "SciPy": scipy,
    }
    named = [f"{name} {module.__version__}" for name, module in modules.items()]
    return ", ".join([*named, f"Python {platform.python_version()}"])
