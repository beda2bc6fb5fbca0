"""How much memory there is, and how much a source may take of it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LIMIT_RULE = 'a number of bytes or a text such as "500MB" or "4GB"'


def memory_bytes(limit: Any) -> int:
    """A limit in bytes; None is half of the memory that is free now.

    >>> memory_bytes("1.5GB"), memory_bytes(4096)
    (1610612736, 4096)
    """
    if limit is None:
        return free_memory() // 2
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", limit, re.IGNORECASE)
        if found is None:
            raise ValueError(f"memory_limit must be {_LIMIT_RULE}, got {limit!r}")
        return int(float(found[1]) * _UNITS[found[2].upper()])
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise ValueError(f"memory_limit must be {_LIMIT_RULE}, got {limit!r}")
    return int(limit)


def free_memory() -> int:
    """Bytes that this process may still take: of the machine, or of its control group."""
    return min(_of_machine(), _of_group())


def _of_machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError):  # Windows
        return 4 << 30


def _of_group() -> int:
    """What a container's limit leaves."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        used = int((folder / "memory.current").read_text(encoding="ascii"))
        return max(0, int(limit) - used) if limit != "max" else 1 << 62
    except (OSError, ValueError):
        return 1 << 62
