"""The formats in which image sets are published: bytes to arrays, and back for the checksum.

Every decoder returns uint8 arrays `train_images`, `train_labels`, `test_images` and
`test_labels`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from admm_softmax.datasets.pickles import load_arrays
from admm_softmax.datasets.spec import Arrays, DatasetError

Bytes = NDArray[np.uint8]

IDX_FILES = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
TRAIN_BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))
BATCHES = (*TRAIN_BATCHES, "test_batch")
#: The most bytes of an array in an .npz file; MNIST has 47 million, AlexNet's classifier 151.
MOST_ARRAY_BYTES = 2**29
#: Misspelt so in the package.
PNG_LABELS = ("train_lables.json", "test_lables.json")
_KERAS = {
    "train_images": "x_train",
    "train_labels": "y_train",
    "test_images": "x_test",
    "test_labels": "y_test",
}


def decode_idx(contents: Mapping[str, bytes]) -> Arrays:
    """The four files of MNIST and its successors."""
    return {name: _from_idx(file, contents[file]) for name, file in IDX_FILES.items()}


def encode_idx(arrays: Arrays) -> Iterator[tuple[str, bytes]]:
    """The inverse of `decode_idx`."""
    for name, file in IDX_FILES.items():
        array = arrays[name]
        header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        yield file, header + array.tobytes()


def _from_idx(file: str, content: bytes) -> Bytes:
    """Two zeros, the code of the dtype (8 is uint8), the number of axes, sizes, entries."""
    if content[:3] != b"\0\0\x08":
        raise DatasetError(f"{file} must begin with 00 00 08, got {content[:3].hex(' ')}")
    start = 4 + 4 * content[3]
    shape = np.frombuffer(content[4:start], ">u4")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape.tolist()).copy()


def decode_binary(contents: Mapping[str, bytes]) -> Arrays:
    """CIFAR-10, binary version: a row is its label and three 32 × 32 planes."""
    rows = [np.frombuffer(contents[f"{name}.bin"], np.uint8).reshape(-1, 3073) for name in BATCHES]
    return _joined([_from_planes(batch[:, 1:]) for batch in rows], [b[:, 0] for b in rows])


def encode_binary(arrays: Arrays) -> Iterator[tuple[str, bytes]]:
    """The inverse of `decode_binary`."""
    n = len(TRAIN_BATCHES)
    images = [*np.split(arrays["train_images"], n), arrays["test_images"]]
    labels = [*np.split(arrays["train_labels"], n), arrays["test_labels"]]
    for name, pixels, codes in zip(BATCHES, images, labels, strict=True):
        planes = pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)
        yield f"{name}.bin", np.column_stack([codes, planes]).tobytes()


def decode_python(contents: Mapping[str, bytes]) -> Arrays:
    """CIFAR-10, Python version: pickles of Python 2 with rows of three 32 × 32 planes."""
    batches = [load_arrays(contents[name]) for name in BATCHES]
    return _joined(
        [_from_planes(np.asarray(batch[b"data"])) for batch in batches],
        [np.asarray(batch[b"labels"]) for batch in batches],
    )


def decode_png(contents: Mapping[str, bytes]) -> Arrays:
    """CIFAR-10 in six RGB pictures whose rows are images of 32 × 32 pixels."""
    pictures = [_from_png(f"{name}.png", contents[f"{name}.png"]) for name in BATCHES]
    train, test = (np.array(json.loads(contents[file])) for file in PNG_LABELS)
    return _joined(
        [picture.reshape(-1, 32, 32, 3) for picture in pictures],
        [*np.split(train, len(TRAIN_BATCHES)), test],
    )


def decode_keras(contents: Mapping[str, bytes]) -> Arrays:
    """One .npz file with x_train, y_train, x_test and y_test."""
    (content,) = contents.values()
    data = read_npz(content, _KERAS.values())
    arrays = {name: data[key] for name, key in _KERAS.items()}
    for name in ("train_labels", "test_labels"):
        arrays[name] = arrays[name].reshape(-1).astype(np.uint8)
    return arrays


def read_npz(content: bytes, names: Iterable[str]) -> Arrays:
    """The arrays of these names; objects are refused."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as data:
            for member in data.zip.infolist():
                if member.file_size > MOST_ARRAY_BYTES:
                    raise DatasetError(
                        f"{member.filename} has more than {MOST_ARRAY_BYTES:,} bytes"
                    )
            return {name: data[name] for name in names}
    except zipfile.BadZipFile as error:
        raise DatasetError(f"not an .npz file: {error}") from error


def _from_planes(rows: Bytes) -> Bytes:
    return rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def _from_png(file: str, content: bytes) -> Bytes:
    try:
        from PIL import Image  # noqa: PLC0415  (optional)
    except ImportError:
        raise DatasetError(
            f"{file} needs Pillow to be read: pip install 'admm-softmax[images]'"
        ) from None
    with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
        if picture.mode != "RGB":
            raise DatasetError(f"{file} must be RGB, got {picture.mode}")
        return np.asarray(picture)


def _joined(images: Sequence[Bytes], labels: Sequence[NDArray[np.integer]]) -> Arrays:
    return {
        "train_images": np.concatenate(images[:-1]),
        "train_labels": np.concatenate(labels[:-1]).astype(np.uint8),
        "test_images": np.ascontiguousarray(images[-1]),
        "test_labels": labels[-1].astype(np.uint8),
    }
