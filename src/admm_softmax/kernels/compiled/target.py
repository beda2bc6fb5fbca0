"""What Numba compiles for: the width and number of its vector registers, and tiles to fit."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from llvmlite import binding

from admm_softmax._cpu import vector_bytes
from admm_softmax.kernels.compile_clock import compile_time
from admm_softmax.kernels.compiled import code_store


class Tiles(NamedTuple):
    """How much of the two products is kept in registers at a time.

    rows, classes : of the tile of X W, whose sums run along the columns of X
    pair : vectors of a row that the tile of X W reads together
    vectors, columns : of the tile of Xᵀ R: vectors along the columns of X × columns of R
    of_many : columns of R in a tile where there are many classes, and of W in X W by panels
    sums : the most sums that the tile of Xᵀ R keeps; with more columns it takes fewer vectors
    """

    rows: int
    classes: int
    pair: int
    vectors: int
    columns: int
    of_many: int
    sums: int


#: By the number of vector registers. Two multipliers of latency four (Zen 3) need 8 sums; the
#: registers that sums leave hold operands.
#:
#: 16 registers: two rows × five classes, a cache line of each at a time. In C, from the first-level
#: cache of one core of Zen 3, which can do 98 GFLOP/s, such a tile runs at 97 to 101, one of single
#: vectors at 82 to 91, and four rows × three classes at 74 to 78; LLVM's code for a block with
#: ten classes at 71 to 81, where it was 72 to 78. The tile of Xᵀ R runs at 88 to 99 with 4 × 3 and
#: 2 × 5 sums, and with 4 × 2 at 63 to 72 where X begins 16 bytes into a line, as NumPy's large
#: arrays do; so ten columns go as five and five. With a hundred columns and more, three at a time
#: are 2 to 3 % faster; with 30 to 50 that was measured only together with X W by panels.
#:
#: 32 registers: those run at 120 to 158 (X W) and 145 to 185 GFLOP/s (Xᵀ R) with 100 classes
#: and more on one thread of a Sapphire Rapids, where BLAS's best is 173.
TILE_SHAPES = {
    16: Tiles(rows=2, classes=5, pair=2, vectors=4, columns=5, of_many=3, sums=12),
    32: Tiles(rows=4, classes=5, pair=1, vectors=4, columns=5, of_many=5, sums=20),
}

_HALVES = """
target triple = "{triple}"
define <8 x float> @probe(<8 x half> %x) {{
  %y = fpext <8 x half> %x to <8 x float>
  ret <8 x float> %y
}}
"""


@cache
def converts_halves(triple: str, cpu: str, features: str) -> bool:
    """Whether a CPU has instructions from float16 to float32, again as LLVM sees it."""
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    with binding.parse_assembly(_HALVES.format(triple=triple)) as module:
        code = machine.emit_assembly(module)
    return "vcvtph2ps" in code or "fcvtl" in code


def _numba_target() -> tuple[str, str, str]:
    """Triple, name of the CPU and features: what Numba said when it was last asked.

    Only Numba knows what it makes of its settings and of this CPU. What it says is kept beside the
    code, in a folder for these settings and this CPU.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    kept = code_store.read("target")
    if kept is not None:
        triple, cpu, features = kept[0]["target"]
        return triple, cpu, features
    with compile_time.counting(compiles=False):
        from numba.core.registry import cpu_target  # noqa: PLC0415  (loads Numba)

        triple, cpu, features = map(str, cpu_target.target_context.codegen().magic_tuple())
    code_store.write("target", {"target": [triple, cpu, features]})
    return triple, cpu, features


def vector_registers(triple: str, n_bytes: int) -> int:
    """How many vector registers there are: 32 with AVX-512 and on 64-bit ARM."""
    return 32 if n_bytes == 64 or triple.startswith(("aarch64", "arm64")) else 16


_TARGET = _numba_target()
TRIPLE = _TARGET[0]
#: Bytes in a vector register.
VECTOR_BYTES = vector_bytes(*_TARGET)
#: The shapes of the tiles.
TILES = TILE_SHAPES[vector_registers(TRIPLE, VECTOR_BYTES)]
#: Whether float16 becomes float32 by an instruction.
CONVERTS_HALVES = converts_halves(*_TARGET)
