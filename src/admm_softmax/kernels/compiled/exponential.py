"""An exponential that compilers can vectorise, for arguments that are not positive."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from admm_softmax.kernels.compiled.jit import compiled_strictly

LOG2_E = 1.4426950408889634
#: log 2 in two parts; the first has 32 bits, so that k times it is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
#: Below this the result, 1e-307, stands for all smaller ones.
SMALLEST = -707.0


@intrinsic  # type: ignore[untyped-decorator]
def _from_bits(typing: Any, bits: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), emit


@compiled_strictly
def exp_of_nonpositive(x: float) -> float:
    """eˣ to two units in the last place, for x ≤ 0.

    x = k log 2 + r with |r| ≤ log 2 / 2; eʳ by its series to degree 13, whose remainder
    is below 1e-17; 2ᵏ is written into the exponent's bits.
    """
    x = max(x, SMALLEST)
    k = np.floor(x * LOG2_E + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    e = 1.0 / 6227020800.0
    e = e * r + 1.0 / 479001600.0
    e = e * r + 1.0 / 39916800.0
    e = e * r + 1.0 / 3628800.0
    e = e * r + 1.0 / 362880.0
    e = e * r + 1.0 / 40320.0
    e = e * r + 1.0 / 5040.0
    e = e * r + 1.0 / 720.0
    e = e * r + 1.0 / 120.0
    e = e * r + 1.0 / 24.0
    e = e * r + 1.0 / 6.0
    e = e * r + 0.5
    e = e * r + 1.0
    e = e * r + 1.0
    result: float = e * _from_bits((np.int64(k) + 1023) << 52)
    return result
