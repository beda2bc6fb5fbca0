"""What choices that were measured may depend on: the kind of the CPU that code is made for."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")

#: Sets of vector instructions, the widest first: what they are called, and what NumPy calls them.
_VECTORS = {"AVX-512": "AVX512F", "AVX2": "AVX2", "NEON": "ASIMD"}

#: What tells Numba which CPU to compile for.
_TOLD_NUMBA = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX")
#: CPUs on which Numba does without AVX by itself.
_AVX_IS_SLOW = {"corei7-avx", "core-avx-i", "sandybridge", "ivybridge", "nocona"}

_PROBE = """
target triple = "{triple}"
define <16 x float> @probe(<16 x float> %x, <16 x float> %y) "prefer-vector-width"="512" {{
  %z = fmul <16 x float> %x, %y
  ret <16 x float> %z
}}
"""


@cache
def vector_instructions() -> str | None:
    """The widest vector instructions that this CPU has; None where it has others, or none.

    NumPy is asked, which knows at once. LLVM would know best, but loading Numba to ask takes
    longer than some of the choices that depend on this save.
    """
    try:
        features = import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):  # NumPy does not promise to tell
        return None
    return next((name for name, key in _VECTORS.items() if features.get(key)), None)


@cache
def vector_bytes(triple: str, cpu: str, features: str) -> int:
    """Bytes in the vector registers of a CPU, as LLVM sees it.

    Read off the code that LLVM writes for this CPU, since it alone knows what each name of a
    CPU implies. The CPU that runs this has no say: compiled code may come from a cache that
    machines share.
    """
    binding = import_module("llvmlite.binding")
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    with binding.parse_assembly(_PROBE.format(triple=triple)) as module:
        code = machine.emit_assembly(module)
    return 64 if "zmm" in code else 32 if "ymm" in code else 16


@cache
def _is_wide(cpu: str | None, features: str | None, avx: str | None) -> bool:
    """Whether code is made for AVX-512, where Numba is told `_TOLD_NUMBA`, or some of it."""
    if cpu is None and features is None and avx is None:
        return vector_instructions() == "AVX-512"
    binding = import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    if features is None:
        features = _features(cpu, avx)
    if cpu is None:
        cpu = binding.get_host_cpu_name()
    return vector_bytes(binding.get_process_triple(), cpu, features) == 64


def _features(cpu: str | None, avx: str | None) -> str:
    """What Numba takes where it is told no features: this CPU's, whatever the name.

    But none for the name "generic"; and without those of AVX where NUMBA_ENABLE_AVX is 0, which is
    the default on some CPUs. As in `numba.core.config` and `numba.core.codegen`, which take too
    long to load.
    """
    if cpu is not None and cpu.lower() == "generic":
        return ""
    binding = import_module("llvmlite.binding")
    try:
        found = binding.get_host_cpu_features()
    except RuntimeError:  # LLVM cannot tell
        return ""
    if avx is None:
        is_on = (cpu or binding.get_host_cpu_name()) not in _AVX_IS_SLOW
    else:
        try:
            is_on = int(avx) != 0
        except ValueError:  # no number: Numba warns, and leaves it on
            is_on = True
    if not is_on:
        found.update({name: False for name in found if name.startswith("avx")})
    return str(found.flatten())


def measured(*, wide: T, narrow: T) -> T:
    """One of two measurements of the same thing: with AVX-512, or without.

    `wide` was measured on a Xeon with AVX-512 at 2.8 GHz, `narrow` on an EPYC (Zen 3) with
    AVX2, both with two cores, unless it says otherwise where it is used. Zen 4, which has AVX-512,
    found no other values better (benchmarks/results/constants.md). CPUs of other kinds are taken
    for the latter. What Numba is told to compile for (NUMBA_CPU_NAME, NUMBA_CPU_FEATURES,
    NUMBA_ENABLE_AVX) counts more than this CPU.
    """
    return wide if _is_wide(*map(os.environ.get, _TOLD_NUMBA)) else narrow
