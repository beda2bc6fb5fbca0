"""Register tiles of the products X W and Xᵀ R, written as LLVM vectors.

BLAS is made for products with many columns; with ten it leaves four fifths of the machine idle.
The dense tiles keep a few rows × a few classes in registers, so that both products run at the
speed at which X is read from memory. A compiler left to itself finds neither the tile nor the
full width of the registers, hence the explicit vectors.

X is given by the address of its first entry and the bytes between its rows. Whole vectors are
read, wherever they begin: `thin` copies columns that do not fill one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from admm_softmax.kernels.compiled.lanes import INT32
from admm_softmax.kernels.compiled.target import TILES, VECTOR_BYTES

_BYTES = ir.IntType(8).as_pointer()
_CONTRACT = ("contract",)
I = types.intp  # noqa: E741

#: Bytes in a line of the cache.
LINE = 64


class Emitter:
    """Emits a tile's instructions: pointers, loops, vector loads and fused multiply-adds.

    `scalar` is what the vectors are made of, `lanes` of them in each.
    """

    def __init__(
        self, context: Any, builder: Any, signature: Any, arguments: Any, scalar: Any
    ) -> None:
        self.context, self.builder = context, builder
        self.types, self.arguments = signature.args, arguments
        self.index = context.get_value_type(types.intp)
        self.scalar, self.lanes = scalar, VECTOR_BYTES // context.get_abi_sizeof(scalar)
        self.vector = ir.VectorType(scalar, self.lanes)
        self.zeros = ir.Constant(self.vector, [0.0] * self.lanes)

    def number(self, value: int) -> Any:
        """A constant index."""
        return ir.Constant(self.index, value)

    def at(self, address: Any, row: Any, row_bytes: Any) -> Any:
        """The pointer to the scalars of a row of X, which begins at an address."""
        address = self.builder.add(address, self.builder.mul(row, row_bytes))
        return self.builder.inttoptr(address, self.scalar.as_pointer())

    def entry(self, which: int, *place: Any) -> Any:
        """The pointer to an entry of an array among the arguments."""
        kind = self.types[which]
        array = self.context.make_array(kind)(self.context, self.builder, self.arguments[which])
        return cgutils.get_item_pointer(self.context, self.builder, kind, array, place)

    def load(self, base: Any, j: Any, scalar: Any = None) -> Any:
        """A vector from entry j on, of this kind of scalar, wherever it begins."""
        scalar = scalar or self.scalar
        kind = ir.VectorType(scalar, self.lanes).as_pointer()
        value = self.builder.load(self.builder.bitcast(self.builder.gep(base, [j]), kind))
        value.align = self.context.get_abi_sizeof(scalar)
        return value

    def fetch(self, base: Any, ahead: Any, n_bytes: int) -> None:
        """Ask for the cache lines that begin so far ahead, which need not exist.

        They come to the first level of the cache.
        """
        base = self.builder.gep(self.builder.bitcast(base, _BYTES), [ahead])
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, INT32, INT32, INT32])
        function = self.builder.module.declare_intrinsic("llvm.prefetch", (_BYTES,), kind)
        numbers = [ir.Constant(INT32, number) for number in (0, 3, 1)]  # to read; near; data
        for place in range(0, n_bytes, LINE):
            line = self.builder.gep(base, [self.number(place)])
            self.builder.call(function, [line, *numbers])

    def store(self, value: Any, base: Any, j: Any) -> None:
        """Write a vector from entry j on."""
        place = self.builder.bitcast(self.builder.gep(base, [j]), self.vector.as_pointer())
        self.builder.store(value, place).align = self.context.get_abi_sizeof(self.scalar)

    def add_to(self, base: Any, j: Any, total: Any, is_new: Any = None) -> None:
        """Add a sum to the vector in memory from entry j on, which is nothing if `is_new`."""
        old = self.load(base, j)
        if is_new is not None:
            old = self.builder.select(is_new, self.zeros, old)
        self.store(self.builder.fadd(old, self.builder.load(total)), base, j)

    def spread(self, scalar: Any, vector: Any = None) -> Any:
        """The same scalar in every lane, of this kind of vector."""
        kind = vector or self.vector
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(nothing, scalar, ir.Constant(INT32, 0))
        pattern = ir.Constant(ir.VectorType(INT32, kind.count), [0] * kind.count)
        return self.builder.shuffle_vector(first, nothing, pattern)

    def widened(self, value: Any, kind: Any) -> Any:
        """The value in a type of at least its own precision."""
        return value if value.type == kind else self.builder.fpext(value, kind)

    def sums(self, count: int) -> list[Any]:
        """So many vectors of zeros to add to; they stay in registers."""
        return [cgutils.alloca_once_value(self.builder, self.zeros) for _ in range(count)]

    def add_product(self, total: Any, x: Any, y: Any) -> None:
        """total += x y, lane by lane, by one instruction where there is one."""
        product = self.builder.fmul(x, y, flags=_CONTRACT)
        new = self.builder.fadd(self.builder.load(total), product, flags=_CONTRACT)
        self.builder.store(new, total)

    def shuffled(self, x: Any, y: Any, places: list[int]) -> Any:
        """The entries of [x, y] at these places."""
        pattern = ir.Constant(ir.VectorType(INT32, len(places)), places)
        return self.builder.shuffle_vector(x, y, pattern)

    def sums_of_lanes(self, vectors: list[Any]) -> Any:
        """The sums of four vectors' lanes, as one vector of four.

        Within each 128 bits, [x₀ x₁ x₂ x₃] and [y₀ y₁ y₂ y₃] become [x₀+x₂ x₁+x₃ y₀+y₂ y₁+y₃],
        then that and its like from two other vectors [x y z w]; doubles take the second step
        only. Units of 128 bits are added up last. A third of the instructions of four sums.
        """
        unit = 16 // self.context.get_abi_sizeof(self.scalar)
        while unit > 1 and len(vectors) > 1:
            vectors = [self._paired(x, y, unit) for x, y in zip(*[iter(vectors)] * 2, strict=True)]
            unit //= 2
        halves = [self._halved(vector, 4 // len(vectors)) for vector in vectors]
        return halves[0] if len(halves) == 1 else self.shuffled(halves[0], halves[1], [0, 1, 2, 3])

    def _paired(self, x: Any, y: Any, unit: int) -> Any:
        """Half as many sums of x and y each, side by side within 128 bits."""
        n, size, half = self.lanes, 16 // self.context.get_abi_sizeof(self.scalar), unit // 2
        low, high = [], []
        for i in range(0, n, size):
            starts = [v + i + part for v in (0, n) for part in range(0, size, unit)]
            low += [start + k for start in starts for k in range(half)]
            high += [start + half + k for start in starts for k in range(half)]
        return self.builder.fadd(self.shuffled(x, y, low), self.shuffled(x, y, high))

    def _halved(self, vector: Any, length: int) -> Any:
        """The upper half added to the lower, until so many entries are left."""
        while vector.type.count > length:
            n = vector.type.count // 2
            low = self.shuffled(vector, vector, list(range(n)))
            vector = self.builder.fadd(low, self.shuffled(vector, vector, list(range(n, 2 * n))))
        return vector

    @contextmanager
    def loop(self, start: Any, stop: Any, step: int = 1) -> Iterator[Any]:
        """What is emitted within runs for the index start, start + step, … below stop."""
        by = self.number(step)
        with cgutils.for_range_slice(self.builder, start, stop, by, self.index) as (i, _):
            yield i


#: Gives the vector of a row of X from entry j on, and may leave it at entry j of a copy.
Reader = Callable[[Emitter, Any, Any, Any], Any]


def read_floats(e: Emitter, row: Any, j: Any, copy: Any) -> Any:
    """Vectors of an X that is stored as it is multiplied; nothing is copied."""
    return e.load(row, j)


def _by_size(builder: Any, size: Any, sizes: tuple[int, ...], emit: Callable[[int], None]) -> None:
    """Emit a tile of each of these sizes, of which the right one is run."""
    for one in sizes:
        with builder.if_then(builder.icmp_signed("==", size, ir.Constant(size.type, one))):
            emit(one)


def product_tile_of(read: Reader, stored: int = 0) -> Any:
    """The tile of X W, for an X of which `read` gives vectors, of entries of `stored` bytes.

    Vectors of sums of X[r, j] Wt[k + c, first + j] over 0 ≤ j < count are added to what lies at
    `sums`, a vector for each class and rows `sums_bytes` apart, or written there if `is_new`. For
    c < size classes and all rows r of a tile, of which those after `last` repeat it; `count` is
    a multiple of TILES.pair vectors. What is read may be left at `kept`, row by row. Meanwhile the
    cache fetches as many bytes of as many rows from the address `soon` on, which need not exist.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def product_tile(typing: Any, size: Any, x: Any, row_bytes: Any, last: Any, count: Any,
                     Wt: Any, k: Any, first: Any, sums: Any, sums_bytes: Any, is_new: Any,
                     kept: Any, kept_bytes: Any, soon: Any, soon_bytes: Any) -> Any:  # fmt: skip
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            (size, x, row_bytes, last, count, _, k, first, sums, sums_bytes, is_new, kept,
             kept_bytes, soon, soon_bytes) = arguments  # fmt: skip
            e = Emitter(context, builder, signature, arguments, context.get_value_type(Wt.dtype))
            n_bytes, rows = stored or context.get_abi_sizeof(e.scalar), range(TILES.rows)
            x_rows = []
            for r in rows:
                inside = builder.icmp_signed("<", e.number(r), last)
                row = e.at(x, builder.select(inside, e.number(r), last), row_bytes)
                x_rows.append((row, e.at(kept, e.number(r), kept_bytes)))
            coming = [e.at(soon, e.number(r), soon_bytes) for r in rows]

            def emit_size(n_classes: int) -> None:
                classes = [builder.add(k, e.number(c)) for c in range(n_classes)]
                w_rows = [e.entry(5, row, first) for row in classes]
                totals = [e.sums(TILES.rows) for _ in w_rows]
                with e.loop(e.number(0), count, TILES.pair * e.lanes) as j:
                    places = [builder.add(j, e.number(i * e.lanes)) for i in range(TILES.pair)]
                    x = [[read(e, row, i, copy) for i in places] for row, copy in x_rows]
                    for row in coming:
                        e.fetch(row, builder.mul(j, e.number(n_bytes)), LINE)
                    for of_class, w_row in zip(totals, w_rows, strict=True):
                        w = [e.load(w_row, i) for i in places]
                        for i in range(TILES.pair):
                            for total, x_vectors in zip(of_class, x, strict=True):
                                e.add_product(total, x_vectors[i], w[i])
                for r in rows:
                    out = e.at(sums, e.number(r), sums_bytes)
                    for row, of_class in zip(classes, totals, strict=True):
                        e.add_to(out, builder.mul(row, e.number(e.lanes)), of_class[r], is_new)

            _by_size(builder, size, tuple(range(1, TILES.classes + 1)), emit_size)
            return context.get_dummy_value()

        return types.void(I, I, I, I, I, Wt, I, I, I, I, types.boolean, I, I, I, I), emit

    return product_tile


