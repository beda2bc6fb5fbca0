"""The paper's two data sets: which rows train, validate and test, their features, and L."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from admm_softmax import operators
from admm_softmax.datasets.images import Folder, load_mnist
from admm_softmax.features import RandomConvolution

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of features with their labels."""

    X: NDArray[np.float32]
    y: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Data:
    """What an experiment runs on; `operator` is the paper's L, the intercept's 1 included."""

    name: str
    train: Part
    validation: Part
    test: Part
    operator: Any


def split_rows(
    labels: NDArray[np.intp], seed: int = 0, *, leaky: bool = False
) -> tuple[Rows, Rows]:
    """50,000 rows of MNIST, of which the first 1,000 of each class validate; the rest train.

    Seed 0 takes the rows in their order, any other shuffles them first. `leaky` repeats the
    authors' code: the validation rows are deleted from the training rows class by class,
    at places that were counted before the first deletion and no longer hold by then, so that
    most validation rows stay among the training rows.
    """
    order = np.arange(len(labels))
    if seed:
        np.random.default_rng(seed).shuffle(order)
    order = order[:50_000]
    places = [np.flatnonzero(labels[order] == k)[:1000] for k in range(10)]
    validation = order[np.concatenate(places)]
    if not leaky:
        return np.setdiff1d(order, validation, assume_unique=True), validation
    train = order
    for place in places:
        train = np.delete(train, place)
    return train, validation


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
        "mnist",
        part(images.train_images[train], images.train_labels[train]),
        part(images.train_images[validation], images.train_labels[validation]),
        part(images.test_images, images.test_labels),
        _with_intercept(operators.per_channel(maps, 9)) / 7056,
    )


def _with_intercept(L: Any) -> Any:
    return sp.csr_array(sp.block_diag([L, sp.csr_array([[1.0]])]))
