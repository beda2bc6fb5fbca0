"""Row kernels with their row inputs, laid out as compiled passes take them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from admm_softmax._arrays import Array, Labels
from admm_softmax.kernels.compiled import passes
from admm_softmax.kernels.compiled.arrays import plain
from admm_softmax.kernels.compiled.layout import room_of, single_room_of
from admm_softmax.kernels.compiled.loading import twin
from admm_softmax.kernels.row_kernel import Outcome, RowKernel

_NO_CODES, _NO_ROWS, _NO_WEIGHTS = np.zeros(0, np.intp), np.zeros((0, 0)), np.zeros(0)
#: Bytes of a tile of scores, of which a row kernel has some ten: the second-level cache, 512 KB
#: on Zen 3, should hold them, and the first-level cache a good part of one. With 16, 32 and 64 KB
#: iterations of ADMM over 20,000 × 500 with 100 classes take 123, 99 and 103 ms on an Emerald
#: Rapids with AVX-512, held to AVX2 153, 125 and 139 ms.
TILE_BYTES = 32 << 10
#: Row kernels take two vectors of rows at a time, and 16 rows in float32 fill a cache line: with
#: 1,000 classes and 8 rows one thread of Zen 3 took 166 ms where it takes 151, the least of 16.
MOST_TILE_ROWS, LEAST_TILE_ROWS = 64, 16


class Call(NamedTuple):
    """A kernel, its row arrays, and what tells those arrays apart."""

    kernel: RowKernel
    arrays: Sequence[Any]
    keys: Sequence[Hashable]


@dataclass(frozen=True)
class Program:
    """Calls of one kind of kernel, ready to run in one compiled pass.

    `settings`, `state` and `which` have one row per call; see `folds`.
    """

    #: Its address, as an integer.
    twin: SupportsIndex
    settings: Array
    codes: Any
    soft: Array
    weights: Array
    which: Any
    state: Any
    #: Columns of R, all calls together, and of one call's new rows.
    n_results: int
    n_new: int
    n_sums: int
    #: Columns of W and classes of one call: they differ where W has no columns.
    n_columns: int
    n_classes: int
    #: Rows in a tile of scores.
    tile_rows: int
    #: Whether the twin is one of `single_rows`.
    is_single: bool

    @classmethod
    def of(cls, calls: Sequence[Call], n_columns: int, dtype: Any = np.float64) -> Program:
        """Lay out calls whose kernels are of one kind; W has `n_columns` in each, X is of `dtype`.

        In single precision the kernel may be another.
        """
        kernel = calls[0].kernel
        assert kernel.twin is not None
        given = [dict(zip(kernel.inputs, call.arrays, strict=True)) for call in calls]
        keys = [dict(zip(kernel.inputs, call.keys, strict=True)) for call in calls]
        codes, soft = _split(given[0].get("labels", _NO_CODES))
        weights, which = _distinct(
            [rows.get("weights", _NO_WEIGHTS) for rows in given],
            [key.get("weights") for key in keys],
        )
        state = _stacked([rows.get("state", _NO_ROWS) for rows in given], keep=np.float32)
        K = n_columns or state.shape[2]
        is_single = kernel.single is not None and dtype == np.float32 and len(codes) > 0
        return cls(
            twin=twin(kernel.single if is_single else kernel.twin),
            settings=np.array([call.kernel.values for call in calls], dtype=np.float64),
            codes=codes,
            soft=soft,
            weights=weights,
            which=which,
            state=state,
            n_results=len(calls) * kernel.results * K,
            n_new=kernel.new_rows * K,
            n_sums=len(kernel.sums),
            n_columns=n_columns,
            n_classes=K,
            tile_rows=_tile_rows(K, 4 if is_single else 8),
            is_single=is_single,
        )

    def new_rows(
        self, n_rows: int, dtype: Any = np.float64, room: Callable[..., Any] = np.empty
    ) -> Array:
        """Room for the new rows, calls × n × columns, of the type of the state."""
        made: Array = room((len(self.which), n_rows, self.n_new), self.state_dtype(dtype))
        return made

    def state_dtype(self, dtype: Any = np.float64) -> Any:
        """What state and new rows are stored in: `dtype`, where there are new rows."""
        return np.dtype(dtype) if self.n_new else self.state.dtype

    def states(self, dtype: Any = np.float64) -> Any:
        """The state as compiled passes take it: of the type of the new rows."""
        return self.state.astype(self.state_dtype(dtype), copy=False)

    def room(self, block: int) -> tuple[Any, ...]:
        """What a tile of scores needs, in a block of so many rows; see `layout.room_of`."""
        n_scores = len(self.which) * self.n_columns
        if self.is_single:
            return single_room_of(n_scores, self.n_results, len(self.which), self.tile_rows, block)
        return room_of(n_scores, self.n_classes, self.n_results, self.tile_rows)

    def sums(self) -> Array:
        """Zeros to add the sums to, calls × sums."""
        return np.zeros((len(self.which), self.n_sums))


def run(kernel: RowKernel, scores: Array, *inputs: Any) -> Outcome:
    """Run the compiled twin of a row kernel on a block of scores."""
    program = Program.of([Call(kernel, inputs, range(len(inputs)))], scores.shape[1])
    b = len(scores)
    R, new_rows, sums = np.empty((b, program.n_results)), program.new_rows(b), program.sums()
    passes.scores_pass(program.state_dtype())(
        program.twin, program.room(program.tile_rows), program.settings, plain(scores, np.float64),
        program.codes, program.soft, program.weights, program.which, program.states(), R,
        new_rows, sums,
    )  # fmt: skip
    return R if program.n_results else None, new_rows[0] if program.n_new else None, sums[0]


def zstep(V: Array, labels: Labels, rho: float, Z: Array) -> tuple[Array, Array, Array]:
    """The compiled twin of `admm_softmax.kernels.zstep.zstep`."""
    Z_new, P, steps = np.empty(V.shape), np.empty(V.shape), np.empty(len(V))
    codes, soft = _split(labels)
    start, target = (plain(A, np.float64) for A in (Z, V))
    _, _, work, lane = room_of(0, V.shape[1], 0, MOST_TILE_ROWS)
    passes.rows_solver()(work, lane, target, codes, soft, float(rho), start, Z_new, P, steps)
    return Z_new, P, steps


def _split(labels: Labels) -> tuple[Labels, Array]:
    """Codes and soft labels, one of them empty."""
    if labels.ndim == 1:
        return plain(labels, np.intp), _NO_ROWS
    return _NO_CODES, plain(labels, np.float64)


def _tile_rows(n_classes: int, itemsize: int) -> int:
    """How many rows make a tile of scores: a power of two, by the number of classes."""
    rows = MOST_TILE_ROWS
    while rows > LEAST_TILE_ROWS and itemsize * rows * n_classes > TILE_BYTES:
        rows //= 2
    return rows


def _distinct(arrays: Sequence[Array], keys: Sequence[Hashable]) -> tuple[Array, Any]:
    """The arrays, each once, as the rows of one; and which of them belongs to which call."""
    kept = dict(zip(keys, arrays, strict=True))
    places = {key: i for i, key in enumerate(kept)}
    return _stacked(list(kept.values())), np.array([places[key] for key in keys])


def _stacked(arrays: Sequence[Any], keep: Any = np.float64) -> Any:
    """Arrays of one shape as one, without a copy where there is only one.

    They become float64, but for those that are all of the type to keep.
    """
    dtype = keep if all(array.dtype == keep for array in arrays) else np.float64
    if len(arrays) == 1:
        return plain(arrays[0], dtype)[None]
    return np.stack(arrays, dtype=dtype)
