"""One pass over some rows of X: product, row kernel, transposed product, a block at a time.

Each function runs on one thread and adds to a `total` of its own; see `Design.fold`. Several
requests may share the pass: their W and their results R lie one after the other, and each has
its own row in `settings`, `state`, `new_rows` and `sums`, and the row `which` of `weights`.

Scores and results lie in tiles of T rows, classes down and rows across: S is K × T; single results
are those of a block of rows. The row kernel is called by its address: one pass serves all of them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types

from admm_softmax.kernels.compiled.gather import multiply_rows
from admm_softmax.kernels.compiled.integers import as_index, smaller
from admm_softmax.kernels.compiled.jit import (
    calling_at,
    compiled,
    keep_small,
    separate,
    with_globals,
)
from admm_softmax.kernels.compiled.layout import CODED, SINGLE_TRUTH, TRUTH, WEIGHTS, WORK
from admm_softmax.kernels.compiled.rows import TWIN
from admm_softmax.kernels.compiled.single_rows import FACTOR, ROW_WEIGHTS, SINGLE, SINGLE_MATRIX
from admm_softmax.kernels.compiled.thin import PRODUCTS
from admm_softmax.kernels.compiled.tiles import I, address_of
from admm_softmax.kernels.compiled.zstep import CUBE, MATRIX, VECTOR, solve_tile

#: From so many classes on, looking a row's label up costs less than reading its column of C: two
#: steps per row against two vectors per class and LANES rows. Chosen by count.
CODED_FROM = 32
#: Rows added up in the data's precision before they join the sum in double: so many, and so many
#: blocks, each of which is one addition.
FLUSH, FLUSH_BLOCKS = 1024, 16
_INDICES = types.intp[::1]

call_twin, call_single = calling_at(TWIN), calling_at(SINGLE)

#: Stand for functions of one precision in the templates below; `with_globals` puts them in.
take_scores: Any = None
product: Any = None
product_of_rest: Any = None
add_transpose_product: Any = None
add_transpose_product_of_rest: Any = None
pack: Any = None
pack_results: Any = None
flush: Any = None
multiply: Any = None
store_results: Any = None
run_tile: Any = None
#: Whether R is that of a block of rows, which `pack_results` sees when all of it is there.
sums_blocks = False


@cache
def dense_pass(
    dtype: str, state_dtype: str, half: str | None, by_panels: bool, single: bool
) -> Any:
    """The pass over dense X of one precision, with row state of one precision.

    With `half`, "float16" or "bfloat16", X is stored so, and widened where it is multiplied. X W
    goes `by_panels` that are turned, or by tiles. With `single` the row kernel is one of
    `single_rows`.
    """
    p = PRODUCTS[np.dtype(dtype)]
    stored = p if half is None else _products_of(half)
    forward = stored.by_panels if by_panels else stored.by_tiles
    tile = SINGLE_MATRIX if single else MATRIX
    state, room = _rows_of(state_dtype), (tile, tile, CUBE, tile, p.flat, *[p.matrix] * 3)
    signature = types.intp(
        I, I, I, I, I, I, I, I, types.Tuple(room), p.matrix, VECTOR, MATRIX,
        _INDICES, MATRIX, MATRIX, _INDICES, state, state, p.matrix, MATRIX, VECTOR, MATRIX, I,
        types.boolean,
    )  # fmt: skip
    copy = with_globals(
        _fold_dense,
        f"{stored.name}.{state_dtype}" + ".panels" * by_panels + ".single" * single,
        product=forward.product,
        product_of_rest=(p.by_panels if by_panels else p.by_tiles).product,
        take_scores=forward.take_single if single else forward.take,
        add_transpose_product=stored.add_transpose_product,
        add_transpose_product_of_rest=p.add_transpose_product,
        pack=stored.pack,
        pack_results=p.scale_single_results if single else p.pack_results,
        sums_blocks=single,
        flush=p.flush,
        run_tile=(_run_single_tile_of if single else _run_tile_of)(state_dtype),
    )
    return separate(signature)(copy)


@cache
def csr_pass(dtype: str, index: str, state_dtype: str) -> Any:
    """The pass over CSR rows: of one precision, one type of indices, one type of state."""
    state, (data, indices) = _rows_of(state_dtype), map(from_dtype, map(np.dtype, (dtype, index)))
    signature = types.void(
        I, data[::1], indices[::1], _INDICES, I, I,
        types.Tuple((MATRIX, MATRIX, CUBE, MATRIX, MATRIX)), data[:, ::1], VECTOR, MATRIX,
        _INDICES, MATRIX, MATRIX, _INDICES, state, state, data[:, ::1], VECTOR, MATRIX,
    )  # fmt: skip
    copy = with_globals(
        _fold_csr,
        f"{dtype}.{index}.{state_dtype}",
        multiply=multiply_rows(dtype, index, dtype),
        run_tile=_run_tile_of(state_dtype),
        store_results=storing(data),
    )
    return separate(signature)(copy)


@cache
def scores_pass(state_dtype: str) -> Any:
    """The row kernels alone, on scores."""
    state = _rows_of(state_dtype)
    signature = types.void(
        I, types.Tuple((MATRIX, MATRIX, CUBE, MATRIX)), MATRIX, MATRIX, _INDICES, MATRIX, MATRIX,
        _INDICES, state, MATRIX, state, MATRIX,
    )  # fmt: skip
    copy = with_globals(_run_scores, state_dtype, run_tile=_run_tile_of(state_dtype))
    return separate(signature)(copy)


def rows_solver() -> Any:
    """The z-step alone."""
    return solve_rows


def _products_of(half: str) -> Any:
    """The products over X of halves, which few need."""
    from admm_softmax.kernels.compiled.halves import HALF_PRODUCTS  # noqa: PLC0415

    return HALF_PRODUCTS[half]


def _rows_of(dtype: str) -> Any:
    """Row arrays of this type, one for each request."""
    return from_dtype(np.dtype(dtype))[:, :, ::1]


@cache
def _run_tile_of(state_dtype: str) -> Any:
    """`_run_tile` for row state of one precision."""
    scalar = from_dtype(np.dtype(state_dtype))
    copy = with_globals(_run_tile, str(scalar), fetch=fetching(scalar), store=storing(scalar))
    return separate(_run_tile_takes(state_dtype, MATRIX))(copy)


@cache
def _run_single_tile_of(state_dtype: str) -> Any:
    """`_run_single_tile` where row state, which it does not look at, is of one precision."""
    copy = with_globals(_run_single_tile, state_dtype)
    return separate(_run_tile_takes(state_dtype, SINGLE_MATRIX))(copy)


def _run_tile_takes(state_dtype: str, tile: Any) -> Any:
    """The signature of both."""
    state = _rows_of(state_dtype)
    return types.void(
        I, MATRIX, tile, I, I, I, _INDICES, MATRIX, MATRIX, _INDICES, state, CUBE, tile, tile,
        state, MATRIX,
    )  # fmt: skip


@cache
def fetching(scalar: Any) -> Any:
    """`_fetch` for rows of this type."""
    signature = types.void(scalar[:, ::1], types.intp, types.intp, MATRIX)
    return separate(signature, name=f"fetch.{scalar}")(_fetch)


@cache
def storing(scalar: Any) -> Any:
    """`_store` for rows of this type."""
    signature = types.void(MATRIX, types.intp, types.intp, scalar[:, ::1])
    return separate(signature, name=f"store.{scalar}")(_store)


def _run_single_tile(
    twin: int, settings: Any, S: Any, first: int, place: int, count: int, codes: Any, soft: Any,
    weights: Any, which: Any, state: Any, work: Any, lane: Any, R: Any, new_rows: Any, sums: Any,
) -> None:  # fmt: skip
    """As `_run_tile`, for a row kernel in single precision, which takes neither settings nor state.

    R is that of a block of rows, in which the tile's begin at `place`; in its last rows, one for
    each request, are the factors of all others.
    """
    keep_small()
    n_requests, T, wide = len(which), S.shape[1], work[0]
    K = S.shape[0] // n_requests
    for t in range(T):
        lane[SINGLE_TRUTH, t] = codes[first + t] if t < count else 0
    for g in range(n_requests):
        own = which[g]
        for t in range(T):
            wide[ROW_WEIGHTS, t] = weights[own, first + t] if t < count else 0.0
        call_single(twin, S[g * K : (g + 1) * K], wide, lane, place, R[g * K : (g + 1) * K],
                    sums[g])  # fmt: skip
        for t in range(T):
            R[n_requests * K + g, place + t] = lane[FACTOR, t]


def _run_tile(
    twin: int, settings: Any, S: Any, first: int, place: int, count: int, codes: Any, soft: Any,
    weights: Any, which: Any, state: Any, work: Any, lane: Any, R: Any, new_rows: Any, sums: Any,
) -> None:  # fmt: skip
    """The row kernel of every request on its own rows of S and R, of the rows from `first` on."""
    keep_small()
    n_requests, T = len(which), S.shape[1]
    K, r = S.shape[0] // n_requests, R.shape[0] // n_requests
    C, Z, new, w = work[WORK], work[WORK + 1], work[WORK + 2], lane[WEIGHTS]
    label_tile(C, lane[TRUTH], first, count, codes, soft)
    lane[CODED, 0] = 1.0 if len(codes) and K >= CODED_FROM else 0.0
    for g in range(n_requests):
        own = which[g]
        for t in range(T):
            w[t] = weights[own, first + t] if t < count and weights.shape[1] else 0.0
        if state.shape[2]:
            fetch(state[g], first, count, Z)
        call_twin(twin, settings[g], S[g * K : (g + 1) * K], C, w, Z, count, work[:WORK],
                  lane, R[g * r : (g + 1) * r], new, sums[g])  # fmt: skip
        if new_rows.shape[2]:
            store(new, first, count, new_rows[g])


@compiled
def clear_columns(S: Any, first: int) -> None:
    """Zeros in the columns from `first` on, which are of no row: other rows have left something."""
    for t in range(first, S.shape[1]):
        for k in range(S.shape[0]):
            S[k, t] = 0.0


def _fold_dense(
    twin: int, x: int, row_bytes: int, column_bytes: int, d: int, whole: int, start: int,
    stop: int, room: Any, Wt: Any, bias: Any, settings: Any, codes: Any, soft: Any, weights: Any,
    which: Any, state: Any, new_rows: Any, part: Any, total: Any, of_columns: Any, sums: Any,
    waiting: int, is_first: bool,
) -> int:  # fmt: skip
    """Fold the rows start ≤ i < stop of X, at the address x, into `part` and `total`.

    A block of rows is multiplied by W, put through the row kernel and multiplied again while
    the cache still holds it; `thin` says how X is given. `part` is the sum of the last `waiting`
    rows, in the data's precision and in panels. When these are enough it is added to `total`, which
    is written over if this `is_first`. Returns how many rows wait at the end. The sums of the
    columns of R are added to `of_columns`, unless that is empty.
    """
    keep_small()
    S, R, work, lane, R_data, rest, chunk, copied = room
    block, T = len(copied), S.shape[1]
    K, n_results = Wt.shape[0], len(R_data) // block
    enough = FLUSH_BLOCKS * block if FLUSH_BLOCKS * block > FLUSH else FLUSH
    rest_x, rest_bytes = address_of(rest), rest.shape[1] * rest.itemsize
    for first in range(start, stop, block):
        count, here = smaller(block, stop - first), x + first * row_bytes
        if K and whole:
            product(here, row_bytes, count, 0, whole, Wt, True, chunk)
        # After the columns before them, on whose way the cache has met these.
        pack(here, row_bytes, column_bytes, count, whole, d, rest)
        if K and whole < d:
            product_of_rest(rest_x, rest_bytes, count, whole, d - whole, Wt, False, chunk)
        for t in range(0, count, T):
            take_scores(chunk, t, bias, S)
            clear_columns(S, count - t)
            run_tile(twin, settings, S, first + t, t, smaller(T, count - t), codes, soft, weights,
                     which, state, work, lane, R, new_rows, sums)  # fmt: skip
            if n_results and (t + T >= count or not sums_blocks):
                begin = 0 if sums_blocks else t
                pack_results(R, begin, t + T - begin, R_data, of_columns)
        if n_results == 0:
            continue
        if whole < d:
            add_transpose_product_of_rest(rest_x, rest_bytes, count, whole, d - whole, R_data, part,
                                          copied)  # fmt: skip
        if whole:
            add_transpose_product(here, row_bytes, count, 0, whole, R_data, part, copied)
        waiting += count
        if waiting >= enough:
            flush(part, total, is_first)
            waiting, is_first = 0, False
    return waiting


def _fold_csr(
    twin: int, data: Any, indices: Any, pointers: Any, start: int, stop: int, room: Any, W: Any,
    bias: Any, settings: Any, codes: Any, soft: Any, weights: Any, which: Any, state: Any,
    new_rows: Any, R_rows: Any, R_total: Any, sums: Any,
) -> None:  # fmt: skip
    """Scores and row kernel for CSR rows start ≤ i < stop; R goes to its rows of `R_rows`.

    W and `R_rows` are in X's precision, padded as `gather` does; the sum of the rows of R is
    added to `R_total`. The product with the transpose is left to
    `gather` on X by columns: adding sparse rows up here would scatter them over a dense d × K
    matrix, which no cache holds.
    """
    keep_small()
    S, R, work, lane, scores = room
    K, T = S.shape
    for first in range(start, stop, T):
        count = smaller(T, stop - first)
        multiply(data, indices, pointers, first, count, W, scores)
        for t in range(count):
            for k in range(K):
                S[k, t] = scores[t, k] + bias[k]
        run_tile(twin, settings, S, first, 0, count, codes, soft, weights, which, state, work,
                 lane, R, new_rows, sums)  # fmt: skip
        store_results(R, first, count, R_rows)
        for k in range(len(R)):
            for t in range(count):
                R_total[k] += R[k, t]


def _run_scores(
    twin: int, room: Any, settings: Any, scores: Any, codes: Any, soft: Any, weights: Any,
    which: Any, state: Any, R: Any, new_rows: Any, sums: Any,
) -> None:  # fmt: skip
    """The row kernel alone, on a block of scores (b × K) that something else multiplied."""
    keep_small()
    S, R_tile, work, lane = room
    n, T = len(scores), S.shape[1]
    for first in range(0, n, T):
        count = smaller(T, n - first)
        fetch(scores, first, count, S)
        run_tile(twin, settings, S, first, 0, count, codes, soft, weights, which, state, work,
                 lane, R_tile, new_rows, sums)  # fmt: skip
        store(R_tile, first, count, R)


@separate(
    types.void(CUBE, MATRIX, MATRIX, _INDICES, MATRIX, types.float64, MATRIX, MATRIX, MATRIX,
               VECTOR)
)  # fmt: skip
def solve_rows(
    work: Any, lane: Any, V: Any, codes: Any, soft: Any, rho: float, Z: Any, Z_new: Any, P: Any,
    steps: Any,
) -> None:  # fmt: skip
    """The z-step alone: Z_new solves for V, starting from Z; P is its softmax."""
    keep_small()
    n, T = len(V), work.shape[2]
    C, V_tile, Z_tile, P_tile = work[3], work[4], work[5], work[6]
    for first in range(0, n, T):
        count = smaller(T, n - first)
        label_tile(C, lane[TRUTH], first, count, codes, soft)
        fetch(V, first, count, V_tile)
        fetch(Z, first, count, Z_tile)
        solve_tile(V_tile, C, rho, Z_tile, P_tile, False, count, work[:3], lane)
        store(Z_tile, first, count, Z_new)
        store(P_tile, first, count, P)
        for t in range(count):
            steps[first + t] = lane[0, t]


def _fetch(rows: Any, first: int, count: int, tile: Any) -> None:
    """Rows into a tile, zeros beyond."""
    keep_small()
    K, T = tile.shape
    for t in range(count):
        for k in range(K):
            tile[k, t] = rows[first + t, k]
    for k in range(K):
        for t in range(count, T):
            tile[k, t] = 0.0


def _store(tile: Any, first: int, count: int, rows: Any) -> None:
    """A tile into rows."""
    keep_small()
    for t in range(count):
        for k in range(tile.shape[0]):
            rows[first + t, k] = tile[k, t]


fetch, store = fetching(types.float64), storing(types.float64)


@separate(types.void(MATRIX, VECTOR, types.intp, types.intp, _INDICES, MATRIX))
def label_tile(C: Any, truth: Any, first: int, count: int, codes: Any, soft: Any) -> None:
    """C as a tile, and the place of its largest entries, from codes or from soft labels.

    With codes, C must be zero but for what the tile before left there, which `truth` says.
    """
    keep_small()
    if len(codes):
        for t in range(C.shape[1]):
            C[as_index(truth[t]), t] = 0.0
        for t in range(count):
            C[codes[first + t], t] = 1.0
            truth[t] = codes[first + t]
    elif len(soft):
        fetch(soft, first, count, C)
        for t in range(count):
            best = 0
            for k in range(1, C.shape[0]):
                best = k if C[k, t] > C[best, t] else best
            truth[t] = best
