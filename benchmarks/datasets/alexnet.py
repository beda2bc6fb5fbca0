"""CIFAR-10 through AlexNet, from a file that was made before: X (float32) and y in an npz.

Looked for as $ADMM_SOFTMAX_DATA/cifar10-alexnet.npz.
"""

import os
from pathlib import Path

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "cifar10 alexnet"
    parameters = {"n_rows": [40_000]}

    def get_data(self):
        path = Path(os.environ.get("ADMM_SOFTMAX_DATA", "data")) / "cifar10-alexnet.npz"
        with np.load(path) as file:
            return {
                "X": np.ascontiguousarray(file["X"][: self.n_rows], np.float32),
                "y": file["y"][: self.n_rows].astype(np.intp),
            }
