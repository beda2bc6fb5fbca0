"""The machine in a few words."""

import datetime
import os
import platform
from pathlib import Path


def describe():
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    today = datetime.date.today().isoformat()
    return f"{model}, {cores} cores, {gigabytes:.0f} GB, {today}"
