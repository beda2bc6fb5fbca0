"""The `Design` contract: the rows of X, and every operation on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.design.factor import Factor
from admm_softmax.design.fold import Fold, Reads, Request
from admm_softmax.design.rows import Rows, row_counts
from admm_softmax.kernels import thresholds
from admm_softmax.kernels.row_kernel import RowKernel
from admm_softmax.kernels.rows import hand_over, predict
from admm_softmax.storage.identity import Digest

if TYPE_CHECKING:
    from admm_softmax.design.blocks import RowBlockDesign


class Sample(NamedTuple):
    """Some rows as a design, with handles to the row arrays asked for.

    The design is in memory. Where rows stay on their device (`Design.rows_stay`) it is there, and
    has no blocks of NumPy arrays.
    """

    design: RowBlockDesign
    rows: tuple[Rows, ...]


class Design(ABC):
    """The matrix X̃ = [X, 1] (n × d, the constant column only with an intercept).

    X̃ is never formed: the constant column is implied in every product. Passes over X ::

        fold(W, kernel, rows)    Σ_b X̃_bᵀ R_b,  R_b from kernel(X̃_b W, *rows_b)
        fold_many(requests)      the same for several W, in fewer reads
        gram(weights)            X̃ᵀ diag(w) X̃           d × d
        column_squares(weights)  its diagonal
        triangle(weights)        R with RᵀR = gram, by QR without forming it
        row_products(P)          X P Xᵀ                  n × n, where `can_form_row_gram`

        map_scores(W, f)         f(X̃ W), block by block: predictions

    Each counts its reads of X in `reads`. Arrays with one row per example are handles
    (`Rows`) that the design makes and keeps ::

        place(array), zeros(columns)    put rows where X's rows are
        gather(rows)                    bring them to the caller
        map_rows(f, *rows)              f on blocks of rows
        per_part(f, *rows)              small results of f on parts of the rows, for the caller
        map_parts(f, values, *rows)     as map_rows, with a value for each part
        total(weights), count(weights)  their sum, and how many are not zero
        subset(weights, chosen)         weights of some rows, zero for the others
        take(indices, *rows)            some rows as a design in memory
        transformed(f)                  the rows put through a function, if it can
        sample(...), batches(...)       rows drawn at random

    `columns(features)` is a design of some columns on the same rows, where
    `can_take_columns`; handles fit both.

    Rows of weight zero take no part, and cost less where that is possible.
    `RowBlockDesign` has all of it for rows that can be read block by block.

    >>> import numpy as np
    >>> from admm_softmax import as_design
    >>> design = as_design(np.eye(3), intercept=True)
    >>> design.n_rows, design.n_features
    (3, 4)
    >>> design.gram(design.place(np.full(3, 1 / 3))).shape
    (4, 4)
    """

    n_rows: int
    #: Columns of X̃, and so rows of W, the intercept included.
    n_features: int
    #: What products with X are computed in.
    dtype: np.dtype[Any]
    intercept: bool
    #: Whether X stores its nonzero entries only: passes are then cheap even compared with
    #: operations on W.
    is_sparse: bool = False
    #: Names of the columns of X, where the data have them.
    feature_names: list[str] | None = None
    #: Whether an n × n matrix of products between rows can be formed in memory here. Solvers
    #: that need one (`RowSpace`, `Woodbury`) gather labels, weights and scores too: n × K
    #: numbers, fewer than the n × n. They refuse other designs.
    can_form_row_gram: bool = False
    #: Whether all of X is in memory here, so that some rows of it cost little.
    is_in_memory: bool = False
    #: Whether the rows are on other machines or devices, so that bringing them here is to be
    #: avoided.
    is_remote: bool = False
    #: Whether rows never come here unless the user asks for them (`gather`): row state is made
    #: anew and not stored, samples stay with the rows, and solvers that need rows here refuse.
    rows_stay: bool = False
    #: Whether `columns` can copy some columns of X into memory.
    can_take_columns: bool = False

    def __init__(self, shape: tuple[int, int], dtype: Any, intercept: bool) -> None:
        self.n_rows, n_columns = shape
        if self.n_rows < 1 or n_columns < 1:
            raise ValueError(f"X must have rows and columns, got shape {shape}")
        self.n_features = n_columns + bool(intercept)
        self.dtype = np.dtype(dtype)
        self.intercept = bool(intercept)
        self._reads = Reads()
        self._submit: Callable[[Request], Fold] | None = None
        self._is_loaded = False

    # ---- passes over X ----

    @abstractmethod
    def _fold_batch(self, requests: list[Request], compiled: bool) -> list[Fold]:
        """Folds of requests of one kind, in one read."""

    @abstractmethod
    def gram(self, weights: Rows, dtype: Any = np.float64) -> Any:
        """X̃ᵀ diag(weights) X̃, symmetric. One read of the rows that have weight.

        In float64 the products and sums are in double whatever X is stored in. In float32
        both are in single, several times as fast.
        """

    @abstractmethod
    def column_squares(self, weights: Rows) -> Array:
        """The diagonal of `gram(weights)`. One read."""

    @abstractmethod
    def triangle(self, weights: Rows) -> Array:
        """An upper triangular (or trapezoidal) R with RᵀR = gram(weights). One read."""

    def cholesky(self, H: Array) -> Factor | None:
        """A factor of a d × d matrix beside the rows; None where this machine is to make it."""
        return None

    def row_products(self, inverse_penalty: Callable[[Any], Array]) -> Array:
        """X P Xᵀ without the constant column, P given by its action on Xᵀ. One read."""
        raise self._cannot("form n × n matrices")

    def row_gram(self, scale: Array) -> Any:
        """X diag(scale) Xᵀ in the data's precision. One read."""
        return self.row_products(lambda V: scale[:, None] * V).astype(self.dtype, copy=False)

    def as_matrix(self) -> Array:
        """X̃ as one float64 array here, for small problems whose rows do not stay. One read."""
        small = self.take(np.arange(self.n_rows)).design
        return np.asarray(small.map_scores(np.eye(self.n_features), np.asarray), np.float64)

    # ---- rows ----

    def place(self, array: Any, name: str = "rows") -> Rows:
        """Store an array of n rows where the rows of X are; a handle is returned as it is."""
        if isinstance(array, Rows):
            self._check_rows(array, name)
            return array
        array = np.asarray(array)
        if array.ndim not in (1, 2) or len(array) != self.n_rows:
            raise ValueError(f"{name} must have the length {self.n_rows}, got shape {array.shape}")
        return self._placed(array)

    @abstractmethod
    def _placed(self, array: Any) -> Rows:
        """A handle to an array with one row per row of X."""

    @abstractmethod
    def zeros(self, columns: int) -> Rows:
        """New row state: n × columns zeros."""

    @abstractmethod
    def gather(self, rows: Rows) -> Any:
        """The rows as one NumPy array. Do not write to it."""

    def beside(self, rows: Rows) -> Any:
        """The rows for the caller: as `gather`, but a tensor where they stay on a device."""
        return self.gather(rows)

    @abstractmethod
    def map_rows(self, function: Callable[..., Any], *rows: Rows) -> Rows:
        """New rows, function(*blocks) on blocks of others; the function works row by row."""

    def per_part(self, function: Callable[..., Any], *rows: Rows) -> list[Any]:
        """function(*blocks) on parts of the rows, in order: small results, for the caller."""
        return [function(*[self.gather(r) for r in rows])]

    def map_parts(self, function: Callable[..., Any], values: Sequence[Any], *rows: Rows) -> Rows:
        """As `map_rows`; f gets a value of its own for each part first, in `per_part`'s order."""
        (value,) = values
        return self.map_rows(partial(function, value), *rows)

    @abstractmethod
    def total(self, rows: Rows) -> float:
        """The sum of one number per row."""

    @abstractmethod
    def take(self, indices: Any, *rows: Rows) -> Sample:
        """The rows at increasing positions, copied into memory. Counts as part of a read."""

    def count(self, weights: Rows) -> int:
        """How many rows have weight."""
        return int(self.total(self.map_rows(lambda w: (w != 0).astype(np.float64), weights)))

    def subset(self, weights: Rows, chosen: Any) -> Rows:
        """The weights times how often each row is chosen, by index, mask, or a handle."""
        return self.map_rows(np.multiply, weights, self.counts(chosen))

    def counts(self, chosen: Any) -> Rows:
        """How often each row is chosen, by index or mask; a handle says so itself."""
        return chosen if isinstance(chosen, Rows) else self.place(row_counts(chosen, self.n_rows))

    def sample(self, n_rows: int, seed: int, weights: Rows, *rows: Rows) -> Sample:
        """At most `n_rows` of the rows that have weight, drawn without repetition."""
        return self.take(self.drawn(n_rows, seed, weights), *rows)

    def positions(self, weights: Rows) -> Any:
        """The rising positions of all rows that have weight."""
        return np.flatnonzero(self.gather(weights))

    def drawn(self, n_rows: int, seed: int, weights: Rows) -> Any:
        """The rising positions of the rows that `sample` takes."""
        candidates = self.positions(weights)
        count = min(n_rows, len(candidates))
        return np.sort(np.random.default_rng(seed).choice(candidates, count, replace=False))

    def batches(
        self, count: int, random: np.random.Generator, weights: Rows, *rows: Rows
    ) -> Iterator[Sample]:
        """All rows that have weight, in random order, cut evenly into `count` batches."""
        order = random.permutation(self.positions(weights))
        for batch in np.split(order, [b * len(order) // count for b in range(1, count)]):
            yield self.take(np.sort(batch), *rows)

    def row_digests(self, rows: Rows) -> list[bytes]:
        """A digest of each part of the rows."""
        return self.per_part(_digest_of, rows)

    @abstractmethod
    def fingerprint(self, digest: Any, *rows: Rows) -> None:
        """Feed X and these rows to a hashlib digest."""

    def transformed(self, function: Callable[[Any], Any]) -> Design:
        """The rows put through a function of blocks of rows, which keeps their shape."""
        raise self._cannot("put its rows through a function")

    def columns(self, features: Any) -> Design:
        """Some columns of X, copied into memory, as a design on the same rows.

        `features` are increasing positions. Handles of either design fit the other. Counts as
        one read.
        """
        raise self._cannot("take columns")

    def in_units_of_X(self, W: Array) -> Array:
        """W for the columns of X as they were given; a design may have them in other units."""
        return W

    def in_units_of_view(self, W: Array) -> Array:
        """The inverse of `in_units_of_X`."""
        return W

    def matching(self, other: Design) -> Design:
        """Other rows, given as X was, in the units of this design."""
        return other

    # ---- facts ----

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns without the implied constant one: the shape of X."""
        return self.n_rows, self.n_features - self.intercept

    @property
    @abstractmethod
    def entries(self) -> int:
        """How many entries of X are stored."""

    @property
    def rounding(self) -> float:
        """The relative rounding of products with X."""
        return float(np.finfo(self.dtype).eps)

    @property
    def is_single(self) -> bool:
        """Whether products with X have the precision of float32."""
        return self.rounding > 1e-10

    def count_read(self, amount: float) -> None:
        """Count a look at rows that were copied out of X as reads of it."""
        self._reads.add(amount)

    @property
    def reads(self) -> float:
        """How often X was read; a read of some rows counts as their share of all rows."""
        return self._reads.count

    def compiles(self, columns: int, *, is_loaded: bool = False) -> bool:
        """Whether passes with this many columns of W repay loading compiled code."""
        return thresholds.repays_compiling(self.n_rows, self.entries, columns, is_loaded=is_loaded)

    def with_loaded_code(self) -> Self:
        """The same view for a user who loads compiled code anyway: more passes run compiled.

        The choice is the user's, and not made by what is loaded: the same fit gives the same bits.
        """
        view = copy(self)
        view._is_loaded = True
        return view

    # ---- what all designs share ----

    def fold(self, W: Array, kernel: RowKernel, rows: Sequence[Rows] = ()) -> Fold:
        """Run `kernel` over every block of X̃ W and sum X̃_bᵀ R_b. One read."""
        request = Request(np.asarray(W), kernel, tuple(rows), self._is_loaded)
        if self._submit is None:
            return self.fold_many([request])[0]
        self._check(request)
        self._reads.add(1, alone=True)
        return self._submit(request)

    def transpose_product(self, R: Any) -> Array:
        """X̃ᵀR for one row of R per row of X, given as an array or a handle. One read."""
        nothing = np.zeros((self.n_features, 0))
        return self.fold(nothing, hand_over, (self.place(R),)).product

    def map_scores(self, W: Array, function: Callable[[Array], Any]) -> Any:
        """function(X̃ W), computed block by block where rows come so: predictions. One read.

        The function works row by row and returns an array with as many rows.
        """
        return function(self.gather(self.fold(W, predict).new_rows))

    def picked(self, indices: Any) -> Design:
        """The rows at increasing positions as a design, in memory unless they are too many."""
        return self.take(indices).design

    def fold_many(self, requests: Sequence[Request]) -> list[Fold]:
        """One fold per request. Requests of one kind share a read, their W side by side."""
        if len(requests) == 1:
            self._check(requests[0])
            self._reads.add(1)
            (request,) = requests
            compiled = self.compiles(request.columns, is_loaded=request.is_loaded)
            return self._fold_batch([request], compiled)
        folds: dict[int, Fold] = {}
        for numbers in self._batches(requests):
            self._reads.add(1)
            batch = [requests[i] for i in numbers]
            columns = sum(request.columns for request in batch)
            compiled = self.compiles(columns, is_loaded=batch[0].is_loaded)
            folds.update(zip(numbers, self._fold_batch(batch, compiled), strict=True))
        return [folds[i] for i in range(len(requests))]

    def view(self, submit: Callable[[Request], Fold] | None = None) -> Self:
        """The same rows, their reads counted apart; `submit` runs folds, and counts those of X."""
        view = copy(self)
        view._reads = Reads(parent=self._reads if self._submit is None else self._reads.parent)
        view._submit = submit or self._submit
        return view

    def _batches(self, requests: Sequence[Request]) -> list[list[int]]:
        batches: list[list[int]] = []
        last: dict[Hashable, list[int]] = {}
        for i, request in enumerate(requests):
            self._check(request)
            kind = request.kind
            batch = last.get(kind)
            if batch is None or (len(batch) + 1) * request.W.shape[1] > thresholds.SHARED_COLUMNS:
                batch = last[kind] = []
                batches.append(batch)
            batch.append(i)
        return batches

    def _check(self, request: Request) -> None:
        if request.W.ndim != 2 or request.W.shape[0] != self.n_features:
            raise ValueError(f"W must have {self.n_features} rows, got shape {request.W.shape}")
        wanted, given = request.kernel.inputs, request.rows
        if len(given) != len(wanted):
            raise ValueError(f"{request.kernel.name} takes the rows {wanted}, got {len(given)}")
        for name, rows in zip(wanted, given, strict=True):  # compiled code does not check
            self._check_rows(rows, name)

    def _check_rows(self, rows: Any, name: str = "rows") -> None:
        if not isinstance(rows, Rows):
            kind = type(rows).__name__
            raise TypeError(f"{name} must be a handle made by design.place, got {kind}")
        if rows.n_rows != self.n_rows:
            raise ValueError(f"{name} must have {self.n_rows} rows, got {rows.n_rows}")

    def _cannot(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"a {type(self).__name__} cannot {what}")


def _digest_of(array: Any) -> bytes:
    return str(Digest().add(array)).encode()
