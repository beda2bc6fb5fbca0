"""`TorchDesign`: rows of X as a tensor on a device, and passes over them there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from admm_softmax._arrays import Array
from admm_softmax.design.base import Sample
from admm_softmax.design.blocks import KEPT_ABOVE
from admm_softmax.design.fold import Fold, Request
from admm_softmax.design.rows import Rows
from admm_softmax.design.torch.arrays import DeviceArray, to_device, torch_type
from admm_softmax.design.torch.factor import DeviceFactor, factorised
from admm_softmax.design.torch.kernels import run
from admm_softmax.design.torch.rows import TensorRows, digest_of
from admm_softmax.kernels.row_kernel import Sums

#: Bytes of X in one block, and of the scores of one block: enough to keep a device busy.
DEVICE_BLOCK_BYTES, SCORE_BYTES = 64 << 20, 16 << 20
#: Panels of columns in a Gram matrix: products below its diagonal are left out.
COLUMN_PANELS = 8


class TorchDesign(TensorRows):
    """X̃ = [X, 1] for a tensor X on any device, all of whose rows stay there.

    Row arrays are tensors on X's device. A pass sends W there, runs both products, the row kernel
    and the sums block by block, and brings back d × K numbers and the sums ::

        fold = Σ_b X̃_bᵀ R_b,   R_b from the torch version of the kernel on X̃_b W

    A Gram matrix is formed on the device and comes back once; the W-step's normal matrix is
    factorised on the device, where it has the room, and the factor stays there. Products are in
    X's precision (float32 for float16 and bfloat16, widened block by block), everything after them
    in float64; without float64 on the device, in float32.

    X : a dense tensor of shape (n, d): float64, float32, float16 or bfloat16
    state_dtype : what row state is kept in, float64 or float32
    double : whether the device has float64; None asks the kind of device (MPS has none)

    >>> TorchDesign(torch.ones(3, 2)).n_features  # two columns and the intercept
    3
    """

    # ---- passes over X ----

    #: What rows are put through at every pass, see `transformed`.
    function: Callable[[Any], Any] | None = None

    def block(self, rows: Any) -> Any:
        """Rows of X by slice or positions, widened where they are of two bytes."""
        found = self.X[rows].to(self.product_type)
        if self.function is None:
            return found
        return self.function(DeviceArray(found, self.double)).tensor

    def _as_stored(self, rows: Any) -> Any:
        """Rows of X in the type that it is stored in, or what the function makes of them."""
        return self.X[rows] if self.function is None else self.block(rows)

    def block_rows(self, columns: int = 1) -> int:
        """The number of rows per block, for so many columns of scores."""
        by_entries = DEVICE_BLOCK_BYTES // (self.shape[1] * self.product_type.itemsize)
        return int(max(64, min(by_entries, SCORE_BYTES // (8 * max(1, columns)))))

    def compiles(self, columns: int, *, is_loaded: bool = False) -> bool:
        """Never: passes are torch's."""
        return False

    def _fold_batch(self, requests: list[Request], compiled: bool) -> list[Fold]:
        W = self._there(np.concatenate([r.W for r in requests], axis=1), self.product_type)
        widths = [r.kernel.results * r.columns for r in requests]
        product = torch.zeros(
            (self.n_features, sum(widths)), dtype=self.exact_type, device=self.device
        )
        new_rows = [self._room(r) for r in requests]
        sums: list[Any] = [0.0] * len(requests)
        for rows in self._blocks(max(W.shape[1], sum(widths))):
            block = self.block(rows)
            scores = self._scores(block, W).split([r.W.shape[1] for r in requests], dim=1)
            results = []
            for i, request in enumerate(requests):
                given = [self._exact(r.held[rows]) for r in request.rows]
                R, new, own = run(request.kernel, scores[i], *given)
                results += [] if R is None else [R]
                sums[i] = sums[i] + own
                if new is not None:
                    new_rows[i][rows] = new
            if results:
                self._add_product(product, block, torch.cat(results, dim=1))
        products = product.cpu().numpy().astype(np.float64, copy=False)
        ends = np.cumsum(widths)[:-1]
        return [
            Fold(own, None if new is None else self._handle(new), Sums(r.kernel.sums, _plain(s)))
            for r, own, new, s in zip(
                requests, np.split(products, ends, axis=1), new_rows, sums, strict=True
            )
        ]

    def _scores(self, block: Any, W: Any) -> Any:
        d = self.shape[1]
        scores = (block @ W[:d]).to(self.exact_type)
        return scores + W[d].to(self.exact_type) if self.intercept else scores

    def _add_product(self, product: Any, block: Any, R: Any) -> None:
        d = self.shape[1]
        product[:d] += block.mT @ R.to(self.product_type)
        if self.intercept:
            product[d] += R.sum(dim=0)

    def gram(self, weights: Rows, dtype: Any = np.float64) -> Any:
        """X̃ᵀ diag(w) X̃, formed on the device panel by panel of its columns."""
        kind = torch_type(dtype, self.double)
        d = self.n_features
        G = torch.zeros((d, d), dtype=kind, device=self.device)
        size = -(-d // COLUMN_PANELS)
        for panel in self._panels(weights, kind):
            for j in range(0, d, size):
                G[j : j + size, j:] += panel[:, j : j + size].mT @ panel[:, j:]
        G = torch.triu(G)
        found = (G + torch.triu(G, 1).mT).cpu().numpy()
        return np.asfortranarray(found.astype(dtype, copy=False))

    def triangle(self, weights: Rows) -> Array:
        """R of the QR factorisation of diag(√w) X̃, taken panel by panel on the device."""
        R = torch.zeros((0, self.n_features), dtype=self.exact_type, device=self.device)
        for panel in self._panels(weights, self.exact_type, self.n_features):
            R = torch.linalg.qr(torch.cat([R, panel]), mode="r").R
        return np.triu(R.cpu().numpy().astype(np.float64, copy=False))

    def column_squares(self, weights: Rows) -> Array:
        """Σᵢ wᵢ x̃ᵢⱼ² for every column j."""
        self._check_rows(weights)
        self._reads.add(1)
        squares = torch.zeros(self.shape[1], dtype=self.exact_type, device=self.device)
        for rows in self._blocks():
            w = weights.held[rows].to(self.product_type)
            squares += w @ self.block(rows).square()
        found = squares.cpu().numpy().astype(np.float64, copy=False)
        return np.append(found, self.total(weights)) if self.intercept else np.asarray(found)

    def _panels(self, weights: Rows, kind: Any, at_least: int = 1) -> Iterator[Any]:
        """Rows √wᵢ x̃ᵢ of those that have weight, in a type. Counts a read."""
        self._check_rows(weights)
        w = weights.held
        chosen = w.nonzero()[:, 0] if self.count(weights) <= KEPT_ABOVE * self.n_rows else None
        n = self.n_rows if chosen is None else len(chosen)
        self._reads.add(n / self.n_rows)
        size = max(at_least, self.block_rows(self.n_features))
        for i in range(0, n, size):
            part: Any = slice(i, min(i + size, n))
            rows = part if chosen is None else chosen[part]
            root = w[rows].to(kind).sqrt()[:, None]
            X = self.block(rows).to(kind) * root
            yield torch.cat([X, root], dim=1) if self.intercept else X

    def cholesky(self, H: Array) -> DeviceFactor | None:
        """The factor of a d × d matrix, on the device where that has the room."""
        return factorised(H, self.device, self.double)

    # ---- samples ----

    def take(self, indices: Any, *rows: Rows) -> Sample:
        """The rows at increasing positions, copied on the device."""
        places = self.indices(indices)
        self._reads.add(len(places) / self.n_rows)
        design: Any = self._of(self._as_stored(places))
        return Sample(design, tuple(design._handle(r.held[places]) for r in rows))

    def drawn(self, n_rows: int, seed: int, weights: Rows) -> Any:
        """Positions on the device; the rows are those that other designs draw."""
        self._check_rows(weights)
        places = weights.held.nonzero()[:, 0]
        if n_rows >= len(places):
            return places
        ranks = np.random.default_rng(seed).choice(len(places), n_rows, replace=False)
        return places[self.indices(np.sort(ranks))]

    def positions(self, weights: Rows) -> Any:
        """Those of the rows that have weight, on the device."""
        self._check_rows(weights)
        return weights.held.nonzero()[:, 0]

    def batches(
        self, count: int, random: np.random.Generator, weights: Rows, *rows: Rows
    ) -> Iterator[Sample]:
        """All rows that have weight, shuffled on the device, cut evenly into `count` batches."""
        places = self.positions(weights)
        made = torch.Generator(self.device).manual_seed(int(random.integers(2**63)))
        order = places[torch.randperm(len(places), generator=made, device=self.device)]
        cuts = [b * len(order) // count for b in range(count + 1)]
        for b in range(count):
            yield self.take(order[cuts[b] : cuts[b + 1]].sort().values, *rows)

    def picked(self, indices: Any) -> TorchDesign:
        """The rows at increasing positions, on the device."""
        there: Any = self.take(indices).design
        found: TorchDesign = there
        return found

    def columns(self, features: Any) -> TorchDesign:
        """Some columns, copied on the device."""
        self._reads.add(1)
        chosen = self.indices(features)
        return self._of(torch.cat([self._as_stored(rows)[:, chosen] for rows in self._blocks()]))

    def transformed(self, function: Callable[[Any], Any]) -> TorchDesign:
        """The rows put through a function of `DeviceArray` blocks at every pass: no copy of X."""
        found, own = self.view(), self.function
        found.function = function if own is None else lambda X: function(own(X))
        return found

    def with_rows(self, other: TorchDesign) -> TorchDesign:
        """The rows of both, one after the other, in one copy on the device."""
        everything = slice(None)
        parts = [each._as_stored(everything).to(self.device) for each in (self, other)]
        return self._of(torch.cat(parts))

    def map_scores(self, W: Array, function: Callable[[Any], Any]) -> Any:
        """function(X̃ W) as a tensor on the device, block by block."""
        self._reads.add(1)
        there = self._there(W, self.product_type)
        found = []
        for rows in self._blocks(there.shape[1]):
            scores = self._scores(self.block(rows), there)
            own = function(DeviceArray(scores, self.double))
            found.append(own.tensor)
        return found[0] if len(found) == 1 else torch.cat(found)

    def fingerprint(self, digest: Any, *rows: Rows) -> None:
        """Feed a digest of every block, computed on the device, and of the rows."""
        digest.update(repr((self.n_rows, self.n_features, self.intercept)).encode())
        size = max(1, self.block_rows() // 8)  # eight bytes per entry, several times
        for i in range(0, self.n_rows, size):
            digest.update(digest_of(self._as_stored(slice(i, i + size)), i * self.shape[1]))
        for handle in rows:
            for own in self.row_digests(handle):
                digest.update(own)

    def is_finite(self) -> bool:
        """Whether no entry is infinite or NaN."""
        return all(bool(torch.isfinite(self.X[rows]).all()) for rows in self._blocks())

    # ---- pieces ----

    def _blocks(self, columns: int = 1) -> list[slice]:
        size = self.block_rows(columns)
        return [slice(i, min(i + size, self.n_rows)) for i in range(0, self.n_rows, size)]

    def _there(self, W: Array, kind: Any) -> Any:
        """A small matrix on the device."""
        return to_device(W, kind, self.device)

    def _exact(self, tensor: Any) -> Any:
        """Row arrays as kernels take them: numbers in one precision, codes as they are."""
        return tensor.to(self.exact_type) if tensor.dtype.is_floating_point else tensor

    def _room(self, request: Request) -> Any:
        """A tensor for a request's new rows, None where its kernel has none."""
        if not request.kernel.new_rows:
            return None
        shape = (self.n_rows, request.kernel.new_rows * request.columns)
        return torch.empty(shape, dtype=self.state_type, device=self.device)

    def _of(self, X: Any) -> TorchDesign:
        """A design like this one on other rows or columns."""
        state = np.float64 if self.state_type == torch.float64 else np.float32
        return TorchDesign(X, intercept=self.intercept, state_dtype=state, double=self.double)


def _plain(sums: Any) -> Array:
    """Sums on this machine; none where the kernel has none."""
    return np.asarray(sums.cpu().numpy(), dtype=np.float64)
