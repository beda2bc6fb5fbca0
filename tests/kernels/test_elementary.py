"""The compiled exponential and logarithm are the exact ones rounded; Wright's omega is SciPy's."""

from decimal import Decimal, localcontext

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.special import wrightomega

from admm_softmax.kernels.compiled import elementary, zstep

exp_of_nonpositive = elementary.exp_of_nonpositive
log_of_at_least_one = elementary.log_of_at_least_one
wright_omega = zstep.wright_omega


# These are compiled without what Python needs to call them.
@njit
def compiled_exp(x):
    return exp_of_nonpositive(x)


@njit
def compiled_log(x):
    return log_of_at_least_one(x)


@njit
def compiled_omega(x):
    return wright_omega(x)


def units_off(got, function, x):
    """How far a result is from the exact one, in units of its last place.

    NumPy's own functions depend on the CPU in their last digits.
    """
    with localcontext(prec=40):
        exact = function(Decimal(x))
        return abs(Decimal(got) - exact) / Decimal(float(np.spacing(float(exact))))


@settings(max_examples=300, deadline=None)
@given(st.floats(-700, 0))
def test_exponential(x):
    assert units_off(compiled_exp(x), Decimal.exp, x) < 2.5


def test_exponential_far_below_zero():
    assert 0 <= compiled_exp(-1e9) < 1e-300
    assert compiled_exp(0.0) == 1.0
    assert np.isnan(compiled_exp(np.nan))


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.floats(1, 1e300), st.floats(1, 3)))
def test_logarithm(x):
    assert units_off(compiled_log(x), Decimal.ln, x) < 2.5


def test_logarithm_of_no_number():
    assert compiled_log(1.0) == 0.0
    assert np.isnan(compiled_log(np.nan))
    assert np.isnan(compiled_log(np.inf))


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.floats(-700, 5), st.floats(-3, 3), st.floats(0, 1e9)))
def test_wright_omega(x):
    np.testing.assert_allclose(compiled_omega(x), wrightomega(x), rtol=4e-15, atol=0)
