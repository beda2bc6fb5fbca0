"""Every parameter with values of the wrong kind: a model, or one sentence that names it."""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV
from tests.problems import make

X, Y = make(60, 4, 3)


class Odd:
    """Nothing that anyone would give."""


ODD = [
    *(None, True, 0, -1, 2, 3, 10**30, -(10**400), 0.5, 1e-320, 1e308, np.nan, np.inf, -np.inf, 1j),
    *("", "a", "nan", "1", b"a", "/nowhere/at/all"),
    *([], [1], [1, 2], [[1, 2]], [None], ["a"], (), (1,), (1, 2, 3), {}, {1: 2}, {"a": 1}, set()),
    *(np.array(1.0), np.array(1), np.array([1.0]), np.array([1.0, 2.0]), np.zeros(0)),
    *(np.zeros((2, 2)), np.array("a"), np.array(["a", "b"]), np.array([1, None], object)),
    *(np.float32(0.5), np.int8(3), np.bool_(True), np.ma.masked, np.datetime64("2020")),
    *(pd.Series([1, 2]), pd.DataFrame({"a": [1]}), pd.NA, pd.NaT, Decimal("0.5"), Fraction(1, 2)),
    *(datetime.date(2020, 1, 1), range(3), Odd(), Odd, int, ..., Exception("x")),
    *(np.random.default_rng(0), np.random.RandomState(0)),
]
#: What Python says of the wrong kind of value, where nobody has looked at it.
BARE = (
    "ambiguous",
    "is not iterable",
    "iteration over",
    "not supported between",
    "unsupported operand",
    "unhashable",
    "has no len",
    "object is not",
    "to unpack",
    "float() argument",
)
#: A user's own function, and a folder, which may have any name.
LEFT_OUT = {"scoring", "checkpoint", "verbose"}
#: What a sentence about a parameter calls it instead.
OTHER_NAMES = {"cv": ("n_splits",), "l1_ratios": ("l1_ratio",), "n_threads": ("threads",)}
CASES = [
    (kind, name)
    for kind in (SoftmaxRegression, SoftmaxRegressionCV)
    for name in sorted(kind().get_params(deep=False))
    if name not in LEFT_OUT
]


def fitted(kind, name, value):
    """A model with the parameter, and few steps."""
    settings = {"max_iter": 20, name: value}
    if kind is SoftmaxRegressionCV:
        settings = {"cv": 2, "alphas": [0.1], **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(**settings).fit(X, Y)


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda part: getattr(part, "__name__", part))
def test_odd_values_are_taken_or_refused_in_a_sentence_that_names_the_parameter(kind, name):
    refused = 0
    for value in ODD:
        if name == "callbacks" and callable(value):
            continue  # what a user's own function says is the user's
        try:
            clf = fitted(kind, name, value)
        except (ValueError, TypeError) as error:
            words = str(error)
            known = (name, *OTHER_NAMES.get(name, ()))
            assert any(word in words for word in known), f"{name}={value!r}: {words}"
            assert not any(bare in words for bare in BARE), f"{name}={value!r}: {words}"
            refused += 1
        else:
            assert np.isfinite(clf.coef_).all(), f"{name}={value!r}"
    assert refused > len(ODD) // 4  # that most of them mean nothing is noticed
