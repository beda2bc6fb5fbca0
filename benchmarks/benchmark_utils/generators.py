"""Data that are drawn: planted models, features like a network's, counts of words.

::

    from benchmark_utils.generators import embedding_like

    X, y = embedding_like(20_000, 384, 50, seed=0, decay=1.0)

X is float32, y are codes 0 … K−1, and the same seed gives the same data.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class Shape(NamedTuple):
    """Rows, features and classes, and the share of entries that are not zero."""

    n: int
    d: int
    K: int
    density: float = 1.0


#: By data set, then by name.
SHAPES = {
    "simulated": {
        "linear-probe": Shape(50_000, 768, 100),
        "tall": Shape(1_000_000, 50, 10),
        "wide": Shape(2_000, 20_000, 5),
        "sparse": Shape(20_000, 100_000, 20, 1e-3),
        "small-linear-probe": Shape(8_000, 384, 50),
        "small-tall": Shape(200_000, 50, 10),
        "small-wide": Shape(1_000, 5_000, 5),
        "small-sparse": Shape(10_000, 30_000, 20, 1e-3),
    },
    # One per cent of ImageNet is 12,811 images of 1,000 classes.
    "embedding": {
        "embedding-50": Shape(20_000, 384, 50),
        "embedding-100": Shape(45_000, 768, 100),
        "embedding-1000": Shape(12_811, 384, 1000),
        "small-embedding-50": Shape(5_000, 192, 50),
        "small-embedding-300": Shape(4_000, 192, 300),
    },
    # 80 different words in a row, on average.
    "text": {
        "text": Shape(100_000, 100_000, 20, 8e-4),
        "small-text": Shape(10_000, 30_000, 20, 2.7e-3),
    },
}


def planted(n, d, K, density=1.0, *, seed=0):
    """Labels drawn from a softmax model on correlated features, or on sparse counts."""
    rng = np.random.default_rng(seed)
    X = _sparse_counts(rng, n, d, density) if density < 1 else _correlated(rng, n, d)
    scores = np.asarray(X @ rng.standard_normal((d, K)).astype(np.float32))
    scores *= 3.0 / scores.std()
    # Adding Gumbel noise and taking the largest draws from the softmax.
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return X, np.unique(y, return_inverse=True)[1]


def embedding_like(n, d, K, *, seed=0, decay=1.0, distance=5.0):
    """Features like a pre-trained network's: a spectrum that falls, classes that overlap.

    ::

        x = Q diag(λ)^½ (m_y + e),   λ_j = j^−decay,   e ~ N(0, I),   m_k ~ N(0, I) distance/√(2d)

    Q is a random rotation of d × d. Within a class the covariance has the eigenvalues λ, so
    that 1 / decay says how many directions matter; and two class means are `distance` standard
    deviations apart on average, whatever d is. With 5 the best classifier finds about 9 rows in
    10 of 50 classes and 6 in 10 of 1,000. Every class has a row, and entries have variance 1.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    means = distance / np.sqrt(2.0 * d) * rng.standard_normal((K, d), dtype=np.float32)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += means.astype(np.float32)[y]
    X *= (np.arange(1, d + 1) ** (-decay / 2)).astype(np.float32)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    X = X @ Q
    return X / X.std(), y


def text_like(n, d, K, density, *, seed=0, topical=0.04, norm=10**0.5):
    """Documents as tf-idf rows: word frequencies fall as 1 / rank, lengths are log-normal.

    Of the words of a document the share `topical` comes from its class, which has its own 1 %
    of the vocabulary, and the others from all. Values are (1 + log tf) idf, scaled to rows of
    the given norm: √10 under alpha = 1e-3 is what 1 is under 1e-4, scikit-learn's default for
    10,000 rows. Words repeat, so about 1.5 are drawn for each entry that `density` asks for.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    lengths = rng.lognormal(0.0, 0.6, n)
    lengths = np.maximum(1, 1.5 * density * d * lengths / lengths.mean()).astype(np.int64)
    rows = np.repeat(np.arange(n), lengths)
    columns = _zipf(rng, d, len(rows))
    own = max(1, d // 100)
    vocabulary = rng.integers(0, d, (K, own))
    of_class = rng.random(len(rows)) < topical
    columns[of_class] = vocabulary[y[rows[of_class]], _zipf(rng, own, int(of_class.sum()))]
    counts = _counted(rows, columns, (n, d))
    counts.data = 1 + np.log(counts.data)
    return _tf_idf(counts, norm), y


def _correlated(rng, n, d):
    """Features with a spectrum that falls like that of network activations."""
    rank = min(d, 256)
    mixing = rng.standard_normal((rank, d)).astype(np.float32)
    mixing *= (np.arange(1, rank + 1) ** -0.75).astype(np.float32)[:, None]
    X = rng.standard_normal((n, rank), dtype=np.float32) @ mixing
    X += 0.1 * X.std() * rng.standard_normal((n, d), dtype=np.float32)
    return X / X.std()


def _sparse_counts(rng, n, d, density):
    """Rows of counts over columns whose frequencies fall, scaled by tf-idf."""
    entries = int(n * d * density)
    columns = np.minimum((d * rng.random(entries) ** 3).astype(np.int64), d - 1)
    return _tf_idf(_counted(rng.integers(0, n, entries), columns, (n, d)), 10.0)


def _zipf(rng, d, size):
    """Ranks 0 … d−1 with probabilities that fall as 1 / (rank + 1)."""
    cumulative = np.cumsum(1.0 / np.arange(1, d + 1))
    return np.searchsorted(cumulative, cumulative[-1] * rng.random(size))


def _counted(rows, columns, shape):
    X = sp.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    X.sum_duplicates()
    return X


def _tf_idf(X, norm):
    """Entries times log(n / rows that have the column), rows scaled to `norm`."""
    n, d = X.shape
    seen = np.bincount(X.indices, minlength=d)
    X.data *= np.log(n / (1.0 + seen[X.indices])).astype(np.float32)
    norms = np.sqrt(X.multiply(X).sum(axis=1)) + 1e-6
    X = sp.csr_array(sp.diags_array((norm / norms).astype(np.float32)) @ X)
    # scikit-learn's saga takes no others.
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X.sort_indices()  # as scikit-learn's vectorisers do
    return X
