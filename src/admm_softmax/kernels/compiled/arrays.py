"""Arrays as compiled code takes them, so that it is compiled for one kind of array only."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(array: Any, dtype: Any) -> Any:
    """An array as compiled passes take all of them: C-ordered and aligned."""
    return np.require(array, dtype, ["C", "A"])
