"""Compiled functions for 64-bit ARM, as LLVM writes them on any machine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding

from admm_softmax.kernels.compiled import target
from tests.kernels.for_arm import CPU, TRIPLE

#: What code may call besides code of ours: functions of C's library.
OF_C = {"memset", "memcpy", "memmove", "exp", "log"}
#: One of every kind: names begin so, after the package's.
KINDS = [
    *(
        f"compiled.folds._fold_dense.{dtype}.{state}{way}"
        for dtype in ("float64", "float32", "float16", "bfloat16")
        for state in ("float32", "float64")
        for way in ("", ".panels")
    ),
    "compiled.folds._fold_dense.float32.float64.single",
    "compiled.folds._fold_dense.float32.float64.panels.single",
    *(f"compiled.folds._fold_csr.{dtype}.int32" for dtype in ("float32", "float64")),
    *(f"compiled.gather.multiply.{dtype}" for dtype in ("float32", "float64")),
    *(f"compiled.gather._add_columns.{dtype}.int64" for dtype in ("float32", "float64")),
    "compiled.folds._run_scores",
    "compiled.folds.solve_rows",
    *(f"compiled.rows.{name}" for name in ("predict", "gradient", "linearise", "admm", "misfit")),
    "compiled.single_rows.gradient",
    "compiled.targets.two_class_rows",
    "compiled.targets.softmax_rows",
    "compiled.zstep.solve_tile",
    "compiled.halves._widen",
    "compiled.halves._pack_halves",
    *(f"compiled.substitution.{way}.float64" for way in ("_down", "_up")),
    "compiled.tanh._tanh",
    "coordinates.descend_entries",
    "coordinates.descend_groups",
    "coordinates.bound_rows",
]
#: X W by tiles and by panels, and Xᵀ R.
PRODUCTS = "compiled.thin._product", "compiled.panels.product_by_panels"
PRODUCTS += ("compiled.thin._add_transpose_product",)


def has_arm():
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        binding.Target.from_triple(TRIPLE)
    except RuntimeError:
        return False
    return True


def called(code):
    """What a function calls by name that is not in the same assembly."""
    here = set(re.findall(r'^"?([^\s"]+)"?:', code, re.MULTILINE))
    names = re.findall(r'\b(?:b|bl)\t"?([^\s"]+)', code)
    names += re.findall(r':(?:abs_g\d\w*|got\w*|lo12|pg_hi21):"?([^\s"\]]+)', code)
    return {name for name in names if name not in here and not name.startswith(".")}


@pytest.mark.skipif(not has_arm(), reason="this LLVM has no AArch64 target")
@pytest.mark.skipif("NUMBA_CPU_NAME" in os.environ, reason="the CPU that is played has no part")
def test_every_function_compiles_for_64_bit_arm(tmp_path):
    assert target.vector_bytes(TRIPLE, CPU, "") == 16
    assert target.vector_registers(TRIPLE, 16) == 32
    assert target.converts_halves(TRIPLE, CPU, "")
    known = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.for_arm"], capture_output=True, text=True, check=True,
        env={**known, "NUMBA_CACHE_DIR": str(tmp_path)}, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    found = json.loads(done.stdout)
    ours = [name.removeprefix("admm_softmax.kernels.") for name in found]
    assert [kind for kind in KINDS if not any(name.startswith(kind) for name in ours)] == []
    solve_rows = "admm_softmax.kernels.compiled.folds.solve_rows"
    assert called(found["admm_softmax.kernels.compiled.folds.rows_solver()"]) == {solve_rows}
    for name, code in found.items():
        assert "\tret\n" in code, name
        assert called(code) <= OF_C | set(found), name
    for of_ours in PRODUCTS:
        for dtype, lanes in {"float32": "4s", "float64": "2d", "float16": "4s"}.items():
            code = found[f"admm_softmax.kernels.{of_ours}.{dtype}"]
            assert len(re.findall(rf"fmla\tv\d+\.{lanes}", code)) >= 20, "a tile of 4 × 5 sums"
            spills = re.findall(r"(?:str|stp)\tq\d+, .*\[sp", code)
            assert len(spills) < 20, (of_ours, dtype, spills)
