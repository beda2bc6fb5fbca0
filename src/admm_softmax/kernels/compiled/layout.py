"""Sizes and memory of what compiled passes work in, which Python makes; known without Numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax.kernels.compiled.target import TILES, VECTOR_BYTES

#: Doubles in a vector register.
LANES = VECTOR_BYTES // 8
#: Scratch that the kernels ask for: so many K × T and so many T.
WORK, ROOM = 5, 9
#: Lanes of `lane` that are inputs: where each row's largest label is; the weights; and first in
#: the last, whether labels are codes that are better looked up there than read from C.
TRUTH, WEIGHTS, CODED = ROOM, ROOM + 1, ROOM + 2
INPUT_LANES = 3
#: The same for kernels in single precision, in T, and where each row's label is below that; and
#: how many T in double, weights included.
SINGLE_ROOM, SINGLE_WIDE = 6, 2
SINGLE_TRUTH = SINGLE_ROOM
#: Bytes of a row of X that are worked on at a time: a chunk of ten classes of W and of a few rows
#: stays in the first-level cache, 32 KB without AVX-512 and 48 KB with it. On Zen 3, one core,
#: 20,000 × 7056 with ten classes took 88, 89 and 93 ms with 1, 1.5 and 2 KB, 22,500 × 768 took
#: 14.8, 14.2 and 14.3 ms, with thirty classes 33.7, 33.2 and 33.2 ms, all the least of thirty. On
#: an Emerald Rapids passes over 40,000 × 7056 take 110, 116, 117 and 121 ms with 1, 1.5, 2 and
#: 3 KB, and over 20,000 × 768 11.8, 10.6, 10.1 and 10.5 ms; held to AVX2 152, 140, 141 and 154, and
#: 12.5, 12.0, 12.1 and 11.9 ms.
CHUNK_BYTES = (3 << 10) if VECTOR_BYTES == 64 else (3 << 9)
#: Columns of halves that are widened together: a chunk of float32.
CHUNK = CHUNK_BYTES // 4
#: Rows of X up to so many bytes are copied whole: then all of their products are in one piece. On
#: an Emerald Rapids with 0, 256, 512 and 1,024 passes over 200,000 × 50, 50,000 × 100 and
#: 50,000 × 200 with ten classes take 12.3, 11.7, 11.7 and 11.4, 4.8, 4.7, 4.9 and 5.0, 7.0, 7.3,
#: 7.7 and 7.5 ms; held to AVX2 17.3, 15.4, 16.4 and 15.7, 7.6, 7.8, 9.3 and 8.9, 8.9, 9.2, 8.7 and
#: 11.1 ms.
NARROW_BYTES = 256
#: Columns of X in a turned panel, with TILES.vectors vectors of rows: half of a first-level cache.
#: On a Sapphire Rapids (96 columns) twice as many made passes slower, as did blocks of 64 rows. On
#: an Emerald Rapids with 64, 96, 128 and 192 columns passes with 30, 100 and 1,000 classes take 41,
#: 41, 35 and 38, 92, 89, 80 and 93, 98, 99, 105 and 115 ms; held to AVX2 (192 columns) 54, 48, 47
#: and 51, 142, 141, 136 and 135, 192, 190, 200 and 190 ms: but for the last, within scatter.
TURNED = (24 << 10) // (TILES.vectors * VECTOR_BYTES)
#: Rows of a panel of a triangle: a multiple of the columns in a tile, whatever the vectors and the
#: precision.
PANEL = 64
#: Bytes of a row of X in a tile of the transposed product.
TILE_ROW_BYTES = TILES.vectors * VECTOR_BYTES


def panel(itemsize: int) -> int:
    """Columns of X in a tile of the transposed product."""
    return TILE_ROW_BYTES // itemsize


def whole_columns(d: int, itemsize: int) -> int:
    """How many of d columns are read where they lie; the others are copied."""
    return 0 if d * itemsize <= NARROW_BYTES else d // panel(itemsize) * panel(itemsize)


def padded(d: int, itemsize: int) -> int:
    """The number of columns rounded up to whole panels."""
    return -(-d // panel(itemsize)) * panel(itemsize)


def aligned(n_rows: int, n_columns: int, dtype: Any) -> Any:
    """Zeros with room for so many columns in whole panels; rows begin where cache lines do.

    A vector that straddles two cache lines costs two accesses; measured on an AVX-512 Xeon,
    misaligned sums make a pass a fifth slower. A row is an odd number of lines, so that the
    same columns of many rows do not compete for a few sets of the cache.
    """
    itemsize = np.dtype(dtype).itemsize
    lines = -(-padded(n_columns, itemsize) * itemsize // 64) | 1
    return _from_a_line(n_rows, lines * 64 // itemsize, dtype)


def panels(n_rows: int, n_columns: int, dtype: Any) -> Any:
    """Zeros for so many rows and columns by panels of columns, the last panel first.

    Row k of the panel that is i-th from the last is row i n_rows + k. Products take panels from
    the last to the first, and so go through this memory from its beginning to its end, as the cache
    expects it. From the end to the beginning the pass over 40,000 × 7056 with ten classes took 1.04
    to 1.05 times as long (Ice Lake, held to AVX2); with rows of all columns as long as that.
    """
    return panels_of_groups(1, n_rows, n_columns, dtype)[0]


def panels_of_groups(n_groups: int, n_rows: int, n_columns: int, dtype: Any) -> Any:
    """What `panels` makes, for every group."""
    width = panel(np.dtype(dtype).itemsize)
    length = -(-n_columns // width) * n_rows
    return _from_a_line(n_groups * length, width, dtype).reshape(n_groups, length, width)


def from_panels(sums: Any, n_rows: int, n_columns: int) -> Any:
    """What `panels` made as rows of so many columns, copied."""
    by_row = sums.reshape(-1, n_rows, sums.shape[1])[::-1].swapaxes(0, 1)
    return by_row.reshape(n_rows, -1)[:, :n_columns]


def _from_a_line(n_rows: int, width: int, dtype: Any) -> Any:
    """Zeros that begin where a cache line does."""
    dtype = np.dtype(dtype)
    memory = np.zeros(n_rows * width + 64 // dtype.itemsize, dtype)
    offset = -memory.ctypes.data % 64 // dtype.itemsize
    return memory[offset : offset + n_rows * width].reshape(n_rows, width)


def product_room(block: int, n_classes: int, dtype: Any, by_panels: bool, widens: bool) -> Any:
    """What the product of a block of rows works in."""
    width = panel(np.dtype(dtype).itemsize)
    if by_panels:
        n_sums = -(-block // width) * whole_groups(n_classes)
        return _from_a_line(TURNED + n_sums, width, dtype)
    width = n_classes * VECTOR_BYTES // np.dtype(dtype).itemsize
    return aligned(2 * block, max(CHUNK, width), dtype) if widens else aligned(block, width, dtype)


def transposed(W: Any, dtype: Any) -> Any:
    """Wᵀ in this precision, padded to whole panels."""
    d, K = W.shape
    out = aligned(K, d, dtype)
    out[:, :d] = W.T
    return out


def whole_groups(n_classes: int) -> int:
    """So many classes, and as many more as fill a group of those that panels meet together."""
    return -(-n_classes // TILES.of_many) * TILES.of_many


def interleaved(W: Any, whole: int, dtype: Any) -> Any:
    """W in this precision, in the order in which the product by panels reads it.

    For each chunk of columns of X that is turned at a time, and each group of classes, the group's
    entries for the first of the columns, those for the next, and so on: one stream, which the
    cache fetches by itself. Zeros fill up vectors of columns, and groups. The first `whole` columns
    are cut into chunks on their own. Has a row for each class in name only.
    """
    d, K = W.shape
    lanes, n_classes = VECTOR_BYTES // np.dtype(dtype).itemsize, whole_groups(K)
    ends = whole, -(-d // lanes) * lanes
    padded_W = np.zeros((ends[1], n_classes), dtype)
    padded_W[:d, :K] = W
    out = _from_a_line(n_classes, ends[1], dtype)
    flat = out.reshape(-1)
    for start, end in ((0, whole), ends):
        for j in range(start, end, TURNED):
            chunk = padded_W[j : min(j + TURNED, end)]
            groups = chunk.reshape(len(chunk), -1, TILES.of_many).swapaxes(0, 1)
            flat[j * n_classes :][: groups.size] = groups.reshape(-1)
    return out


def padded_lanes(n_columns: int) -> int:
    """So many columns, and as many more as fill whole vectors."""
    return -(-n_columns // LANES) * LANES


def padded_columns(M: Any, dtype: Any = np.float64) -> Any:
    """M in this precision, C-ordered, with zeros up to whole vectors of columns."""
    n, K = M.shape
    out = np.zeros((n, padded_lanes(K)), dtype)
    out[:, :K] = M
    return out


def room_of(n_scores: int, n_classes: int, n_results: int, T: int) -> tuple[Any, ...]:
    """A tile's scores and results, and what a row kernel works in.

    The last tiles of `work` and the last lanes of `lane` are for its row inputs.
    """
    work, lane = np.zeros((WORK + 3, n_classes, T)), np.zeros((ROOM + INPUT_LANES, T))
    return np.zeros((n_scores, T)), np.zeros((n_results, T)), work, lane


def single_room_of(
    n_scores: int, n_results: int, n_requests: int, T: int, block: int
) -> tuple[Any, ...]:
    """The same for kernels in single precision, whose results are those of a block of rows.

    Below them are the factors of the results, for each request.
    """
    work, lane = np.zeros((1, SINGLE_WIDE, T)), np.zeros((SINGLE_TRUTH + 1, T), np.float32)
    scores = np.zeros((n_scores, T), np.float32)
    return scores, np.zeros((n_results + n_requests, block), np.float32), work, lane
