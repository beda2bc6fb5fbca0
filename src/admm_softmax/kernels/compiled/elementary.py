"""An exponential and a logarithm, for numbers and for vectors of them."""

from __future__ import annotations

from typing import Any

from admm_softmax.kernels.compiled.jit import compiled_strictly
from admm_softmax.kernels.compiled.lanes import (
    exponent_of,
    larger,
    mantissa_of,
    power_of_two,
    where_above,
)

LOG2_E = 1.4426950408889634
#: log 2 in two parts; the first has 32 bits, so that k times it is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
#: Below this the result, 1e-307, stands for all smaller ones.
SMALLEST_EXPONENT = -707.0
#: Adding it rounds a double to an integer, and leaves that in its last bits: so no conversion
#: is needed, which has no vector form before AVX-512.
ROUNDER = 6755399441055744.0  # 1.5 · 2⁵²
SQRT_2 = 1.4142135623730951
#: The same in single precision, where log 2 begins with 10 bits.
SINGLE_LN2_HIGH, SINGLE_LN2_LOW = 0.693359375, -2.12194440e-4
#: Below this, 4e-18, the result is zero: numbers that become subnormal when they are multiplied by
#: weights make products many times slower.
SMALLEST_SINGLE_EXPONENT = -40.0
SINGLE_ROUNDER = 12582912.0  # 1.5 · 2²³


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


@compiled_strictly
def single_exp_of_nonpositive(x: Any) -> Any:
    """eˣ to 2e-7, for x ≤ 0, lanes of singles; zero where it is below 4e-18.

    As above, by the polynomial of degree 6 that meets eʳ at the 7 Chebyshev points, to 3e-9.
    """
    rounded = x * LOG2_E + SINGLE_ROUNDER
    k = rounded - SINGLE_ROUNDER
    r = (x - k * SINGLE_LN2_HIGH) - k * SINGLE_LN2_LOW
    r2 = r * r
    high = (r * 0.008375126398416404 + 0.041666352896198126) + r2 * 0.001394110846934711
    e = (r + 1.0) + r2 * ((r * 0.16666415514649002 + 0.5) + r2 * high)
    return where_above(SMALLEST_SINGLE_EXPONENT, x, 0.0, e * power_of_two(rounded))


@compiled_strictly
def log_of_at_least_one(x: Any) -> Any:
    """log x to two units in the last place, for finite x ≥ 1, a number or lanes; else NaN.

    x = 2ᵏ m with √½ < m ≤ √2, and log m = 2 artanh(s) = 2s (1 + s² q(s²)), s = (m − 1) / (m + 1);
    q by the polynomial of degree 6 that meets it at the 7 Chebyshev points, to 2e-15. A sum of
    exponentials below its largest is at least one; the library's logarithm, number by number, took
    as long as six of them.
    """
    m, k = mantissa_of(x), exponent_of(x)
    k = where_above(m, SQRT_2, k + 1.0, k)
    m = where_above(m, SQRT_2, m * 0.5, m)
    s = (m - 1.0) / (m + 1.0)
    u = s * s
    u2 = u * u
    low = (u * 0.19999999999959547 + 0.3333333333333329) + u2 * (
        u * 0.11111105764880824 + 0.14285714311299652
    )
    high = (u * 0.07666353503929654 + 0.09091430753823489) + u2 * 0.07301412937153053
    of_m = (s + s) + (s + s) * (u * (low + (u2 * u2) * high))
    # The last term is zero but for NaN and infinity, whose bits mean nothing above.
    return (k * LN2_HIGH + (of_m + k * LN2_LOW)) + (x - x)
