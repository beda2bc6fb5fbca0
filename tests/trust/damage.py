"""Ways to damage a file, and a limit on the memory that reading it may take."""

from __future__ import annotations

import resource
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

#: Bytes of address space above what the process has.
ROOM = 768 << 20


@contextmanager
def limited_memory():
    """Let the process have ROOM more address space than it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@st.composite
def damages(draw):
    """A function that damages bytes: cut, flipped, overwritten by large numbers, doubled."""
    kind = draw(st.sampled_from(["cut", "flip", "flip", "large", "insert", "empty", "noise"]))
    places = draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=4))
    early = draw(st.booleans())  # headers are at the beginning, or at the end
    value = draw(st.binary(min_size=1, max_size=8))

    def damage(content: bytes) -> bytes:
        raw = bytearray(content)
        if kind == "empty" or not raw:
            return b""
        if kind == "noise":
            return value * 9
        reach = min(len(raw), 200) if early else len(raw)
        spots = [int(p * reach) for p in places]
        if kind == "cut":
            return bytes(raw[: spots[0]])
        for spot in spots:
            if kind == "flip":
                raw[spot] ^= value[0] or 1
            elif kind == "large":
                raw[spot : spot + 4] = b"\x7f\xff\xff\xff"[: len(raw) - spot]
            else:
                raw[spot:spot] = value
        return bytes(raw)

    return damage
