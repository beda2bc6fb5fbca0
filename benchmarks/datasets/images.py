"""MNIST and Fashion-MNIST, as pixels or as the paper's random convolutions.

They come from wherever `admm_softmax.datasets` finds them; a folder that has them can be named
by $ADMM_SOFTMAX_DATA.
"""

import numpy as np
from benchopt import BaseDataset

from admm_softmax.datasets import load_fashion_mnist, load_mnist
from admm_softmax.experiments.data import split_rows
from admm_softmax.features import RandomConvolution


class Dataset(BaseDataset):
    name = "images"
    parameters = {
        "set": ["mnist", "fashion-mnist"],
        "features": ["pixels", "convolutions"],
        "n_rows": [40_000],
    }
    test_parameters = {"n_rows": [200]}

    def get_data(self):
        images = (load_mnist if self.set == "mnist" else load_fashion_mnist)()
        rows = split_rows(images.train_labels)[0][: self.n_rows]
        pixels, y = images.train_images[rows] / np.float32(255), images.train_labels[rows]
        if self.features == "pixels":
            return {"X": pixels.reshape(len(pixels), -1), "y": y}
        return {"X": RandomConvolution(random_state=0).fit_transform(pixels), "y": y}
