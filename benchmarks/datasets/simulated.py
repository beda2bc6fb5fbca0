"""Planted softmax models on correlated features, in the shapes that people have."""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset

#: shape: (rows, features, classes, share of entries that are not zero)
SHAPES = {
    "linear-probe": (50_000, 768, 100, 1.0),
    "tall": (1_000_000, 50, 10, 1.0),
    "wide": (2_000, 20_000, 5, 1.0),
    "sparse": (20_000, 100_000, 20, 1e-3),
    "small-linear-probe": (8_000, 384, 50, 1.0),
    "small-tall": (200_000, 50, 10, 1.0),
    "small-wide": (1_000, 5_000, 5, 1.0),
    "small-sparse": (10_000, 30_000, 20, 1e-3),
}


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"shape": list(SHAPES)}
    test_parameters = {"shape": ["small-wide"]}

    def get_data(self):
        n, d, K, density = SHAPES[self.shape]
        rng = np.random.default_rng(0)
        X = self.sparse(rng, n, d, density) if density < 1 else self.dense(rng, n, d)
        scores = np.asarray(X @ rng.standard_normal((d, K)).astype(np.float32))
        scores *= 3.0 / scores.std()
        # Adding Gumbel noise and taking the largest draws from the softmax.
        y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        return {"X": X, "y": np.unique(y, return_inverse=True)[1]}

    @staticmethod
    def dense(rng, n, d):
        """Features with a spectrum that falls like that of network activations."""
        rank = min(d, 256)
        mixing = rng.standard_normal((rank, d)).astype(np.float32)
        mixing *= (np.arange(1, rank + 1) ** -0.75).astype(np.float32)[:, None]
        X = rng.standard_normal((n, rank), dtype=np.float32) @ mixing
        X += 0.1 * X.std() * rng.standard_normal((n, d), dtype=np.float32)
        return X / X.std()

    @staticmethod
    def sparse(rng, n, d, density):
        """Rows of counts over columns whose frequencies fall as words' do, scaled by tf-idf."""
        entries = int(n * d * density)
        columns = np.minimum((d * rng.random(entries) ** 3).astype(np.int64), d - 1)
        rows = rng.integers(0, n, entries)
        X = sp.csr_array((np.ones(entries, np.float32), (rows, columns)), shape=(n, d))
        X.sum_duplicates()
        seen = np.bincount(X.indices, minlength=d)
        X.data *= np.log(n / (1.0 + seen[X.indices])).astype(np.float32)
        norms = np.sqrt(X.multiply(X).sum(axis=1)) + 1e-6
        return sp.csr_array(sp.diags_array((10.0 / norms).astype(np.float32)) @ X)
