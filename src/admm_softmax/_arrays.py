"""The array types that all modules share."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: What solvers compute in: float64, whatever the data are stored in.
Array: TypeAlias = NDArray[np.float64]

#: Class codes (n,) for hard labels, or rows of the simplex (n, K) for soft ones.
Labels: TypeAlias = NDArray[Any]
