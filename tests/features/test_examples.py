"""standardize_examples: the formula, in either precision, in place or not."""

import numpy as np
import pytest

from admm_softmax.features import examples, standardize_examples


def by_definition(X):
    X = np.asarray(X, np.float64)
    floor = 1 / np.sqrt(X.shape[1])
    return np.stack([(x - x.mean()) / max(x.std(), floor) for x in X])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_is_the_formula(dtype, monkeypatch):
    X = (np.random.default_rng(0).standard_normal((50, 30)) * 3 + 1).astype(dtype)
    X[3] = 7.0
    X[4] *= 1e-3  # below the floor
    before = X.copy()
    Z = standardize_examples(X)
    assert Z.dtype == dtype
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(Z, by_definition(X), atol=10 * np.finfo(dtype).eps)
    assert not Z[3].any()
    assert Z[4].std() < 0.1
    monkeypatch.setattr(examples, "_BLOCK_NUMBERS", 7 * 30)
    np.testing.assert_allclose(standardize_examples(X), Z, atol=10 * np.finfo(dtype).eps)


def test_float32_is_summed_in_float64():
    X = np.full((1, 100_000), 1e4, np.float32)
    X[0, ::2] += 1
    np.testing.assert_allclose(np.abs(standardize_examples(X)), 1.0, atol=1e-6)


def test_writes_in_place_if_asked():
    X = np.random.default_rng(0).standard_normal((5, 4))
    expected = standardize_examples(X)
    assert standardize_examples(X, copy=False) is X
    np.testing.assert_array_equal(X, expected)


def test_integers_become_float64_and_read_only_rows_are_copied():
    X = np.arange(12).reshape(3, 4)
    assert standardize_examples(X, copy=False).dtype == np.float64
    fixed = X.astype(np.float64)
    fixed.flags.writeable = False
    np.testing.assert_allclose(standardize_examples(fixed, copy=False), by_definition(X))


def test_one_column_becomes_zero():
    np.testing.assert_array_equal(standardize_examples([[3.0], [-2.0]]), np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("X", "message"), [([[np.nan, 1.0]], "X contains NaN"), ([1.0, 2.0], "Expected 2D array")]
)
def test_bad_rows_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        standardize_examples(X)
