"""NumPy or compiled: a choice by size alone, so that the same input gives the same bits."""

from __future__ import annotations

#: A fit makes about a hundred passes. From so many multiplications in each of them, or so
#: many entries of X W, they save more than the second that loading Numba takes.
COMPILED_FROM_PRODUCTS = 30_000_000
COMPILED_FROM_SCORES = 200_000

#: Up to so many classes our thin products beat BLAS.
FUSED_CLASSES = 500


def repays_compiling(n_rows: int, entries: int, n_classes: int) -> bool:
    """Whether passes over X of this size should run compiled.

    >>> repays_compiling(1_797, 1_797 * 64, 10)
    False
    >>> repays_compiling(40_000, 40_000 * 7_056, 10)
    True
    """
    many_products = entries * n_classes >= COMPILED_FROM_PRODUCTS
    return many_products or n_rows * n_classes >= COMPILED_FROM_SCORES
