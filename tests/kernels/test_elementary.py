"""The compiled exponential, logarithm and Wright's omega are those of NumPy and SciPy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import wrightomega

from admm_softmax.kernels.compiled import elementary, zstep


@settings(max_examples=300, deadline=None)
@given(st.floats(-700, 0))
def test_exponential(x):
    np.testing.assert_allclose(elementary.exp_of_nonpositive(x), np.exp(x), rtol=5e-16, atol=0)


def test_exponential_far_below_zero():
    assert 0 <= elementary.exp_of_nonpositive(-1e9) < 1e-300
    assert elementary.exp_of_nonpositive(0.0) == 1.0
    assert np.isnan(elementary.exp_of_nonpositive(np.nan))


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.floats(1, 1e300), st.floats(1, 3)))
def test_logarithm(x):
    # Near 1 the logarithm is a difference of two terms: an absolute error, not a relative one.
    np.testing.assert_allclose(elementary.log_of_at_least_one(x), np.log(x), rtol=5e-16, atol=1e-16)


def test_logarithm_of_no_number():
    assert elementary.log_of_at_least_one(1.0) == 0.0
    assert np.isnan(elementary.log_of_at_least_one(np.nan))
    assert np.isnan(elementary.log_of_at_least_one(np.inf))


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.floats(-700, 5), st.floats(-3, 3), st.floats(0, 1e9)))
def test_wright_omega(x):
    np.testing.assert_allclose(zstep.wright_omega(x), wrightomega(x), rtol=4e-15, atol=0)
