"""Compiles all that `warm_up` compiles for 64-bit ARM, on any machine; runs and keeps none of it.

    python -m tests.kernels.for_arm

Prints assembly by name, as JSON. Numba lowers every function as for this machine, but to the
vectors and tiles of ARM, and LLVM compiles that for ARM. For a process of its own: what is compiled
here must not be called.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from llvmlite import binding

from admm_softmax.kernels.compiled import code_store, target

TRIPLE, CPU = "aarch64-unknown-linux-gnu", "neoverse-n1"


def play_arm() -> None:
    """Let all that is imported from now on be laid out for ARM."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    kind = TRIPLE, CPU, ""
    target.VECTOR_BYTES = target.vector_bytes(*kind)
    target.TILES = target.TILE_SHAPES[target.vector_registers(TRIPLE, target.VECTOR_BYTES)]
    target.CONVERTS_HALVES = target.converts_halves(*kind)
    code_store.read = lambda name: None
    code_store.write = lambda *record: None


def assembly_of_all() -> dict[str, str]:
    """The assembly of every function that can be compiled."""
    from admm_softmax import compilation  # after ARM is played
    from admm_softmax.kernels.compiled import (
        entries,
        jit,
        loading,
        lowering,
        object_code,
        passes,
    )

    machine = binding.Target.from_triple(TRIPLE).create_target_machine(cpu=CPU)
    layout, found = str(machine.target_data), {}
    arm = lowering.numba_target()._replace(triple=TRIPLE, cpu=CPU, features="", data_layout=layout)
    lowering._triple, lowering._data_layout = (lambda: TRIPLE), (lambda: layout)
    jit.numba_target = lowering.numba_target = lambda: arm

    def object_code_of(backend: Any, unit: Any) -> bytes:
        return backend.assembly(unit).encode()

    def add(name: str, record: Any) -> Any:
        found[name] = record.code.decode()
        return loading._loaded.setdefault(name, loading.Loaded(1, record.kinds, None))

    def load(entry: Any, *arguments: Any) -> int:
        if entry._call is None:
            entry.load()
        return 0

    object_code.Backend.object_code = object_code_of
    loading.add, entries.Entry.__call__ = add, load
    compilation.warm_up()
    # What no fit of rows in memory needs.
    for dtype in (np.float32, np.float64):
        passes.csr_pass(dtype, np.int64, np.float64).load()
        passes.columns_pass(dtype, np.int64, np.float64).load()
    passes.rows_solver().load()
    return found


if __name__ == "__main__":
    play_arm()
    print(json.dumps(assembly_of_all()))
