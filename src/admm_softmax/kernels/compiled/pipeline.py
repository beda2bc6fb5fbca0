"""How Numba compiles our functions: without the passes that they have no use for.

A quarter of the work of Numba's own passes, which is what a first compilation is made of, goes
into Python that is not written here: closures, `with` blocks, array expressions, variables that
change their type, counted references. Only passes that a function without all that can do without
are left out; those of other names, in other versions of Numba, stay.
"""

from __future__ import annotations

from numba.core.compiler import CompilerBase, DefaultPassBuilder

from admm_softmax.kernels.compiled.lowering import LoweringOnly

#: By Numba's names. Without single assignment (`reconstruct_ssa`) a variable keeps one type, and
#: LLVM splits it itself; legalisation only marks where references end.
LEFT_OUT = {
    "with_lifting",
    "inline_closure_likes",
    "make_function_op_code_to_jit_function",
    "inline_inlinables",
    "inline_overloads",
    "Rewrite dynamic raises",
    "find_literally",
    "literal_unroll",
    "LiteralPropagation",
    "reconstruct_ssa",
    "strip_phis",
    "nopython_rewrites",
    "nopython_supported_feature_validation",
    "ir_legalization",
    "dump_parfor_diagnostics",
}

#: The last pass that does something, and ours in its place.
_LOWERING = "native_lowering"


class ShortPipeline(CompilerBase):  # type: ignore[misc]
    """Numba's passes from bytecode to LLVM's intermediate code, but for those left out."""

    def define_pipelines(self) -> list[object]:
        """One pipeline: these functions never fall back to another mode."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        kept = [one for one in passes.passes if one[0].name() not in LEFT_OUT]
        passes.passes = [
            (LoweringOnly, words) if one.name() == _LOWERING else (one, words)
            for one, words in kept
        ]
        passes.finalize()
        return [passes]
