"""X as a NumPy array in memory, read where it lies: neither copied nor converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import blas, qr

from admm_softmax._arrays import Array
from admm_softmax._parallel import blas_threads, ordered_map
from admm_softmax.design.base import BLOCK_BYTES, Design, as_floating

#: Rows of X converted to float64 at a time for the Gram matrix and for QR.
PANEL_BYTES = 64 << 20


class DenseDesign(Design):
    """X̃ = [X, 1] for a two-dimensional float32 or float64 array X of either order."""

    def __init__(self, X: Any, *, intercept: bool = True, n_threads: int | None = None) -> None:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional, got {X.ndim} dimensions")
        X = as_floating(X)
        super().__init__(X.shape, X.dtype, intercept, n_threads)
        self.X = X

    def block(self, rows: slice) -> Any:
        """Rows of X: a view."""
        return self.X[rows]

    def block_rows(self) -> int:
        """As many rows as fit a megabyte, at least 64."""
        return int(max(64, BLOCK_BYTES // max(1, self.X.shape[1] * self.X.itemsize)))

    def gram(self, weights: Array) -> Array:
        """X̃ᵀ diag(w) X̃ by symmetric rank-k updates: half the work of a full product."""
        self.reads += 1
        d = self.n_features
        G = np.zeros((d, d), order="F")
        with blas_threads(self.n_threads):
            for panel in self._panels(weights):
                G = blas.dsyrk(1.0, panel.T, beta=1.0, c=G, overwrite_c=1)
        _mirror_upper(G)
        return G

    def triangle(self, weights: Array) -> Array:
        """R of the QR factorisation of diag(√w) X̃, taken panel by panel."""
        self.reads += 1
        R = np.zeros((0, self.n_features))
        with blas_threads(self.n_threads):
            for panel in self._panels(weights, at_least=self.n_features):
                R = qr(np.concatenate([R, panel]), mode="r", overwrite_a=True)[0]
                R = R[: self.n_features]
        return R

    def column_squares(self, weights: Array) -> Array:
        """Σᵢ wᵢ x̃ᵢⱼ² for every column j."""
        self.reads += 1

        def part(rows: slice) -> Array:
            squares = np.square(self.X[rows])
            return np.asarray(weights[rows].astype(self.dtype) @ squares, dtype=np.float64)

        total = np.sum(ordered_map(part, self.partition(), self.n_threads), axis=0)
        return np.append(total, weights.sum()) if self.intercept else np.asarray(total)

    def outer(self, inverse_penalty: Callable[[Any], Array]) -> Array:
        """X P Xᵀ, n × n."""
        self.reads += 1
        K = np.empty((self.n_rows, self.n_rows))
        size = max(1, PANEL_BYTES // (8 * self.X.shape[1]))
        cuts = [slice(i, i + size) for i in range(0, self.n_rows, size)]
        with blas_threads(self.n_threads):
            for columns in cuts:
                V = inverse_penalty(self.X[columns].T.astype(np.float64, copy=False))
                for rows in cuts:
                    K[rows, columns] = self.X[rows].astype(np.float64, copy=False) @ V
        return K

    def take(self, indices: Array, n_threads: int = 1) -> DenseDesign:
        """Some rows, copied."""
        self.reads += len(indices) / self.n_rows
        return DenseDesign(self.X[indices], intercept=self.intercept, n_threads=n_threads)

    def _panels(self, weights: Array, at_least: int = 1) -> Any:
        """Rows √wᵢ x̃ᵢ in float64, a panel at a time, in C order."""
        d = self.n_features
        size = max(at_least, PANEL_BYTES // (8 * d), 1)
        root = np.sqrt(weights)
        for i in range(0, self.n_rows, size):
            part = root[i : i + size, None]
            panel = np.empty((len(part), d))
            np.multiply(self.X[i : i + size], part, out=panel[:, : self.X.shape[1]])
            if self.intercept:
                panel[:, -1] = part[:, 0]
            yield panel


def _mirror_upper(G: Array, size: int = 512) -> None:
    """Copy the upper triangle onto the lower one in place, a block column at a time."""
    for i in range(0, len(G), size):
        j = min(i + size, len(G))
        G[i:j, :i] = G[:i, i:j].T
        G[i:j, i:j] = np.triu(G[i:j, i:j]) + np.triu(G[i:j, i:j], 1).T
