"""The array types that all modules share, and the rounding of what they compute in."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: What solvers compute in: float64, whatever the data are stored in.
Array: TypeAlias = NDArray[np.float64]

#: Class codes (n,) for hard labels, or rows of the simplex (n, K) for soft ones.
Labels: TypeAlias = NDArray[Any]

#: The rounding of float64: the distance from 1 to the next number.
EPS = float(np.finfo(np.float64).eps)
