"""Features like a pre-trained network's: a spectrum that falls, class means that overlap.

For linear probes. What is drawn is said in `benchmark_utils.generators.embedding_like`.
"""

from benchmark_utils.generators import SHAPES, embedding_like
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "embedding"
    parameters = {"shape": list(SHAPES["embedding"]), "decay": [1.0], "random_state": [0]}
    test_parameters = {"shape": ["small-embedding-50"]}

    def get_data(self):
        n, d, K, _ = SHAPES["embedding"][self.shape]
        X, y = embedding_like(n, d, K, seed=self.random_state, decay=self.decay)
        return {"X": X, "y": y}
