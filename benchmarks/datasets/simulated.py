"""Planted softmax models on correlated features, in the shapes that people have."""

from benchmark_utils.generators import SHAPES, planted
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"shape": list(SHAPES["simulated"])}
    test_parameters = {"shape": ["small-wide"]}

    def get_data(self):
        X, y = planted(*SHAPES["simulated"][self.shape])
        return {"X": X, "y": y}
