"""Compiled functions as Python: their own source, with plain code for what only LLVM can do.

Lanes of numbers are NumPy arrays, addresses are read by ctypes, and a register tile is what its
docstring says it computes.
"""

from __future__ import annotations

import ctypes
from functools import cache
from operator import index

import numpy as np
from numba.core.dispatcher import Dispatcher

from admm_softmax.kernels.compiled import (
    elementary,
    folds,
    gather,
    halves,
    integers,
    jit,
    lanes,
    loading,
    panels,
    rows,
    targets,
    tiles,
)
from admm_softmax.kernels.compiled.layout import LANES
from admm_softmax.kernels.compiled.target import TILES, VECTOR_BYTES


def load(A, k, t):
    return (A[k, t : t + LANES] if A.ndim == 2 else A[t : t + LANES]).astype(float)


def load_stored(A, k, t):
    return A[k, t : t + VECTOR_BYTES // A.itemsize].copy()


def store(x, A, k, t):
    (A[k] if A.ndim == 2 else A)[t : t + len(x)] = x


def store_as(x, A, t):
    A[t : t + LANES] = x


def memory(address, length, dtype):
    """So many numbers at an address."""
    size = int(length) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(int(address)), dtype)


def row_at(address, length, dtype, half=None):
    """So many numbers of a row at an address; halves as float32."""
    if half is None:
        return memory(address, length, dtype)
    bits = memory(address, length, np.uint16)
    if half == "float16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def product_tile_of(half=None):
    """The stand-in for the tile of X W, of floats or of one kind of half."""

    def product_tile(
        size, x, row_bytes, last, count, Wt, k, first, sums, sums_bytes, is_new, kept, kept_bytes,
        soon, soon_bytes,
    ):  # fmt: skip
        lanes = VECTOR_BYTES // Wt.itemsize
        for r in range(TILES.rows):
            address = x + min(r, last) * row_bytes
            row = row_at(address, count, Wt.dtype, half)
            vectors = memory(sums + r * sums_bytes, (k + size) * lanes, Wt.dtype)
            for c in range(k, k + size):
                own = vectors[c * lanes : (c + 1) * lanes]
                products = row * Wt[c, first : first + count]
                own[:] = (0 if is_new else own) + products.reshape(-1, lanes).sum(axis=0)
            if half is not None:
                memory(kept + r * kept_bytes, count, Wt.dtype)[:] = row

    return product_tile


def sum_of_lanes_tile(sums, first, bias, S):
    n_classes, n_rows = S.shape
    lanes = VECTOR_BYTES // sums.itemsize
    vectors = sums[first : first + n_rows, : n_classes * lanes]
    S[:] = vectors.reshape(n_rows, n_classes, lanes).sum(axis=2).T + bias[:, None]


def transpose_tile(size, x, row_bytes, ahead, count, R, place, of_column, of_row, Gt, k):
    block = np.stack([memory(x + t * row_bytes, Gt.shape[1], Gt.dtype) for t in range(count)])
    for c in range(size):
        Gt[k + c] += R[place + c * of_column :: of_row][:count] @ block


def copy_panel_of(half=None):
    """The stand-in for the copy of a panel, of floats or of one kind of half."""

    def copy_panel(x, row_bytes, ahead, count, out):
        for t in range(count):
            out[t] = row_at(x + t * row_bytes, out.shape[1], out.dtype, half)

    return copy_panel


def turn_panel_of(half=None):
    """The stand-in for the turned copy of some rows, of floats or of one kind of half."""

    def turn_panel(x, row_bytes, last, n_columns, out):
        for t in range(TILES.vectors * VECTOR_BYTES // out.itemsize):
            row = row_at(x + min(t, last) * row_bytes, n_columns, out.dtype, half)
            out[:n_columns, t] = row

    return turn_panel


def gather_tile(size, data, indices, pointers, first, count, M, k, out):
    columns = slice(k, k + size * LANES)
    for t in range(count):
        entries = slice(pointers[first + t], pointers[first + t + 1])
        out[t, columns] = data[entries].astype(float) @ M[indices[entries], columns].astype(float)


def twin_of(kernel):
    """The compiled twin of a row kernel, as Python."""
    module, _, name = kernel.twin.partition(":")
    return as_python(getattr({"rows": rows, "targets": targets}[module.rpartition(".")[2]], name))


def power_of_two(rounded):
    is_single = getattr(rounded, "dtype", None) == np.float32
    return np.exp2(rounded - (elementary.SINGLE_ROUNDER if is_single else elementary.ROUNDER))


def call_twin(address, *arguments):
    """The row kernel whose compiled code is there."""
    place = index(address)  # as passes take it
    names = [name for name, found in loading._loaded.items() if found.address == place]
    (twin,) = [call for call, target in jit._separate.items() if target.name in names]
    as_python(twin)(*arguments)


STAND_INS = {
    lanes.load: load,
    lanes.store: store,
    lanes.store_as: store_as,
    lanes.spread: lambda x: np.full(LANES, x),
    lanes.larger: np.maximum,
    lanes.sum_lanes: np.sum,
    lanes.where_above: lambda x, y, a, b: np.where(x > y, a, b),
    lanes.where_equal: lambda x, y, a, b: np.where(x == y, a, b),
    lanes.mantissa_of: lambda x: 2.0 * np.frexp(x)[0],
    lanes.exponent_of: lambda x: np.frexp(x)[1] - 1.0,
    lanes.power_of_two: power_of_two,
    lanes.load_stored: load_stored,
    lanes.spread_single: lambda x: np.full(2 * LANES, x, np.float32),
    lanes.low_half: lambda x: x[:LANES].astype(float),
    lanes.high_half: lambda x: x[LANES:].astype(float),
    integers.groups: lambda count, most: -(-count // most),
    integers.smaller: min,
    integers.as_index: int,
    jit.use_wide_vectors: lambda: None,
    jit.keep_small: lambda: None,
    tiles.address_of: lambda A: A.ctypes.data,
    tiles.pointed_at: lambda like, address, length: memory(address, length, like.dtype),
    tiles.product_tile: product_tile_of(),
    tiles.sum_of_lanes_tile: sum_of_lanes_tile,
    tiles.transpose_tile: transpose_tile,
    panels.copy_panel: copy_panel_of(),
    panels.turn_panel: turn_panel_of(),
    gather.gather_tile: gather_tile,
    folds.call_twin: call_twin,
    folds.call_single: call_twin,
    **{tile: product_tile_of(half) for half, tile in halves.FIRST_TILES.items()},
    **{panel: copy_panel_of(half) for half, panel in halves.PANELS.items()},
    **{panel: turn_panel_of(half) for half, panel in halves.TURNED_PANELS.items()},
    halves._from_bits: lambda bits: np.array(bits, np.uint32).view(np.float32)[()],
    halves._converted: lambda bits: np.array(bits, np.uint16).view(np.float16)[()].astype("f4"),
}


@cache
def as_python(function):
    """A compiled function, and all that it calls, as Python."""
    if function in STAND_INS:
        return STAND_INS[function]
    separate = jit._separate.get(function)
    source = (function if separate is None else separate.dispatcher).py_func
    meanings = {}
    for name in source.__code__.co_names:
        called = source.__globals__.get(name)
        if called is None or called.__hash__ is None:
            continue
        if called in STAND_INS or called in jit._separate or isinstance(called, Dispatcher):
            meanings[name] = as_python(called)
    return jit.with_globals(source, "python", **meanings)
