"""What choices that were measured may depend on: the kind of this CPU."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")

#: Sets of vector instructions, the widest first: what they are called, and what NumPy calls them.
_VECTORS = {"AVX-512": "AVX512F", "AVX2": "AVX2", "NEON": "ASIMD"}


@cache
def vector_instructions() -> str | None:
    """The widest vector instructions that this CPU has; None where it has others, or none.

    NumPy is asked, which knows at once. LLVM would know best, but loading Numba to ask takes
    longer than some of the choices that depend on this save.
    """
    try:
        features = import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):  # NumPy does not promise to tell
        return None
    return next((name for name, key in _VECTORS.items() if features.get(key)), None)


def measured(*, wide: T, narrow: T) -> T:
    """One of two measurements of the same thing: with AVX-512, or without.

    `wide` was measured on a Xeon with AVX-512 at 2.8 GHz, `narrow` on an EPYC (Zen 3) with
    AVX2, both with two cores, unless it says otherwise where it is used. CPUs of other kinds are
    taken for the latter.
    """
    return wide if vector_instructions() == "AVX-512" else narrow
