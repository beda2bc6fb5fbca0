"""The splits, features and settings of the paper."""

from dataclasses import replace

import numpy as np
import pytest

from admm_softmax import ADMM, SGD, HessianLBFGS, NewtonCG
from admm_softmax.datasets import Images
from admm_softmax.experiments import data as data_sets
from admm_softmax.experiments.data import split_rows
from admm_softmax.experiments.paper import CIFAR10, METHODS, MNIST
from admm_softmax.features import AlexNetPool5, RandomConvolution
from tests.experiments.stand_ins import small_images, zero_weights


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(0).integers(0, 10, 60_000)


def test_the_clean_split_is_one(labels):
    for seed in (0, 1):
        train, validation = split_rows(labels, seed)
        assert len(train) == 40_000
        assert len(np.union1d(train, validation)) == 50_000
        np.testing.assert_array_equal(np.bincount(labels[validation]), np.full(10, 1000))
    assert set(split_rows(labels, 0)[0]) <= set(range(50_000))
    assert not np.array_equal(split_rows(labels, 1)[0], split_rows(labels, 2)[0])


@pytest.mark.parametrize("seed", [0, 1])
def test_the_authors_split_leaks(labels, seed):
    train, validation = split_rows(labels, seed, leaky=True)
    clean, same = split_rows(labels, seed)
    np.testing.assert_array_equal(validation, same)
    assert len(np.unique(train)) == 40_000
    assert 6000 < len(np.intersect1d(train, validation)) < 8000  # most of the 10,000
    assert np.isin(train, np.union1d(clean, validation)).all()


def test_the_papers_settings():
    solvers = MNIST.solvers(seed=2)
    assert tuple(solvers) == METHODS == tuple(MNIST.reported)
    assert solvers["ADMM-Softmax"] == ADMM(rho=40_000 * 1e-7, start="paper")
    assert solvers["Newton-CG"] == NewtonCG(20, 1e-2)
    assert solvers["ℓ-BFGS"] == HessianLBFGS(10, 20, 1e-2)
    sgd = SGD(0.1, batch_size=300, momentum=0.9, nesterov=False, schedule="constant", seed=2)
    assert solvers["SGD"] == sgd
    assert MNIST.alpha == 1e-6
    assert CIFAR10.alpha == 0.1
    assert CIFAR10.solvers(0)["ADMM-Softmax"].rho == pytest.approx(40_000 * 8e-12)
    assert CIFAR10.solvers(2)["SGD"] == replace(sgd, learning_rate=0.01)
    assert [tuple(r) for r in MNIST.reported.values()] == [
        (0.092, 0.9774),
        (0.13, 0.9646),
        (0.093, 0.9734),
        (0.113, 0.9656),
    ]
    assert [tuple(r) for r in CIFAR10.reported.values()] == [
        (0.590, 0.8290),
        (0.534, 0.8158),
        (0.584, 0.8103),
        (0.664, 0.8079),
    ]


def check_operator(L, side, n_maps):
    """Five-point Laplacians with spacing 1 / side and a 1, divided by the number of columns."""
    n = n_maps * side**2
    assert L.shape == (n + 1, n + 1)
    dense = L[: 2 * side**2, : 2 * side**2].toarray() * n / side**2
    np.testing.assert_allclose(np.abs(np.diag(dense)), 4)
    np.testing.assert_allclose(np.abs(dense[0, [1, side]]), 1)
    assert dense[side - 1, side] == 0  # the next line of the image
    assert not dense[: side**2, side**2 :].any()  # another map
    assert L[n, n] == pytest.approx(1 / n)


def test_mnist_as_the_paper_has_it(monkeypatch, labels):
    pixels = np.zeros((60_000, 28, 28), np.uint8)
    pixels[:, 14, 14] = 51
    test = pixels[:20]
    images = Images("mnist", "made up", tuple("abcdefghij"), pixels, labels, test, labels[:20])
    monkeypatch.setattr(data_sets, "load_mnist", lambda data_dir: images)
    monkeypatch.setattr(
        data_sets, "split_rows", lambda *_, leaky: (np.arange(30, 70), np.arange(5))
    )
    data = data_sets.mnist(seed=3)
    assert [part.X.shape for part in (data.train, *data.others)] == [
        (40, 7056),
        (5, 7056),
        (20, 7056),
    ]
    assert data.train.X.dtype == np.float32
    np.testing.assert_array_equal(data.train.y, labels[30:70])
    filters = RandomConvolution(random_state=3).fit(np.zeros((1, 28, 28))).filters_
    maps = data.train.X[0].reshape(9, 28, 28)
    assert np.count_nonzero(maps) == 81
    np.testing.assert_allclose(
        sorted(np.arctanh(maps[maps != 0])), sorted(51 / 255 * filters.ravel()), rtol=1e-4
    )
    check_operator(data.operator, 28, 9)


def test_cifar10_as_the_paper_has_it(monkeypatch):
    labels = np.random.default_rng(1).integers(0, 10, 50_000)
    pixels = np.zeros((50_000, 1, 1, 3), np.uint8)
    images = Images(
        "cifar10", "made up", tuple("abcdefghij"), pixels, labels, pixels[:7], labels[:7]
    )
    monkeypatch.setattr(data_sets, "load_cifar10", lambda data_dir: images)

    def features(images, **_):
        return np.arange(50_000, dtype=np.float32)[:, None], np.zeros((7, 1), np.float32)

    monkeypatch.setattr(data_sets, "alexnet_features", features)
    data = data_sets.cifar10(0)
    np.testing.assert_array_equal(data.train.X[:, 0], np.arange(40_000))  # batches 1 to 4
    np.testing.assert_array_equal(data.validation.X[:, 0], np.arange(40_000, 50_000))
    np.testing.assert_array_equal(data.validation.y, labels[40_000:])
    assert data.test.X.shape == (7, 1)
    check_operator(data.operator, 6, 256)
    other = data_sets.cifar10(1)
    rows = np.concatenate([other.train.X[:, 0], other.validation.X[:, 0]])
    np.testing.assert_array_equal(np.sort(rows), np.arange(50_000))
    assert len(other.train.y) == 40_000
    assert 7000 < np.count_nonzero(other.validation.X[:, 0] < 40_000) < 9000
    np.testing.assert_array_equal(other.train.y, labels[other.train.X[:, 0].astype(int)])


def test_features_of_cifar10_are_standardised_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("ADMM_SOFTMAX_CACHE", str(tmp_path))
    monkeypatch.setattr(data_sets, "alexnet_weights", lambda data_dir: zero_weights())
    seen = []

    def compute(self, images, weights):
        seen.append(len(images))
        return np.random.default_rng(len(images)).random((len(images), 9216), np.float32)

    monkeypatch.setattr(AlexNetPool5, "_compute", compute)
    images = small_images("cifar10")
    images = replace(images, test_images=images.test_images[:5])
    for _ in range(2):
        train, test = data_sets.alexnet_features(images)
        assert (train.shape, test.shape) == ((60, 9216), (5, 9216))
        np.testing.assert_allclose(train.mean(axis=1), 0, atol=1e-5)
        np.testing.assert_allclose(train.std(axis=1), 1, rtol=1e-3)
    assert seen == [60, 5]
    assert len(list((tmp_path / "features").iterdir())) == 2
