"""When compiled passes pay: a choice by size alone, so that the same input gives the same bits."""

from __future__ import annotations

import os
import sys

from admm_softmax._cpu import measured

#: A fit makes about a hundred passes. From so many multiplications in each of them, or so many
#: entries of X W, they save more than the second that loading Numba takes. On Zen 3, per pass:
#: 15 to 20 ms over 20,000 × 500 with ten classes, and 25 ns or more per entry of X W over 50
#: columns; loading takes 0.8 s.
COMPILED_FROM_PRODUCTS = measured(wide=30_000_000, narrow=40_000_000)
COMPILED_FROM_SCORES = 200_000
#: The same where compiled code is loaded anyway. Over 1,797 × 64 with ten classes a compiled pass
#: takes half the time, and a fit two thirds; in a new process nothing is lost or won.
LOADED_FROM_PRODUCTS, LOADED_FROM_SCORES = 1_000_000, 15_000


def repays_compiling(n_rows: int, entries: int, n_classes: int, *, is_loaded: bool = False) -> bool:
    """Whether passes over X of this size should run compiled.

    is_loaded : whether compiled code is loaded whatever the answer

    >>> repays_compiling(1_797, 1_797 * 64, 10)
    False
    >>> repays_compiling(40_000, 40_000 * 7_056, 10)
    True
    """
    products = LOADED_FROM_PRODUCTS if is_loaded else COMPILED_FROM_PRODUCTS
    scores = LOADED_FROM_SCORES if is_loaded else COMPILED_FROM_SCORES
    is_large = entries * n_classes >= products or n_rows * n_classes >= scores
    return is_large and not compiling_is_off()


def compiling_is_off() -> bool:
    """Whether Numba is told not to compile (NUMBA_DISABLE_JIT); asked without loading it."""
    numba = sys.modules.get("numba")
    if numba is not None and hasattr(numba, "config"):
        return bool(numba.config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
