"""The sizes at which a pass is done in another way: compiled, or for more columns of W at once.

Each choice is by size alone, so that the same input gives the same bits. A process takes 0.1 to
0.3 s to load compiled code, but a fresh environment takes seconds to compile it: so problems whose
fits take a few tenths of a second with NumPy are left to it, though loading alone would pay off.
"""

from __future__ import annotations

import os
import sys

from admm_softmax._cpu import measured

#: Passes run compiled from so many multiplications in each of them on, or so many entries of X W:
#: there a fit saves about what loading takes. Fits of 8,000 × 500 and 16,000 × 50 with ten classes,
#: with NumPy and compiled, take 392 and 207 ms, and 177 and 58 ms, on an Emerald Rapids with
#: AVX-512; held to AVX2 871 and 550 ms, and 198 and 83 ms.
COMPILED_FROM_PRODUCTS = measured(wide=30_000_000, narrow=20_000_000)
COMPILED_FROM_SCORES = 200_000
#: The same where compiled code is loaded anyway. Passes over 100 × 16, 1,000 × 16 and 3,000 × 16
#: with three classes, 1,000 × 64 and 1,797 × 64 with ten take 0.28, 0.38, 1.0, 0.66 and 0.91 ms
#: with NumPy there, and 0.35, 0.30, 0.49, 0.46 and 0.43 ms compiled; held to AVX2 0.28, 0.49, 1.3,
#: 0.83 and 0.74 ms, and 0.36, 0.36, 0.70, 0.57 and 0.41 ms.
LOADED_FROM_PRODUCTS, LOADED_FROM_SCORES = 200_000, 3_000
#: From so many entries of a whole data set on, compiled code widens float16, in a quarter of the
#: time: 2e6 and 2e7 entries take 3.6 and 44 ms with NumPy, and 0.26 and 11 ms compiled, on Zen 4 as
#: it is and held to AVX2. There loading it is won back after three passes.
COMPILED_FROM_ENTRIES = 20_000_000
#: From so many features of an image on, compiled code takes their tanh. 5e6 of them take NumPy 2.0
#: ms with AVX-512, 5.9 ms without it and 79 ms without AVX2, and compiled code 1.2 ms (Zen 4): with
#: AVX-512 transforms are as fast with either. Otherwise chosen for some ten thousand images.
COMPILED_FROM_FEATURES = measured(wide=sys.maxsize, narrow=10_000)

#: From so many columns of W on, a compiled X W goes by turned panels: see `compiled.panels`. So it
#: does where X has at most so many columns for each of W's: there adding up lanes, which panels
#: spare, takes more than turning. CPU time of passes by tiles over that of passes by panels, by
#: `benchmarks/versions.py` on an Ice Lake with AVX-512, and held to AVX2: over 768 columns 0.88 and
#: 0.83 with 14 classes, 0.99 and 0.94 with 20, 1.10 and 1.01 with 30, over 384 columns 1.08 and
#: 1.04 with 50; with ten classes over 16, 50, 100 and 200 columns 1.45, 1.20, 1.07 and 0.95, and
#: 1.28, 1.05, 0.96 and 0.89.
MANY_CLASSES = 30
COLUMNS_PER_CLASS = measured(wide=12, narrow=6)

#: The most columns of W, over all requests, that share one read of X. Each column is two operations
#: per entry of X, so that beyond some hundred the read no longer counts. Chosen, not tuned.
SHARED_COLUMNS = 200
#: The most jobs to run side by side: with ten classes each, they fill SHARED_COLUMNS.
MOST_JOBS = 20
#: The same for targets, of which a pass takes whole blocks: 512 operations per entry of X.
TARGET_COLUMNS = 256


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


def repays_panels(n_columns: int, n_classes: int) -> bool:
    """Whether X W over so many columns of X should go by turned panels.

    >>> repays_panels(7_056, 10), repays_panels(768, 100), repays_panels(16, 10)
    (False, True, True)
    """
    return n_classes >= MANY_CLASSES or n_columns <= COLUMNS_PER_CLASS * n_classes


def repays_widening(entries: int) -> bool:
    """Whether so many entries should be widened by compiled code."""
    return entries >= COMPILED_FROM_ENTRIES and not compiling_is_off()


def repays_compiled_tanh(n_features: int) -> bool:
    """Whether images of so many features should be transformed by compiled code."""
    return n_features >= COMPILED_FROM_FEATURES and not compiling_is_off()


def compiling_is_off() -> bool:
    """Whether Numba is told not to compile (NUMBA_DISABLE_JIT); asked without loading it."""
    numba = sys.modules.get("numba")
    if numba is not None and hasattr(numba, "config"):
        return bool(numba.config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
