"""Tiny data sets in every published format, and specifications that expect them."""

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import replace

import numpy as np
from PIL import Image

from admm_softmax.datasets import formats
from admm_softmax.datasets.images import CIFAR10, FASHION_MNIST, MNIST


def arrays_like(shape, seed=0):
    """Two images per batch: ten to train, two to test."""
    rng = np.random.default_rng(seed)
    return {
        "train_images": rng.integers(0, 256, (10, *shape), np.uint8),
        "train_labels": rng.integers(0, 10, 10, np.uint8),
        "test_images": rng.integers(0, 256, (2, *shape), np.uint8),
        "test_labels": rng.integers(0, 10, 2, np.uint8),
    }


def expecting(spec, arrays, **changes):
    """The specification with these arrays for content, and nowhere else to look."""
    return replace(
        spec,
        shapes={name: array.shape for name, array in arrays.items()},
        checksums={
            file: hashlib.sha256(content).hexdigest() for file, content in spec.encode(arrays)
        },
        **{"sources": (), "installed": (), **changes},
    )


DIGITS = arrays_like((28, 28))
CLOTHES = arrays_like((28, 28), seed=1)
PHOTOS = arrays_like((32, 32, 3))
TINY_MNIST = expecting(MNIST, DIGITS)
TINY_FASHION = expecting(FASHION_MNIST, CLOTHES)
TINY_CIFAR = expecting(CIFAR10, PHOTOS)


def idx_files(arrays=DIGITS):
    return dict(formats.encode_idx(arrays))


def binary_files(arrays=PHOTOS):
    return dict(formats.encode_binary(arrays))


def zipped(files):
    return {f"{name}.gz": gzip.compress(content) for name, content in files.items()}


def python_files(arrays=PHOTOS):
    """As the publisher's: pickles of Python 2, which no Python 3 writes."""
    files = {}
    for file, content in binary_files(arrays).items():
        rows = np.frombuffer(content, np.uint8).reshape(-1, 3073)
        files[file.removesuffix(".bin")] = _python2_pickle(rows[:, 1:], rows[:, 0].tolist())
    return files


def _python2_pickle(data, labels):
    def string(text):
        return b"U" + bytes([len(text)]) + text

    def integer(value):
        return b"J" + value.to_bytes(4, "little", signed=True)

    reconstruct = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
    dtype = b"cnumpy\ndtype\n" + string(b"u1") + b"K\0K\1\x87R(K\3" + string(b"|") + b"NNN"
    dtype += integer(-1) + integer(-1) + b"K\0tb"
    shape = integer(data.shape[0]) + integer(data.shape[1]) + b"\x86"
    raw = b"T" + data.size.to_bytes(4, "little") + data.tobytes()
    array = reconstruct + b"K\0\x85" + string(b"b") + b"\x87R(K\1" + shape + dtype + b"\x89"
    array += raw + b"tb"
    entries = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\2}(" + string(b"data") + array + string(b"labels") + entries + b"u."


def png_files(arrays=PHOTOS):
    images = [*np.split(arrays["train_images"], 5), arrays["test_images"]]
    files = {}
    for name, batch in zip(formats.BATCHES, images, strict=True):
        file = io.BytesIO()
        Image.fromarray(batch.reshape(len(batch), 1024, 3)).save(file, "PNG")
        files[f"{name}.png"] = file.getvalue()
    for name, labels in zip(formats.PNG_LABELS, ("train_labels", "test_labels"), strict=True):
        files[name] = json.dumps(arrays[labels].tolist()).encode()
    return files


def keras_file(arrays, *, columns=False):
    def labels(name):
        return arrays[name][:, None].astype(np.int64) if columns else arrays[name]

    file = io.BytesIO()
    np.savez(
        file,
        x_train=arrays["train_images"],
        y_train=labels("train_labels"),
        x_test=arrays["test_images"],
        y_test=labels("test_labels"),
    )
    return file.getvalue()


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def write_tar(path, files, prefix="package/"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz" if path.suffix in (".gz", ".tgz") else "w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def same(got, expected):
    assert list(got) == list(expected)
    for name, array in expected.items():
        assert got[name].dtype == array.dtype
        np.testing.assert_array_equal(got[name], array)
