"""Register tiles of the two thin products, X W and Xᵀ R, written as LLVM vectors.

BLAS is made for fat matrices; with ten columns it leaves four fifths of the machine
idle. These two tiles keep a few rows × a few classes in registers and stream along the
columns of X, a vector at a time, so that the products run at the speed at which X
arrives. A compiler left to itself finds neither the tile nor the full width of the
registers, hence the explicit vectors.

Operands that belong to us (Wᵀ, and the sum Gᵀ) begin where a vector register would and
are padded with zeros to whole vectors. X is not ours: where its rows begin `lead` entries
after such a place, all columns are counted from there, so that every vector is aligned,
and the first and the last vector of a row are read under a mask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_FEATURES = binding.get_host_cpu_features()

#: Bytes in a vector register, and rows and classes in a tile that 32 or 16 registers hold.
VECTOR_BYTES = 64 if _FEATURES.get("avx512f") else 32 if _FEATURES.get("avx2") else 16
ROWS, MOST_CLASSES = (4, 5) if VECTOR_BYTES == 64 else (2, 4)

_INT32 = ir.IntType(32)
_CONTRACT = ("contract",)


class _Emitter:
    """Emits a tile's instructions: pointers, vector loads and fused multiply-adds."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder = context, builder
        self.types, self.arguments = signature.args, arguments
        self.scalar = context.get_value_type(signature.args[0].dtype)
        self.itemsize = context.get_abi_sizeof(self.scalar)
        self.lanes = VECTOR_BYTES // self.itemsize
        self.vector = ir.VectorType(self.scalar, self.lanes)
        self.index = context.get_value_type(types.intp)
        self.zeros = ir.Constant(self.vector, [0.0] * self.lanes)

    def number(self, value: int) -> Any:
        return ir.Constant(self.index, value)

    def offset(self, index: Any, by: int) -> Any:
        return self.builder.add(index, self.number(by))

    def at_most(self, index: Any, limit: Any) -> Any:
        inside = self.builder.icmp_signed("<", index, limit)
        return self.builder.select(inside, index, limit)

    def pointer(self, argument: int, i: Any, j: Any) -> Any:
        kind = self.types[argument]
        array = self.context.make_array(kind)(self.context, self.builder, self.arguments[argument])
        return cgutils.get_item_pointer(self.context, self.builder, kind, array, [i, j])

    def _at(self, base: Any, j: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(base, [j]), self.vector.as_pointer())

    def load(self, base: Any, j: Any, mask: Any = None) -> Any:
        if mask is None:
            value = self.builder.load(self._at(base, j))
            value.align = self.itemsize
            return value
        name = f"llvm.masked.load.v{self.lanes}f{8 * self.itemsize}.p0"
        kind = ir.FunctionType(
            self.vector, [self.vector.as_pointer(), _INT32, mask.type, self.vector]
        )
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        align = ir.Constant(_INT32, self.itemsize)
        return self.builder.call(function, [self._at(base, j), align, mask, self.zeros])

    def store(self, value: Any, base: Any, j: Any) -> None:
        self.builder.store(value, self._at(base, j)).align = self.itemsize

    def spread(self, scalar: Any, vector: Any = None) -> Any:
        """The same scalar in every lane."""
        vector = vector or self.vector
        nothing = ir.Constant(vector, ir.Undefined)
        first = self.builder.insert_element(nothing, scalar, ir.Constant(_INT32, 0))
        pattern = ir.Constant(ir.VectorType(_INT32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, nothing, pattern)

    def multiply_add(self, x: Any, y: Any, total: Any) -> Any:
        product = self.builder.fmul(x, y, flags=_CONTRACT)
        return self.builder.fadd(total, product, flags=_CONTRACT)

    def sum_lanes(self, vector: Any) -> Any:
        name = f"llvm.vector.reduce.fadd.v{self.lanes}f{8 * self.itemsize}"
        kind = ir.FunctionType(self.scalar, [self.scalar, self.vector])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        zero = ir.Constant(self.scalar, 0.0)
        return self.builder.call(function, [zero, vector], fastmath=("reassoc",))

    def along(self, start: Any, stop: Any, lead: Any, step: Callable[[Any, Any], None]) -> None:
        """Emit `step(j, mask)` for every vector of columns from `start`.

        Columns before `lead` and from `stop` on are masked out; only the first and the
        last vector can have any.
        """
        builder, lanes, zero = self.builder, self.number(self.lanes), self.number(0)
        is_led = builder.icmp_signed("<", start, lead)
        with builder.if_then(is_led):
            step(start, self._inside(start, lead, stop))
        first = builder.select(is_led, builder.add(start, lanes), start)
        left = builder.srem(builder.sub(stop, first), lanes)
        whole = builder.sub(stop, left)
        with cgutils.for_range_slice(builder, first, whole, lanes, self.index) as (j, _):
            step(j, None)
        with builder.if_then(builder.icmp_signed(">", left, zero)):
            step(whole, self._inside(whole, whole, stop))

    def _inside(self, j: Any, low: Any, high: Any) -> Any:
        """The mask of the lanes j, j + 1, … that lie in low ≤ · < high."""
        indices = ir.VectorType(self.index, self.lanes)
        counted = ir.Constant(indices, list(range(self.lanes)))
        column = self.builder.add(self.spread(j, indices), counted)
        above = self.builder.icmp_signed(">=", column, self.spread(low, indices))
        below = self.builder.icmp_signed("<", column, self.spread(high, indices))
        return self.builder.and_(above, below)

    def x_rows(self, i: Any, last: Any, lead: Any) -> list[Any]:
        """Where the tile's rows of X begin, `lead` columns early; rows stop at the last."""
        back = self.builder.neg(lead)
        rows = [self.at_most(self.offset(i, r), last) for r in range(ROWS)]
        return [self.builder.gep(self.pointer(0, row, self.number(0)), [back]) for row in rows]


def _product_tile(n_classes: int) -> Any:
    """Tile of X W: S[k + c, s + r] += Σ_j X[i + r, j − lead] Wt[k + c, j] over j0 ≤ j < j1.

    Rows beyond `last` repeat it, so that the end of X needs no tile of its own.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, X: Any, i: Any, last: Any, lead: Any, Wt: Any, k: Any, j0: Any, j1: Any,
             S: Any, s: Any) -> Any:  # fmt: skip
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            e = _Emitter(context, builder, signature, arguments)
            _, i, last, lead, _, k, j0, j1, _, s = arguments
            zero = e.number(0)
            x_rows = e.x_rows(i, last, lead)
            w_rows = [e.pointer(4, e.offset(k, c), zero) for c in range(n_classes)]
            totals = [[cgutils.alloca_once_value(builder, e.zeros) for _ in w_rows] for _ in x_rows]

            def step(j: Any, mask: Any) -> None:
                x = [e.load(row, j, mask) for row in x_rows]
                for c, w_row in enumerate(w_rows):
                    w = e.load(w_row, j)
                    for r, x_r in enumerate(x):
                        total = totals[r][c]
                        builder.store(e.multiply_add(x_r, w, builder.load(total)), total)

            e.along(j0, j1, lead, step)
            wide = ir.DoubleType()
            for r in range(ROWS):
                for c in range(n_classes):
                    part = e.sum_lanes(builder.load(totals[r][c]))
                    if part.type != wide:
                        part = builder.fpext(part, wide)
                    place = e.pointer(8, e.offset(k, c), e.offset(s, r))
                    builder.store(builder.fadd(builder.load(place), part), place)
            return context.get_dummy_value()

        I = types.intp  # noqa: E741
        return types.void(X, I, I, I, Wt, I, I, I, S, I), emit

    return tile


def _transpose_tile(n_classes: int) -> Any:
    """Tile of (Xᵀ R)ᵀ: Gt[k + c, j] += Σ_r R[k + c, s + r] X[i + r, j − lead], j0 ≤ j < j1."""

    @intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, X: Any, i: Any, last: Any, lead: Any, R: Any, s: Any, Gt: Any, k: Any,
             j0: Any, j1: Any) -> Any:  # fmt: skip
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            e = _Emitter(context, builder, signature, arguments)
            _, i, last, lead, _, s, _, k, j0, j1 = arguments
            zero = e.number(0)
            x_rows = e.x_rows(i, last, lead)
            g_rows = [e.pointer(6, e.offset(k, c), zero) for c in range(n_classes)]
            factors = [
                [
                    e.spread(builder.load(e.pointer(4, e.offset(k, c), e.offset(s, r))))
                    for c in range(n_classes)
                ]
                for r in range(ROWS)
            ]

            def step(j: Any, mask: Any) -> None:
                totals = [e.load(row, j) for row in g_rows]
                for row, factor in zip(x_rows, factors, strict=True):
                    x = e.load(row, j, mask)
                    totals = [e.multiply_add(x, f, t) for f, t in zip(factor, totals, strict=True)]
                for total, row in zip(totals, g_rows, strict=True):
                    e.store(total, row, j)

            e.along(j0, j1, lead, step)
            return context.get_dummy_value()

        I = types.intp  # noqa: E741
        return types.void(X, I, I, I, R, I, Gt, I, I, I), emit

    return tile


def _gather_tile(n_vectors: int) -> Any:
    """Tile of a sparse row times a dense M: out[i, k + ·] = Σ_e data[e] M[indices[e], k + ·].

    Over the entries start ≤ e < stop, for `n_vectors` vectors of columns from k. M's rows
    are whole vectors; sums are in double, in registers until the row ends.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, data: Any, indices: Any, start: Any, stop: Any, M: Any, k: Any,
             out: Any, i: Any) -> Any:  # fmt: skip
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _, _, start, stop, _, k, _, i = arguments
            index = context.get_value_type(types.intp)
            lanes = VECTOR_BYTES // 8
            wide = ir.VectorType(ir.DoubleType(), lanes)
            stored = context.get_value_type(signature.args[4].dtype)
            narrow = ir.VectorType(stored, lanes)
            size = context.get_abi_sizeof(stored)
            nothing = ir.Constant(wide, ir.Undefined)
            pattern = ir.Constant(ir.VectorType(_INT32, lanes), [0] * lanes)
            zeros = ir.Constant(wide, [0.0] * lanes)
            totals = [cgutils.alloca_once_value(builder, zeros) for _ in range(n_vectors)]

            def array(argument: int) -> Any:
                kind = signature.args[argument]
                return kind, context.make_array(kind)(context, builder, arguments[argument])

            def pointer(argument: int, *place: Any) -> Any:
                kind, a = array(argument)
                return cgutils.get_item_pointer(context, builder, kind, a, place)

            step = ir.Constant(index, 1)
            with cgutils.for_range_slice(builder, start, stop, step, index) as (e, _):
                x = builder.load(pointer(0, e))
                if x.type != ir.DoubleType():
                    x = builder.fpext(x, ir.DoubleType())
                first = builder.insert_element(nothing, x, ir.Constant(_INT32, 0))
                x = builder.shuffle_vector(first, nothing, pattern)
                row = builder.load(pointer(1, e))
                if row.type != index:
                    row = builder.sext(row, index)
                base = pointer(4, row, k)
                for v, total in enumerate(totals):
                    at = builder.gep(base, [ir.Constant(index, v * lanes)])
                    m = builder.load(builder.bitcast(at, narrow.as_pointer()))
                    m.align = size
                    if stored != ir.DoubleType():
                        m = builder.fpext(m, wide)
                    product = builder.fmul(x, m, flags=_CONTRACT)
                    new = builder.fadd(builder.load(total), product, flags=_CONTRACT)
                    builder.store(new, total)
            base = pointer(6, i, k)
            for v, total in enumerate(totals):
                at = builder.gep(base, [ir.Constant(index, v * lanes)])
                place = builder.bitcast(at, wide.as_pointer())
                builder.store(builder.load(total), place).align = 8
            return context.get_dummy_value()

        I = types.intp  # noqa: E741
        return types.void(data, indices, I, I, M, I, out, I), emit

    return tile


gather_1, gather_2, gather_4 = (_gather_tile(v) for v in (1, 2, 4))

product_1, product_2, product_3, product_4, product_5 = (_product_tile(c) for c in range(1, 6))
transpose_1, transpose_2, transpose_3, transpose_4, transpose_5 = (
    _transpose_tile(c) for c in range(1, 6)
)
