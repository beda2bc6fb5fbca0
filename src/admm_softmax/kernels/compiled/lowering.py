"""How far Numba compiles our functions: to LLVM's intermediate code, and no further.

`object_code` does the rest. Numba would also load what it compiles, into memory of its own, and
link the functions that count references into every function.
"""

from __future__ import annotations

from functools import cache
from struct import calcsize
from types import SimpleNamespace
from typing import Any

from llvmlite import ir
from numba.core import cgutils, config, funcdesc
from numba.core.codegen import CodeLibrary
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.lowering import Lower
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from admm_softmax.kernels.compiled.object_code import Backend, Target, Unit


def numba_target() -> Target:
    """What Numba would compile for now, under its present settings."""
    codegen = cpu_target.target_context.codegen()
    triple, cpu, features = map(str, codegen.magic_tuple())
    return Target(
        triple, cpu, features, _data_layout(),
        int(config.OPT), bool(config.LOOP_VECTORIZE), bool(config.SLP_VECTORIZE),
    )  # fmt: skip


@cache
def _data_layout() -> str:
    return str(cpu_target.target_context.target_data)


class _NoEngine:
    """Stands for what would load code, where Numba wants to tell it something."""

    def set_env(self, name: str, environment: Any) -> None:
        """Python's objects for a function: ours have none."""


class IntermediateCode(CodeLibrary):  # type: ignore[misc]
    """One function as Numba lowers it, kept as text; Numba's interface for what holds code."""

    def __init__(self, name: str) -> None:
        super().__init__(_NoEngine(), name)
        self._text = ""
        self._symbols: tuple[str, ...] = ()
        self._linked: list[Any] = []

    @property
    def unit(self) -> Unit:
        """What LLVM is to compile."""
        return Unit(self._text, self._symbols, tuple(_unit_of(one) for one in self._linked))

    def create_ir_module(self, name: str) -> Any:
        """An empty module. Numba's own way asks LLVM, which may be busy in another thread."""
        module = ir.Module(cgutils.normalize_ir_text(name))
        module.triple, module.data_layout = _triple(), _data_layout()
        return module

    def add_ir_module(self, ir_module: Any) -> None:
        """Keep the function."""
        self._text = cgutils.normalize_ir_text(str(ir_module))
        self._symbols = tuple(one.name for one in ir_module.functions if not one.is_declaration)

    def add_linking_library(self, library: Any) -> None:
        """Note what is to be inlined; nothing of ours counts references."""
        if library is not rtsys.library and library not in self._linked:
            self._linked.append(library)

    def finalize(self) -> None:
        """Nothing is left to do."""

    def get_pointer_to_function(self, name: str) -> int:
        """Where Python's wrapper is: there is none."""
        return 0

    def _get_module_for_linking(self) -> Any:
        """What Numba's own libraries call, where a function that is not ours calls this one."""
        return Backend(numba_target()).module_for_linking(self.unit)

    def get_function(self, name: str) -> Any:
        """One function of the optimised code."""
        return Backend(numba_target()).optimised(self.unit).get_function(name)

    def get_llvm_str(self) -> str:
        """The optimised code, for `inspect_llvm`."""
        return str(Backend(numba_target()).optimised(self.unit))

    def get_asm_str(self) -> str:
        """The same for `inspect_asm`."""
        return Backend(numba_target()).assembly(self.unit)


def size_of(kind: Any) -> int:
    """Bytes of a value of this type of LLVM's, with what aligns the next one.

    Numba asks hundreds of times, through a module that LLVM parses; and LLVM may be busy in
    another thread.
    """
    known = _size_and_alignment(kind) if _POINTER == 8 else None
    return cpu_target.target_context.get_abi_sizeof(kind) if known is None else known[0]


#: Bytes of a pointer. Where there are eight, numbers are aligned to their own size.
_POINTER = calcsize("P")
_SCALARS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "float": 4, "double": 8}


def _size_and_alignment(kind: Any) -> tuple[int, int] | None:
    """Of numbers, pointers, and what is made of them; None of all else."""
    if isinstance(kind, ir.PointerType):
        return _POINTER, _POINTER
    if isinstance(kind, (ir.ArrayType, ir.VectorType)):
        found, n = _size_and_alignment(kind.element), kind.count
        is_array = isinstance(kind, ir.ArrayType)
        # LLVM packs bits, and rounds odd vectors up.
        is_odd = not is_array and (kind.element == ir.IntType(1) or n & (n - 1) != 0)
        if found is None or is_odd:
            return None
        return n * found[0], found[1] if is_array else n * found[0]
    if not isinstance(kind, ir.LiteralStructType) or kind.packed:
        number = _SCALARS.get(str(kind))
        return None if number is None else (number, number)
    end, widest = 0, 1
    for member in kind.elements:
        found = _size_and_alignment(member)
        if found is None:
            return None
        end, widest = -(-end // found[1]) * found[1] + found[0], max(widest, found[1])
    return -(-end // widest) * widest, widest


@cache
def _triple() -> str:
    return str(cpu_target.target_context.codegen().magic_tuple()[0])


def _unit_of(library: Any) -> Unit:
    """What a library holds: ours, or one of Numba's own functions."""
    if isinstance(library, IntermediateCode):
        return library.unit
    return Unit(library.get_llvm_str(), (), ())


@register_pass(mutates_CFG=True, analysis_only=False)
class LoweringOnly(LoweringPass):  # type: ignore[misc]
    """As Numba's `NativeLowering`, into our library and without a look at LLVM's statistics."""

    _name = "lowering_only"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Lower a function, and let others call it."""
        context, flags = state.targetctx, state.flags
        context.get_abi_sizeof = size_of  # the context is a copy for this function alone
        library = state.library = IntermediateCode(state.func_id.func_qualname)
        described = funcdesc.PythonFunctionDescriptor.from_specialized_function(
            state.func_ir, state.typemap, state.return_type, state.calltypes,
            mangler=context.mangler, inline=flags.forceinline, noalias=flags.noalias,
            abi_tags=[flags.get_mangle_string()],
        )  # fmt: skip
        with context.push_code_library(library):
            lower = Lower(context, library, described, state.func_ir, metadata=state.metadata)
            lower.lower()
        # Stands for the function wherever Numba looks it up.
        stand_in = context.get_executable(library, described, lower.env)
        context.insert_user_function(stand_in, described, [library])
        state["cr"] = SimpleNamespace(
            fndesc=described, call_helper=lower.call_helper, cfunc=stand_in, env=lower.env
        )
        return True
