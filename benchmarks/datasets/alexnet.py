"""CIFAR-10 through AlexNet: ten minutes of torch the first time, then from a file.

The features are kept in $ADMM_SOFTMAX_DATA/features, or in `features` here.
"""

import os
from pathlib import Path

from benchopt import BaseDataset

from admm_softmax.experiments.data import cifar10


class Dataset(BaseDataset):
    name = "cifar10 alexnet"
    parameters = {"n_rows": [40_000]}

    def get_data(self):
        folder = Path(os.environ.get("ADMM_SOFTMAX_DATA", ".")) / "features"
        train = cifar10(cache_dir=folder).train
        return {"X": train.X[: self.n_rows], "y": train.y[: self.n_rows]}
