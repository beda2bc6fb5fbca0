"""CIFAR-10 through AlexNet: ten minutes of torch the first time, then from the data cache."""

from benchopt import BaseDataset

from admm_softmax.experiments.data import cifar10


class Dataset(BaseDataset):
    name = "cifar10 alexnet"
    parameters = {"n_rows": [40_000]}

    def get_data(self):
        train = cifar10().train
        return {"X": train.X[: self.n_rows], "y": train.y[: self.n_rows]}
