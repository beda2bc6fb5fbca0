"""The paper's two data sets: training, validation and test rows, their features, and L."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from admm_softmax import operators
from admm_softmax.datasets import alexnet_weights
from admm_softmax.datasets.images import Folder, Images, load_cifar10, load_mnist
from admm_softmax.features import AlexNetPool5, RandomConvolution, standardize_examples
from admm_softmax.storage.folders import cache_folder

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of features with their labels."""

    X: NDArray[np.float32]
    y: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Data:
    """The data of one experiment; `operator` is the paper's L, the intercept's 1 included."""

    train: Part
    validation: Part
    test: Part
    operator: Any

    @property
    def others(self) -> tuple[Part, Part]:
        """The parts that are not fitted: validation and test."""
        return self.validation, self.test


def split_rows(
    labels: NDArray[np.intp], seed: int = 0, *, leaky: bool = False
) -> tuple[Rows, Rows]:
    """50,000 rows of MNIST: 1,000 per class to validate, the rest to train.

    Seed 0 takes the rows, and the first 1,000 per class, in their order; any other seed
    shuffles them. `leaky` repeats the mistake of the authors' code, with the same rows to
    validate: they are mixed at random with the others and deleted class by class, at positions
    counted before the first deletion, which are wrong after it, so that most of them stay.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(labels)) if seed else np.arange(len(labels))
    order = order[:50_000]
    of_class = [np.flatnonzero(labels[order] == k)[:1000] for k in range(10)]
    validation = order[np.concatenate(of_class)]
    train = np.setdiff1d(order, validation, assume_unique=True)
    return (_with_leak(train, validation, random) if leaky else train), validation


def _with_leak(train: Rows, validation: Rows, random: np.random.Generator) -> Rows:
    """The training rows when those to validate, 1,000 per class, are deleted at wrong positions."""
    # None among the last 10,000: positions there would no longer exist after ten deletions.
    mixed = random.permutation(np.concatenate([train[:30_000], validation]))
    left = np.concatenate([mixed, train[30_000:]])
    places = [np.flatnonzero(np.isin(left, rows)) for rows in np.split(validation, 10)]
    for stale in places:
        left = np.delete(left, stale)
    return left


def mnist(seed: int = 0, *, leaky: bool = False, data_dir: Folder = None) -> Data:
    """MNIST under nine random 3 × 3 convolutions: 40,000, 10,000 and 10,000 rows of 7056.

    The seed draws the filters and, unless it is 0, the rows.
    """
    images = load_mnist(data_dir=data_dir)
    convolution = RandomConvolution(random_state=seed)

    def part(pixels: NDArray[np.uint8], labels: NDArray[np.intp]) -> Part:
        return Part(convolution.fit_transform(pixels / np.float32(255)), labels)

    train, validation = split_rows(images.train_labels, seed, leaky=leaky)
    maps = operators.laplacian((28, 28), spacing=1 / 28)
    return Data(
        part(images.train_images[train], images.train_labels[train]),
        part(images.train_images[validation], images.train_labels[validation]),
        part(images.test_images, images.test_labels),
        _with_intercept(operators.per_channel(maps, 9)) / 7056,
    )


def cifar10(
    seed: int = 0,
    *,
    data_dir: Folder = None,
    verbose: bool = False,
) -> Data:
    """CIFAR-10 in AlexNet's features: 40,000, 10,000 and 10,000 standardised rows of 9216.

    Batches 1 to 4 train and batch 5 validates with seed 0; any other shuffles the five.
    """
    images = load_cifar10(data_dir=data_dir)
    X, X_test = alexnet_features(images, data_dir=data_dir, verbose=verbose)
    order = np.arange(len(X))
    if seed:
        np.random.default_rng(seed).shuffle(order)
    train, validation = np.sort(order[:40_000]), np.sort(order[40_000:])
    maps = operators.laplacian((6, 6), spacing=1 / 6)
    return Data(
        Part(X[train], images.train_labels[train]),
        Part(X[validation], images.train_labels[validation]),
        Part(X_test, images.test_labels),
        _with_intercept(operators.per_channel(maps, 256)) / 9216,
    )


def alexnet_features(
    images: Images, *, data_dir: Folder = None, verbose: bool = False
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Standardised features of the training and of the test images, kept in the cache."""
    parameters = alexnet_weights(data_dir=data_dir)
    network = AlexNetPool5(parameters, cache_dir=cache_folder() / "features", verbose=verbose)
    network.fit(images.train_images)
    train, test = (network.transform(x) for x in (images.train_images, images.test_images))
    return standardize_examples(train, copy=False), standardize_examples(test, copy=False)


def prepare(name: str, *, data_dir: Folder = None, verbose: bool = False) -> None:
    """Fetch the images and compute CIFAR-10's features, so that errors come before the runs."""
    if name == "mnist":
        load_mnist(data_dir=data_dir)
    else:
        alexnet_features(load_cifar10(data_dir=data_dir), data_dir=data_dir, verbose=verbose)


def _with_intercept(L: Any) -> Any:
    return sp.csr_array(sp.block_diag([L, sp.csr_array([[1.0]])]))
