"""MNIST and Fashion-MNIST, as pixels or as the paper's random convolutions.

The four idx files of a set, unpacked, are looked for in $ADMM_SOFTMAX_DATA/<name>, or
for MNIST in $ADMM_SOFTMAX_DATA itself.
"""

import os
from pathlib import Path

import numpy as np
from benchopt import BaseDataset


def read_idx(path):
    raw = path.read_bytes()
    shape = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def folder_of(name):
    root = Path(os.environ.get("ADMM_SOFTMAX_DATA", "data"))
    for folder in (root / name, root):
        if (folder / "train-images-idx3-ubyte").exists():
            return folder
    raise FileNotFoundError(
        f"{name}: no train-images-idx3-ubyte in {root / name} or {root}; "
        "set ADMM_SOFTMAX_DATA to a folder with the four idx files"
    )


def convolutions(images, filters):
    """Tanh of periodic 3 × 3 convolutions, one block of columns a filter."""
    size = images[0].size
    out = np.empty((len(images), len(filters) * size), np.float32)
    for k, kernel in enumerate(filters):
        total = np.zeros_like(images)
        for i in range(3):
            for j in range(3):
                total += kernel[i, j] * np.roll(images, (i - 1, j - 1), (1, 2))
        out[:, k * size : (k + 1) * size] = np.tanh(total).reshape(len(out), -1)
    return out


def training_rows(labels):
    """The paper's split without its leak: 50,000 images less 1,000 of each class."""
    labels = labels[:50_000]
    held_out = np.concatenate([np.flatnonzero(labels == k)[:1000] for k in range(10)])
    return np.setdiff1d(np.arange(50_000), held_out)


class Dataset(BaseDataset):
    name = "images"
    parameters = {
        "set": ["mnist", "fashion-mnist"],
        "features": ["pixels", "convolutions"],
        "n_rows": [40_000],
    }
    test_parameters = {"n_rows": [200]}

    def get_data(self):
        folder = folder_of(self.set)
        images = read_idx(folder / "train-images-idx3-ubyte").astype(np.float32) / 255
        labels = read_idx(folder / "train-labels-idx1-ubyte").astype(np.intp)
        rows = training_rows(labels)[: self.n_rows]
        images, y = images[rows], labels[rows]
        if self.features == "pixels":
            return {"X": images.reshape(len(images), -1), "y": y}
        filters = np.random.default_rng(0).standard_normal((9, 3, 3)).astype(np.float32)
        return {"X": convolutions(images, filters), "y": y}
