"""Write embedding-like rows as float16 `.npy` shards of any size, with labels beside them.

::

    python benchmarks/embedding_shards.py FOLDER [--rows 7400000] [--features 2048] [--classes 1000]

x = Q diag(λ)^½ (m_y + e) with λ_j = j^−decay, as `generators.embedding_like`, but for two things
that size asks for: Q is block-diagonal, after a random order of the columns, so that every block
has columns of all scales; and shards are drawn one by one, each from a seed of its own. Shard i
is `x-0000i.npy` and `y-0000i.npy`. The default is 30 GB; a shard has 256 MB. Shards that are
there already are kept.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROTATED = 256


class Model:
    """What all shards share: class means, scales and rotations."""

    def __init__(self, d, K, decay, distance, seed):
        rng = np.random.default_rng(seed)
        self.d, self.K, self.seed = d, K, seed
        self.means = distance / np.sqrt(2.0 * d) * rng.standard_normal((K, d), dtype=np.float32)
        scale = np.arange(1, d + 1) ** (-decay / 2)
        # Entries have variance one on average.
        self.scale = (scale * np.sqrt(d / np.sum(scale**2))).astype(np.float32)[rng.permutation(d)]
        self.blocks = [slice(j, min(j + ROTATED, d)) for j in range(0, d, ROTATED)]
        self.rotations = [
            np.linalg.qr(rng.standard_normal((b.stop - b.start,) * 2))[0].astype(np.float32)
            for b in self.blocks
        ]

    def shard(self, number, n):
        """Rows in float16, and labels."""
        rng = np.random.default_rng([self.seed, number])
        y = rng.integers(0, self.K, n)
        X = np.empty((n, self.d), np.float16)
        for i in range(0, n, 4096):
            part = self.means[y[i : i + 4096]]
            part += rng.standard_normal(part.shape, dtype=np.float32)
            part *= self.scale
            for block, rotation in zip(self.blocks, self.rotations, strict=True):
                X[i : i + 4096, block] = part[:, block] @ rotation
        return X, y


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=7_400_000)
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--decay", type=float, default=1.0)
    parser.add_argument("--distance", type=float, default=5.0)
    parser.add_argument("--shard-rows", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    size = options.shard_rows or (256 << 20) // (2 * options.features)
    starts = range(0, options.rows, size)
    model = Model(options.features, options.classes, options.decay, options.distance, options.seed)

    def write(number):
        rows, labels = (options.folder / f"{name}-{number:05d}.npy" for name in "xy")
        if rows.exists():
            return
        X, y = model.shard(number, min(size, options.rows - number * size))
        np.save(labels, y.astype(np.int32))
        unfinished = rows.with_suffix(".part")
        with unfinished.open("wb") as file:
            np.save(file, X)
        unfinished.rename(rows)
        if number % 10 == 0:
            print(f"shard {number + 1} of {len(starts)}", flush=True)

    with ThreadPoolExecutor(options.threads) as pool:
        list(pool.map(write, range(len(starts))))
    gigabytes = 2 * options.rows * options.features / 1e9
    print(
        f"{options.rows:,} × {options.features:,}, {options.classes:,} classes: {gigabytes:.1f} GB"
    )


if __name__ == "__main__":
    main()
