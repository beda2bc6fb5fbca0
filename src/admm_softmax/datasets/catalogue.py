"""The data sets that can be fetched, by name."""

from __future__ import annotations

import os

from admm_softmax.datasets.alexnet import ALEXNET
from admm_softmax.datasets.images import CIFAR10, FASHION_MNIST, MNIST
from admm_softmax.datasets.resolve import Resolved, resolve

_SPECS = {spec.name: spec for spec in (MNIST, FASHION_MNIST, CIFAR10, ALEXNET)}
#: The names that `fetch` knows.
NAMES = tuple(_SPECS)


def fetch(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> Resolved:
    """Put a data set into the cache, unless it is there, and say where it came from.

    >>> from admm_softmax import datasets
    >>> datasets.NAMES
    ('mnist', 'fashion-mnist', 'cifar10', 'alexnet')
    >>> datasets.fetch("mnist").path  # doctest: +SKIP
    """
    if name not in _SPECS:
        raise ValueError(f"name must be one of {', '.join(NAMES)}, got {name!r}")
    return resolve(_SPECS[name], data_dir=data_dir)
