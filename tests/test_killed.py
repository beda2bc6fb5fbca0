"""kill -9 at random moments: the same call goes on and ends with the same answer."""

import os

import pytest

from tests.checkpoints.going_on import assert_killed_fits_end_alike

#: Kills per case; 33 in all.
KILLS = {
    "lbfgs": 3,
    "admm": 3,
    "chain": 5,
    "newton-cg": 2,
    "newton": 2,
    "hessian-lbfgs": 2,
    "sgd": 2,
    "row-space": 3,
    "estimator": 3,
    "path": 4,
    "cross-validation": 4,
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks")
def test_fits_that_are_killed_end_with_the_same_answer(tmp_path):
    # Fits that have ended no longer share reads with the others: other last digits.
    assert_killed_fits_end_alike(tmp_path, KILLS, rounded="cross-validation")
