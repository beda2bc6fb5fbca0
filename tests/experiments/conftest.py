"""What the tests of the reproduction share."""

import numpy as np
import pytest

from admm_softmax.experiments import data as data_sets
from admm_softmax.experiments import reproduce as module
from admm_softmax.experiments import reproduction_report
from admm_softmax.experiments.reproduce import Options, reproduce
from tests.experiments.stand_ins import small_data, small_images


@pytest.fixture
def small(monkeypatch):
    """Small data instead of the images, everything else as it is."""
    data = small_data()
    loaded = []

    def load(name, seed, options, leaky=False):
        loaded.append("leaky" if leaky else seed)
        return data

    monkeypatch.setattr(module, "_load", load)
    monkeypatch.setattr(data_sets, "load_mnist", lambda data_dir: small_images("mnist"))
    monkeypatch.setattr(module, "GRID", np.logspace(-4, 0, 4))
    monkeypatch.setattr(reproduction_report, "load_mnist", lambda data_dir: small_images("mnist"))
    monkeypatch.setattr(
        reproduction_report, "load_cifar10", lambda data_dir: small_images("cifar10")
    )
    return loaded


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One seed, a short run of each method."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_load", lambda *_: small_data())
        options = Options(budget=0.05, seeds=1)
        return reproduce("mnist", tmp_path_factory.mktemp("results"), options)
