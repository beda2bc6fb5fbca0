"""From LLVM's intermediate code to object code, by LLVM alone: Numba has no part in it."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from llvmlite import binding


class Unit(NamedTuple):
    """LLVM's intermediate code of one function, and that of functions to compile into it."""

    text: str
    #: Functions in the text that are not optimised yet.
    symbols: tuple[str, ...]
    inlined: tuple[Unit, ...]


class Target(NamedTuple):
    """For which CPU to compile, and how well: what Numba makes of its settings."""

    triple: str
    cpu: str
    features: str
    data_layout: str
    opt: int
    loop_vectorize: bool
    slp_vectorize: bool


class Backend:
    """Compiles units for a target as Numba would, but loads nothing.

    Passes over each function first, then over the module with all that is inlined. Numba's passes
    in between, which prune counted references, find none here: object code is the same, to the
    byte, without them. Every call of LLVM's lets other threads run.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        found = binding.Target.from_triple(target.triple)
        # As Numba has it: code that is loaded at once, anywhere in memory.
        self.machine = found.create_target_machine(
            cpu=target.cpu, features=target.features, opt=target.opt, jit=True,
            reloc="static" if found.name.startswith("x86") else "default", codemodel="jitdefault",
        )  # fmt: skip
        self._options = binding.create_pipeline_tuning_options(speed_level=target.opt)
        self._options.loop_vectorization = target.loop_vectorize
        self._options.slp_vectorization = target.slp_vectorize
        self._for_linking: dict[Unit, Any] = {}

    def object_code(self, unit: Unit) -> bytes:
        """The object code of a unit."""
        with self.optimised(unit) as module:
            return bytes(self.machine.emit_object(module))

    def assembly(self, unit: Unit) -> str:
        """The same, to be read."""
        with self.optimised(unit) as module:
            return str(self.machine.emit_assembly(module))

    def optimised(self, unit: Unit) -> Any:
        """A new module of LLVM's, with all that is inlined, after all passes."""
        module = binding.parse_assembly(unit.text)
        module.verify()
        for symbol in unit.symbols:
            passes = self._passes()
            passes.getFunctionPassManager().run(module.get_function(symbol), passes)
        for other in unit.inlined:
            module.link_in(self.module_for_linking(other), preserve=True)
        passes = self._passes()
        passes.getModulePassManager().run(module, passes)
        return module

    def _passes(self) -> Any:
        """What makes passes; good for one use, as LLVM keeps pointers into the last one."""
        return binding.create_pass_builder(self.machine, self._options)

    def module_for_linking(self, unit: Unit) -> Any:
        """The optimised module of a unit whose functions are dropped once they are inlined."""
        found = self._for_linking.get(unit)
        if found is None:
            found = self._for_linking[unit] = self.optimised(unit)
            for function in found.functions:
                if not function.is_declaration:
                    function.linkage = "linkonce_odr"
        return found


@cache
def backend_of(target: Target) -> Backend:
    """One for each target: only the thread that compiles may use it."""
    return Backend(target)