@intrinsic  # type: ignore[untyped-decorator]
def sum_of_lanes_tile(typing: Any, sums: Any, first: Any, bias: Any, S: Any) -> Any:
    """S[k, t] = bias[k] + the sum of the lanes of vector k of row first + t of `sums`.

    In the precision of S, which has a multiple of four columns.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, first, _, scores = arguments
        e = Emitter(context, builder, signature, arguments, context.get_value_type(sums.dtype))
        S_array = context.make_array(S)(context, builder, scores)
        n_classes, n_rows = cgutils.unpack_tuple(builder, S_array.shape)
        scalar = context.get_value_type(S.dtype)
        four = ir.VectorType(scalar, 4)
        with e.loop(e.number(0), n_rows, 4) as t:
            places = [builder.add(first, builder.add(t, e.number(r))) for r in range(4)]
            rows = [e.entry(0, row, e.number(0)) for row in places]
            with e.loop(e.number(0), n_classes) as k:
                j = builder.mul(k, e.number(e.lanes))
                parts = e.widened(e.sums_of_lanes([e.load(row, j) for row in rows]), four)
                of_class = builder.load(e.entry(2, k))
                if scalar != of_class.type:
                    of_class = builder.fptrunc(of_class, scalar)
                total = builder.fadd(parts, e.spread(of_class, four))
                place = builder.bitcast(e.entry(3, k, t), four.as_pointer())
                builder.store(total, place).align = context.get_abi_sizeof(scalar)
        return context.get_dummy_value()

    return types.void(sums, I, bias, S), emit


@intrinsic  # type: ignore[untyped-decorator]
def transpose_tile(typing: Any, size: Any, x: Any, row_bytes: Any, ahead: Any, count: Any, R: Any,
                   place: Any, of_column: Any, of_row: Any, Gt: Any, k: Any) -> Any:  # fmt: skip
    """Tile of (Xᵀ R)ᵀ: Gt[k + c] += Σ_t R[place + c of_column + t of_row] X[t] over 0 ≤ t < count.

    For c < size columns of R, a flat array, and `TILES.vectors` vectors of columns of X, which
    begin at x and are what a row of Gt has. Meanwhile the cache fetches what lies so many bytes
    `ahead` of them.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size, x, row_bytes, ahead, count, _, place, of_column, of_row, _, k = arguments
        e = Emitter(context, builder, signature, arguments, context.get_value_type(Gt.dtype))
        # LLVM would unroll the loop over the rows, and spill sums that just fit.
        builder.function.attributes.add("optsize")

        def emit_vectors(factors: list[Any], starts: list[Any], fetches: bool) -> None:
            totals = [e.sums(len(starts)) for _ in factors]
            with e.loop(e.number(0), count) as t:
                row = e.at(x, t, row_bytes)
                if fetches:
                    e.fetch(row, ahead, TILES.vectors * VECTOR_BYTES)
                own = builder.mul(t, of_row)
                spread = [e.spread(builder.load(builder.gep(f, [own]))) for f in factors]
                for v, start in enumerate(starts):
                    vector = e.load(row, start)
                    for c, factor in enumerate(spread):
                        e.add_product(totals[c][v], vector, factor)
            for c, of_column in enumerate(totals):
                out = e.entry(9, builder.add(k, e.number(c)), e.number(0))
                for total, start in zip(of_column, starts, strict=True):
                    e.add_to(out, start, total)

        def emit_size(n_columns: int) -> None:
            offsets = [builder.mul(of_column, e.number(c)) for c in range(n_columns)]
            factors = [e.entry(5, builder.add(place, offset)) for offset in offsets]
            n_parts = -(-TILES.vectors * n_columns // TILES.sums)
            together = -(-TILES.vectors // n_parts)
            for v in range(0, TILES.vectors, together):
                own = range(v, min(v + together, TILES.vectors))
                emit_vectors(factors, [e.number(i * e.lanes) for i in own], v == 0)

        _by_size(builder, size, tuple(range(1, TILES.columns + 1)), emit_size)
        return context.get_dummy_value()

    return types.void(I, I, I, I, I, R, I, I, I, Gt, I), emit


product_tile = product_tile_of(read_floats)


@intrinsic  # type: ignore[untyped-decorator]
def pointed_at(typing: Any, like: Any, address: Any, length: Any) -> Any:
    """So many numbers at an address as an array, of the type of another array's."""
    kind = types.Array(like.dtype, 1, "C")

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, address, length = arguments
        array = context.make_array(kind)(context, builder)
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(array.data.type.pointee))
        populate_array(
            array,
            data=builder.inttoptr(address, array.data.type),
            shape=[length],
            strides=[itemsize],
            itemsize=itemsize,
            meminfo=None,
        )
        return array._getvalue()

    return kind(like, types.intp, types.intp), emit


@intrinsic  # type: ignore[untyped-decorator]
def address_of(typing: Any, array: Any) -> Any:
    """Where an array's first entry is. `array.ctypes.data` is the same with counted references."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = context.make_array(array)(context, builder, arguments[0])
        return builder.ptrtoint(value.data, context.get_value_type(types.intp))

    return types.intp(array), emit
