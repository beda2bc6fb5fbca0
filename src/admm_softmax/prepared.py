"""What is computed from a problem's rows once and then shared."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.design import Design, Rows

if TYPE_CHECKING:  # for the types of the fields alone; each is made in the module it is from
    from admm_softmax.solvers.duality import Anchor
    from admm_softmax.solvers.least_squares.spectral import Basis
    from admm_softmax.solvers.preconditioner import SampledGram
    from admm_softmax.solvers.row_space import ReducedProblem, RowBasis
    from admm_softmax.solvers.split_admm import LastSplit
    from admm_softmax.solvers.split_factor import SplitFactor
    from admm_softmax.solvers.working_set import LastPairs, LastPass, WorkingSet

T = TypeVar("T")


class Slot(Generic[T]):
    """A place for one value that is made at its first use and never written to.

    folds : whether the value is made with folds over X. In a job of a `Scheduler` a fold waits
        for the other jobs, and these must not wait for the value: so each makes it, their
        folds share reads, and the first value stored is used by all. A value that is made
        without folds is made once, while other threads wait for it.
    """

    def __init__(self, *, folds: bool = False) -> None:
        self.folds = folds
        self._lock = RLock()
        self._value: T | None = None

    def get(self, fits: Callable[[T], bool], make: Callable[[], T]) -> T:
        """The stored value if it fits, else a new one, which takes its place."""
        if self.folds:
            found = self._stored(fits)
            return self._offered(fits, make()) if found is None else found
        with self._lock:
            found = self._stored(fits)
            return self._offered(fits, make()) if found is None else found

    def keep(self, value: T) -> None:
        """Store a value in the place of the last one."""
        with self._lock:
            self._value = value

    def drop(self) -> None:
        """Forget the stored value."""
        with self._lock:
            self._value = None

    def last(self) -> T | None:
        """The stored value, if any."""
        return self._value

    def _stored(self, fits: Callable[[T], bool]) -> T | None:
        value = self._value
        return value if value is not None and fits(value) else None

    def _offered(self, fits: Callable[[T], bool], new: T) -> T:
        with self._lock:
            stored = self._stored(fits)
            if stored is None:
                self._value = stored = new
            return stored


class Prepared:
    """What is computed from rows, weights and labels at its first use, and kept.

    | what              | depends on                 | made by, and for                       |
    |-------------------|----------------------------|----------------------------------------|
    | `gram`            | rows and weights           | W-steps, preconditioners               |
    | `sampled_gram`    | some rows, drawn at random | preconditioners, and they alone        |
    | `column_squares`  | rows and weights           | Jacobi, conditioning                   |
    | `spectral`        | rows, weights and L        | `Spectral`                             |
    | `anchor`          | rows, weights and labels   | duality gaps                           |
    | `reduced_problem` | rows, weights and labels   | `RowSpace`: the problem in few columns |
    | `row_basis`       | rows, and a diagonal LᵀL   | `RowSpace`, for all folds              |
    | `working_set`     | rows, weights, last fit    | `ProximalLBFGS`, for the next fit      |
    | `last_pass`       | rows, weights, labels, W   | `ProximalLBFGS`, for the next fit      |
    | `last_pairs`      | the working set, last fit  | `ProximalLBFGS`, for the next fit      |
    | `split_factor`    | rows, weights, L and σ/ρ   | ADMM's second split, for all alphas    |
    | `last_split`      | the last fit               | ADMM's second split, for the next fit  |

    It belongs to a `Problem` and to its copies with another penalty, and lives as long as they
    do. Values are never written to, so that runs in several threads may share them; one that
    depends on L, or on the last fit, is replaced where it does not fit. The caller
    passes the view of the design to read X through, so that the reads count as the caller's.
    What a run changes (the factor of its W-step) is in `Workspace`.

    weights : sample weights of the rows
    make_gram : forms the Gram matrix in a given precision, where there is a cheaper way than
        a product (folds of cross-validation)
    row_basis : that of another problem on the same rows
    """

    def __init__(
        self,
        weights: Rows,
        make_gram: Callable[[Any], Any] | None = None,
        row_basis: Slot[RowBasis] | None = None,
    ) -> None:
        self.weights, self.make_gram = weights, make_gram
        self.sampled_gram: Slot[SampledGram] = Slot()
        self.spectral: Slot[Basis] = Slot()
        self.anchor: Slot[Anchor] = Slot(folds=True)
        self.reduced_problem: Slot[ReducedProblem] = Slot()
        self.row_basis: Slot[RowBasis] = row_basis or Slot()
        self.working_set: Slot[WorkingSet] = Slot(folds=True)
        self.last_pass: Slot[LastPass] = Slot()
        self.last_pairs: Slot[LastPairs] = Slot()
        self.split_factor: Slot[SplitFactor] = Slot()
        self.last_split: Slot[LastSplit] = Slot()
        self._lock = RLock()
        self._gram: Any = None
        self._squares: Array | None = None

    @property
    def has_gram(self) -> bool:
        """Whether a Gram matrix has been computed."""
        return self._gram is not None

    def gram(self, design: Design, dtype: Any = np.float64) -> Any:
        """X̃ᵀ diag(w) X̃, d × d. Do not write to it.

        A stored float64 matrix is also returned where float32 is asked for.
        """
        with self._lock:
            wanted = np.dtype(dtype)
            if self._gram is None or (self._gram.dtype == np.float32 and wanted == np.float64):
                self._gram = self._make(design, wanted)
            return self._gram

    def _make(self, design: Design, dtype: Any) -> Any:
        make = self.make_gram or (lambda dtype: design.gram(self.weights, dtype))
        gram = make(dtype)
        if gram.dtype == np.float32 and not np.isfinite(gram.diagonal()).all():
            gram = design.gram(self.weights)
        return finite_gram(gram)

    def offer_gram(self, gram: Any) -> None:
        """Store a Gram matrix computed elsewhere, unless one is stored already."""
        with self._lock:
            self._gram = gram if self._gram is None else self._gram

    def column_squares(self, design: Design) -> Array:
        """The diagonal of the Gram matrix: from the stored matrix, or else by one read of X."""
        with self._lock:
            if self._squares is None:
                known = self._gram
                squares = design.column_squares(self.weights) if known is None else known.diagonal()
                self._squares = np.asarray(squares, dtype=np.float64)
            return self._squares

    def __reduce__(self) -> Any:
        # A copy in another process computes its own.
        return Prepared, (self.weights, self.make_gram)


def finite_gram(gram: Any) -> Any:
    """The same matrix; ValueError where squares of the entries of X have overflowed."""
    if not np.isfinite(gram.diagonal()).all():
        raise ValueError("X is too large: the squares of its entries overflow; scale the features")
    return gram


class Workspace:
    """What one run changes: the W-step, which the solvers of a chain hand on.

    Each run has its own (`Problem.for_run`), so that several may use a problem at once.
    """

    def __init__(self) -> None:
        #: The strategy that made the W-step, and the step with its newest factor.
        self.w_step: tuple[Any, Any] | None = None
