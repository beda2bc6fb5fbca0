"""How functions are compiled here: on first call, without the GIL, cached on disk."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import types
from numba.extending import intrinsic

#: Sums may be reordered and products contracted; infinities and NaNs keep their meaning.
FAST = {"nsz", "arcp", "contract", "reassoc"}
#: Contraction alone, for code whose cancellations are meant.
STRICT = {"contract"}


def compiled(function: Any, fastmath: set[str] = FAST) -> Any:
    """Compile on first call; without a cache where there is no place to write to."""
    settings = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}
    try:
        dispatcher = njit(cache=True, **settings)(function)
    except RuntimeError:  # a read-only installation and no home directory
        return njit(**settings)(function)
    # Numba takes what is cached for fresh while the function's own file is unchanged; but
    # the functions it calls are compiled into it, and live in other files.
    file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if file is not None:
        file._source_stamp = _stamp()
    return dispatcher


@lru_cache(maxsize=1)
def _stamp() -> tuple[float, int]:
    """When any kernel last changed, and the size of all of them."""
    states = [path.stat() for path in sorted(Path(__file__).parents[1].rglob("*.py"))]
    return max(s.st_mtime for s in states), sum(s.st_size for s in states)


def compiled_strictly(function: Any) -> Any:
    """As `compiled`, but sums stay in their order."""
    return compiled(function, STRICT)


@intrinsic  # type: ignore[untyped-decorator]
def use_wide_vectors(typing: Any) -> Any:
    """Let LLVM use registers of 512 bits in this function, which it avoids by itself."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite knows the attributes of a closed list; this one is of the open kind.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), emit
