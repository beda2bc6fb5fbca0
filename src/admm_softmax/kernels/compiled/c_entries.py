"""The C functions through which Python calls compiled code: see `entries`. Written as LLVM's."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target

from admm_softmax.kernels.compiled.code_store import Record
from admm_softmax.kernels.compiled.entries import REFUSED
from admm_softmax.kernels.compiled.lowering import IntermediateCode, size_of
from admm_softmax.kernels.compiled.object_code import Unit

_WORD = ir.IntType(64)
_BLOCK = _WORD.as_pointer()
#: An array's address, number of dimensions, shape, and so on lie behind what every object of Python
#: has. NumPy's C interface promises the order of these fields (`PyArrayObject`) and its flags.
HEADER = object.__basicsize__
ADDRESS, DIMENSIONS, SHAPE, FLAGS = 0, 1, 2, 6
C_CONTIGUOUS_AND_ALIGNED = 0x101


def unit(name: str, called: str, signature: Any) -> tuple[Unit, Record]:
    """The entry of this name to the function `called`, and what is to be kept with its code."""
    context = cpu_target.target_context
    library = IntermediateCode(name)
    module = library.create_ir_module(name)
    function = ir.Function(module, ir.FunctionType(_WORD, [_BLOCK]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    reader = _Reader(context, builder, function.args[0], signature.args)
    values = [reader.value(kind) for kind in signature.args]
    with builder.if_then(builder.not_(reader.all_right), likely=False):
        builder.ret(ir.Constant(_WORD, REFUSED))
    kind = context.call_conv.get_function_type(signature.return_type, signature.args)
    target = cgutils.get_or_insert_function(module, kind, called)
    _, result = context.call_conv.call_function(
        builder, target, signature.return_type, signature.args, values
    )
    builder.ret(result if signature.return_type == types.intp else ir.Constant(_WORD, 0))
    library.add_ir_module(module)
    return library.unit, Record(name, [called], [*map(_kind, signature.args)], b"")


class _Reader:
    """Makes arguments of a block, and finds out whether all arrays are as they must be."""

    def __init__(self, context: Any, builder: Any, block: Any, kinds: Any) -> None:
        self.context, self.builder, self.block = context, builder, block
        self.all_right = ir.Constant(ir.IntType(1), 1)
        # The numbers come first, whatever the order of the arguments.
        flat = [member for kind in kinds for member in _members(kind)]
        self.numbers = iter(range(len(flat)))
        self.arrays = iter(
            range(sum(not isinstance(kind, types.Array) for kind in flat), len(flat))
        )

    def value(self, kind: Any) -> Any:
        """The next argument, of this type."""
        if isinstance(kind, types.BaseTuple):
            members = [self.value(member) for member in kind]
            return self.context.make_tuple(self.builder, kind, members)
        if isinstance(kind, types.Array):
            return self._array(kind, self._word(self.block, next(self.arrays)))
        word = self._word(self.block, next(self.numbers))
        if kind == types.boolean:
            return self.builder.icmp_signed("!=", word, ir.Constant(_WORD, 0))
        return self.builder.bitcast(word, self.context.get_value_type(kind))

    def _word(self, base: Any, place: int) -> Any:
        return self.builder.load(self.builder.gep(base, [ir.Constant(_WORD, place)]))

    def _array(self, kind: Any, word: Any) -> Any:
        """A C-ordered array, from the address of NumPy's object."""
        builder, context = self.builder, self.context
        fields = builder.inttoptr(builder.add(word, ir.Constant(_WORD, HEADER)), _BLOCK)
        # These two are half as long as a word.
        self._require(self._word(fields, DIMENSIONS), 0xFFFFFFFF, kind.ndim)
        self._require(self._word(fields, FLAGS), C_CONTIGUOUS_AND_ALIGNED, C_CONTIGUOUS_AND_ALIGNED)
        lengths = builder.inttoptr(self._word(fields, SHAPE), _BLOCK)
        shape = [self._word(lengths, axis) for axis in range(kind.ndim)]
        model = context.data_model_manager[kind]
        pointer = context.get_value_type(model.get_type("data"))
        strides = [ir.Constant(_WORD, size_of(pointer.pointee))]
        for length in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], length))
        n_items = shape[0]
        for length in shape[1:]:
            n_items = builder.mul(n_items, length, flags=["nsw"])
        members: dict[Any, Any] = {
            ("data",): builder.inttoptr(self._word(fields, ADDRESS), pointer),
            ("nitems",): n_items,
            ("itemsize",): strides[-1],
            **{("shape", axis): length for axis, length in enumerate(shape)},
            **{("strides", axis): stride for axis, stride in enumerate(strides)},
        }
        # Value by value: Numba's own way goes through memory, which is several times as long for
        # LLVM. What stays zero is the owner of the memory.
        array = ir.Constant(context.get_value_type(kind), None)
        for (name, *axis), value in members.items():
            array = builder.insert_value(array, value, [model.get_field_position(name), *axis])
        return array

    def _require(self, word: Any, mask: int, wanted: int) -> None:
        """All is right only if the word is this one, under a mask."""
        found = self.builder.and_(word, ir.Constant(_WORD, mask))
        is_right = self.builder.icmp_unsigned("==", found, ir.Constant(_WORD, wanted))
        self.all_right = self.builder.and_(self.all_right, is_right)


def _members(kind: Any) -> list[Any]:
    """The types in a tuple; else the type itself."""
    return list(kind) if isinstance(kind, types.BaseTuple) else [kind]


def _kind(kind: Any) -> Any:
    """What `entries` calls a type of Numba's."""
    if isinstance(kind, types.BaseTuple):
        return [*map(_kind, kind)]
    if isinstance(kind, types.Array):
        return f"{'bool' if kind.dtype == types.boolean else kind.dtype} {kind.ndim}"
    return "float" if kind == types.float64 else "int"
