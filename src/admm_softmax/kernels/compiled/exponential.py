"""An exponential of arguments that are not positive, for numbers and for vectors of them."""

from __future__ import annotations

from typing import Any

from admm_softmax.kernels.compiled.jit import compiled_strictly
from admm_softmax.kernels.compiled.lanes import larger, power_of_two

LOG2_E = 1.4426950408889634
#: log 2 in two parts; the first has 32 bits, so that k times it is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
#: Below this the result, 1e-307, stands for all smaller ones.
SMALLEST_EXPONENT = -707.0
#: Adding it rounds a double to an integer, and leaves that in its last bits: so no conversion
#: is needed, which has no vector form before AVX-512.
ROUNDER = 6755399441055744.0  # 1.5 · 2⁵²


@compiled_strictly
def exp_of_nonpositive(x: Any) -> Any:
    """eˣ to two units in the last place, for x ≤ 0, a number or lanes.

    x = k log 2 + r with |r| ≤ log 2 / 2; eʳ by the polynomial of degree 11 that meets it
    at the 12 Chebyshev points there, to 2e-17; 2ᵏ is written into the exponent's bits.
    """
    x = larger(x, SMALLEST_EXPONENT)
    rounded = x * LOG2_E + ROUNDER
    k = rounded - ROUNDER
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    # Pairs, pairs of pairs, and so on (Estrin): a chain of 5 operations rather than 11.
    r2 = r * r
    r4 = r2 * r2
    c0 = (r + 1.0) + r2 * (r * 0.1666666666666668 + 0.5000000000000019)
    c4 = (r * 0.008333333333319601 + 0.04166666666648809) + r2 * (
        r * 0.00019841269890047143 + 0.0013888888952314812
    )
    c8 = (r * 2.7557240918547625e-06 + 2.480148548228773e-05) + r2 * (
        r * 2.511003761756205e-08 + 2.763263965412376e-07
    )
    e = (c8 * r4 + c4) * r4 + c0
    return e * power_of_two(rounded)
