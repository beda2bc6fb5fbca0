"""The C functions through which Python calls compiled code: see `entries`. Written as LLVM's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.np.arrayobj import populate_array

from admm_softmax.kernels.compiled.code_store import Record

_WORD = ir.IntType(64)
_BLOCK = _WORD.as_pointer()


def record(name: str, called: str, signature: Any) -> Record:
    """The entry of this name to the function `called`."""
    context = cpu_target.target_context
    library = context.codegen().create_library(name)
    library.enable_object_caching()
    module = context.create_module(name)
    function = ir.Function(module, ir.FunctionType(_WORD, [_BLOCK]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    words = _words(builder, function.args[0])
    values = [_value(context, builder, kind, words) for kind in signature.args]
    kind = context.call_conv.get_function_type(signature.return_type, signature.args)
    target = cgutils.get_or_insert_function(module, kind, called)
    _, result = context.call_conv.call_function(
        builder, target, signature.return_type, signature.args, values
    )
    builder.ret(result if signature.return_type == types.intp else ir.Constant(_WORD, 0))
    library.add_ir_module(module)
    library.finalize()
    return Record(name, [called], [*map(_kind, signature.args)], library._get_compiled_object())


def _words(builder: Any, block: Any) -> Iterator[Any]:
    """The words of a block, one after the other."""
    place = 0
    while True:
        yield builder.load(builder.gep(block, [ir.Constant(_WORD, place)]))
        place += 1


def _value(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    """An argument of this type, made of the next word, or words."""
    if isinstance(kind, types.BaseTuple):
        members = [_value(context, builder, member, words) for member in kind]
        return context.make_tuple(builder, kind, members)
    word = next(words)
    if isinstance(kind, types.Array):
        return _array(context, builder, kind, word)
    if kind == types.boolean:
        return builder.icmp_signed("!=", word, ir.Constant(_WORD, 0))
    return builder.bitcast(word, context.get_value_type(kind))


def _array(context: Any, builder: Any, kind: Any, word: Any) -> Any:
    """A C-ordered array, from where NumPy keeps its address, number of dimensions and shape."""
    fields = builder.inttoptr(word, _BLOCK)

    def pointer(base: Any, place: int) -> Any:
        return builder.load(builder.gep(base, [ir.Constant(_WORD, place)]))

    lengths = builder.inttoptr(pointer(fields, 2), _BLOCK)
    shape = [pointer(lengths, axis) for axis in range(kind.ndim)]
    array = context.make_array(kind)(context, builder)
    itemsize = ir.Constant(_WORD, context.get_abi_sizeof(array.data.type.pointee))
    strides = [itemsize]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(pointer(fields, 0), array.data.type)
    populate_array(
        array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None
    )  # fmt: skip
    return array._getvalue()


def _kind(kind: Any) -> Any:
    """What `entries` calls a type of Numba's."""
    if isinstance(kind, types.BaseTuple):
        return [*map(_kind, kind)]
    if isinstance(kind, types.Array):
        return f"{'bool' if kind.dtype == types.boolean else kind.dtype} {kind.ndim}"
    return "float" if kind == types.float64 else "int"
