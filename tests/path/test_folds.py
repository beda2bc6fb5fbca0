"""Folds: problems on parts of the rows, whose Gram matrices are down-dated."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, ShuffleSplit

from admm_softmax import Problem
from admm_softmax.design import DenseDesign, SparseDesign
from admm_softmax.path.folds import split
from tests.problems import make


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("splitter", [KFold(5), ShuffleSplit(4, test_size=0.3, random_state=0)])
def test_gram_matrices_are_those_of_the_actual_rows(splitter, form, dtype):
    X, y = make(103, 7, 3)
    weights = np.random.default_rng(0).random(103)
    weights[:10] = 0.0
    stored = sp.csr_array(X) if form == "sparse" else X
    pairs = list(splitter.split(X))
    training = split(Problem.of(stored, y, sample_weight=weights), pairs)
    for (rows, _), fold in zip(pairs, training, strict=True):
        actual = Problem.of(X[rows], y[rows], sample_weight=weights[rows], n_classes=3)
        assert fold.total_weight == pytest.approx(actual.total_weight)
        tol = 1e-5 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(fold.gram(dtype), actual.gram(), rtol=tol, atol=tol)
        W = np.random.default_rng(1).standard_normal(fold.shape)
        assert fold.objective(W) == pytest.approx(actual.objective(W))
        np.testing.assert_allclose(fold.at(W).gradient, actual.at(W).gradient, atol=1e-12)


@pytest.mark.parametrize("kind", [DenseDesign, SparseDesign])
def test_each_row_is_multiplied_once_whatever_the_number_of_folds(kind, monkeypatch):
    X, y = make(120, 6, 3)
    counted = []
    original = kind.gram

    def gram(self, weights, dtype=np.float64):
        counted.append(self.count(weights))
        return original(self, weights, dtype)

    monkeypatch.setattr(kind, "gram", gram)
    problem = Problem.of(X if kind is DenseDesign else sp.csr_array(X), y)
    training = split(problem, list(KFold(8).split(X)))
    for fold in training:
        fold.gram()
        fold.with_alpha(2.0).gram()
    problem.gram()
    assert sum(counted) == 120


def test_a_split_that_leaves_rows_out_has_gram_matrices_of_its_own():
    X, y = make(50, 4, 3)
    pairs = [(np.arange(20), np.arange(30, 50))]
    (fold,) = split(Problem.of(X, y), pairs)
    np.testing.assert_allclose(fold.gram(), Problem.of(X[:20], y[:20]).gram(), rtol=1e-12)


def test_rows_that_are_named_twice_count_twice():
    X, y = make(60, 4, 3)
    chosen = np.r_[np.arange(40), np.arange(10)]
    mask = np.arange(60) >= 40
    (fold,) = split(Problem.of(X, y), [(chosen, mask)])
    actual = Problem.of(X[chosen], y[chosen])
    W = np.random.default_rng(0).standard_normal(fold.shape)
    assert fold.objective(W) == pytest.approx(actual.objective(W))
    np.testing.assert_allclose(fold.gram(), actual.gram(), rtol=1e-10, atol=1e-14)
    (masked,) = split(Problem.of(X, y), [(~mask, mask)])
    expected = Problem.of(X[:40], y[:40]).gram()
    np.testing.assert_allclose(masked.gram(), expected, rtol=1e-10, atol=1e-14)


def test_rows_without_weight_are_refused():
    X, y = make(50, 4, 3)
    weights = np.ones(50)
    weights[:5] = 0
    with pytest.raises(ValueError, match="fold 0: the 5 rows chosen must have weight"):
        split(Problem.of(X, y, sample_weight=weights), [(np.arange(5), np.arange(5, 50))])
