"""What constants that were measured would better be on this CPU.

::

    python benchmarks/constants.py                          # the values and tasks of SWEEPS
    python benchmarks/constants.py TURNED AHEAD             # some of them
    python benchmarks/constants.py TURNED=96,192 k100 k1000 # other values, or other tasks

A constant is set in one module of the library (tests/test_constants.py sees to that). For each
value a copy of the sources has it set to that value, and the copies do a task of `turns.py` in
turns with each other and with the library as it is. Prints milliseconds, medians over the rounds,
and names the value that is most faster than the library, if that is more than SCATTER: the median
of ratios of a round, the lesser one of wall and CPU time. Two constants that are set together are
written A+B=1+2,3+4.
"""

import argparse
import ast
import shutil
import tempfile
from pathlib import Path

import numpy as np
from turns import take_turns

ROOT = Path(__file__).resolve().parents[1]
#: Differences below this are the machine's.
SCATTER = 0.03

#: Values to compare, and tasks that show the difference.
SWEEPS = {
    # Tiles and blocks of compiled passes.
    "TURNED": ("64,96,128,192,256", "k30 k100 k1000 thin"),
    "CHUNK_BYTES": ("1024,1536,2048,3072", "large pass-20000x768x10"),
    "ROWS_AHEAD": ("2,4,8,12", "large"),
    "GROUPS_TOGETHER": ("1,2,3", "large pass-45000x768x20"),
    "LEAST_BLOCK_ROWS": ("8,16,32,64", "large"),
    "FUSED_BYTES": ("262144,524288,1048576", "pass-45000x768x10"),
    "PANELS_BLOCK": ("64,128,256", "k100 k1000 thin"),
    "TILE_BYTES": ("16384,32768,65536", "k100 admm-20000x500x100"),
    "MANY_CLASSES": ("14,30,60", "pass-45000x768x14 pass-45000x768x20 k30 k50"),
    "COLUMNS_PER_CLASS": (
        "1,6,12,20",
        "pass-200000x16x10 thin pass-100000x100x10 pass-50000x200x10",
    ),
    "AHEAD": ("0,4,8,12,16,24", "sparse-10000x30000x20 sparse-50000x100000x5"),
    "GATHERED": ("4,8,16", "sparse-10000x30000x58 sparse-10000x30000x200"),
    "NARROW_BYTES": ("256,1024,2048", "thin pass-50000x200x10 pass-50000x400x10"),
    # Sums of the groups of rows.
    "SUMMED_TOGETHER": ("16384,65536,262144", "pass-2000x7056x10 pass-5000x768x300"),
    "LARGE_SUM_ROWS": ("512,1024,2048", "pass-4000x768x100 pass-5000x384x1000"),
    "BLOCK_BYTES": ("262144,1048576,4194304", "pass-1500x500x10 pass-5000x64x8"),
    # NumPy or compiled code.
    "COMPILED_FROM_PRODUCTS+COMPILED_FROM_SCORES": (
        "1+1,1e12+1e12",
        "pass-2000x500x10 pass-4000x500x10 pass-8000x500x10 pass-16000x500x10 pass-10000x50x5 "
        "pass-20000x50x10 pass-20000x10x10 fit-8000x500x10 fit-16000x50x10",
    ),
    "LOADED_FROM_PRODUCTS+LOADED_FROM_SCORES": (
        "1+1,1e12+1e12",
        "loaded-100x16x3 loaded-300x64x10 loaded-1000x16x3 loaded-1000x64x10 loaded-3000x16x3 "
        "loaded-1797x64x10",
    ),
    "COMPILED_FROM_ENTRIES": ("1,10**15", "widen-4000x500 widen-40000x500"),
    "COMPILED_FROM_FEATURES": ("1,10**15", "maps-500x28x9 maps-500x28x13"),
    # Threads.
    "WORTH_THREADS": (
        "0,1e15",
        "pass-2500x50x10 pass-5000x50x10 pass-10000x50x10 pass-20000x50x10 pass-3000x800x10 "
        "pass-1000x192x50",
    ),
    "WORTH_BLAS_THREADS": (
        "0,1e15",
        "fit-600x300x3 fit-5000x300x5 fit-5000x500x5 fit-3000x800x10 fit-5000x800x5 "
        "fit-7000x1500x5",
    ),
    "LEAST_COLUMNS": ("2,5,10,64", "solve-3000x10 solve-3000x50"),
    "MOST_COLUMNS": ("16,32,64,128", "solve-3000x200"),
    # Choices of solvers.
    "THIN": ("1.2,1.5,2.5", "fit-5000x800x2 fit-5000x1200x2 fit-6000x1500x2 fit-6000x2500x5"),
    "NEWTON_OPERATIONS": (
        "0,1e15",
        "fit-iris fit-wine fit-cancer fit-300x10x3 fit-300x20x5 fit-500x30x4 fit-1000x20x5 "
        "fit-2000x60x2 fit-2000x100x2",
    ),
    "SHARE": (
        "0,0.2,0.35,0.6,1.0",
        "fit-tall fit-tall-two fit-embedding fit-middle embed-100000x200x10",
    ),
    "SETS_SPACING": (
        "1,2,4,8,16",
        "path-images path-tall path-embedding folds-images folds-tall folds-embedding",
    ),
}


def place_of(name, root):
    """The module that sets a constant, and the line after which it is set."""
    for path in sorted((root / "src").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            found = ast.walk(node) if isinstance(node, ast.Assign | ast.AnnAssign) else ()
            if any(isinstance(n, ast.Name) and n.id == name and _is_set(n) for n in found):
                return path, node.end_lineno
    raise SystemExit(f"no module of the library sets {name}")


def _is_set(name):
    return isinstance(name.ctx, ast.Store)


def copy_with(names, values, folder):
    """A copy of the sources in which these constants have these values."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name, value in zip(names, values, strict=True):
        module, line = place_of(name, folder)
        lines = module.read_text(encoding="utf-8").splitlines()
        lines.insert(line, f"{name} = {value}")
        module.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def sweep(names, settings, tasks, rounds):
    """Compare the settings, and the library as it is, by each of the tasks."""
    labels = ["as it is", *("+".join(values) for values in settings)]
    print(f"\n{'+'.join(names)}\n\n| task | {' | '.join(labels)} | |")
    print("|---" * (len(labels) + 2) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        trees = [ROOT] + [
            copy_with(names, values, Path(folder) / str(k)) for k, values in enumerate(settings)
        ]
        for task in tasks:
            times = take_turns(trees, task, rounds)
            cells = " | ".join(f"{1e3 * wall:.3g}" for wall in np.median(times[:, :, 0], axis=0))
            gains = np.median(times[:, :1] / times, axis=0).min(axis=1)
            best = int(gains.argmax())
            found = f"{labels[best]}: {gains[best]:.2f}" if gains[best] > 1 + SCATTER else ""
            print(f"| {task} | {cells} | {found} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("asked", nargs="*", help="constants, with values; tasks")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_intermixed_args()
    constants = [word for word in arguments.asked if word.split("=")[0].isupper()]
    tasks = [word for word in arguments.asked if word not in constants]
    for constant in constants or SWEEPS:
        name, _, values = constant.partition("=")
        usual = SWEEPS.get(name, ("", ""))
        settings = [value.split("+") for value in (values or usual[0]).split(",")]
        sweep(name.split("+"), settings, tasks or usual[1].split(), arguments.rounds)


if __name__ == "__main__":
    main()
