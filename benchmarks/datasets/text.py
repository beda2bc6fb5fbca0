"""Documents as sparse tf-idf rows, see `benchmark_utils.generators.text_like`."""

from benchmark_utils.generators import SHAPES, text_like
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "text"
    parameters = {"shape": list(SHAPES["text"]), "random_state": [0]}
    test_parameters = {"shape": ["small-text"]}

    def get_data(self):
        X, y = text_like(*SHAPES["text"][self.shape], seed=self.random_state)
        return {"X": X, "y": y}
