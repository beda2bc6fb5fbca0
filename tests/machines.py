"""The suite on other machines, as far as one machine can stand for them.

    python tests/machines.py [name ...]

CPU profiles set what BLAS, NumPy and Numba compile for; environments have the oldest
dependencies that pyproject.toml allows on the oldest Python, and the newest Python that is
found. What cannot run here is skipped by name. Ends with a line per profile, and fails if one of
them did.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST = "3.11"
NEWER = ("3.14", "3.13", "3.12")

#: Tests that a CPU can decide; the others read files, draw or look at words.
ON_A_CPU = [
    "tests/kernels",
    "tests/contracts",
    "tests/solvers",
    "tests/path",
    "tests/penalty",
    "tests/histories",
    "tests/features",
    "tests/estimators",
    "tests/targets",
    "tests/test_compilation.py",
    "tests/test_cpu.py",
    "tests/test_half_precision.py",
    "tests/test_problem.py",
    "tests/test_parallel.py",
    "tests/test_extending.py",
]

#: NumPy must not use these where an older CPU is played.
AVX = "AVX AVX2 FMA3 F16C AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"


#: Without it Numba adds this CPU's own features to the name of another, and nothing is played.
NO_FEATURES = {"NUMBA_CPU_FEATURES": ""}


@dataclass(frozen=True)
class Cpu:
    """A CPU to play on this one: what it needs, and what makes libraries believe in it."""

    name: str
    needs: frozenset[str] = frozenset()
    settings: dict[str, str] = field(default_factory=dict)


CPUS = (
    Cpu("haswell", frozenset({"avx2", "fma"}), {
        "OPENBLAS_CORETYPE": "Haswell", "NUMBA_CPU_NAME": "haswell", **NO_FEATURES,
    }),
    Cpu("sse", frozenset(), {
        "OPENBLAS_CORETYPE": "Nehalem", "NUMBA_CPU_NAME": "nehalem", **NO_FEATURES,
        "NPY_DISABLE_CPU_FEATURES": AVX,
    }),
    Cpu("skylakex", frozenset({"avx512f", "avx512bw", "avx512vl"}), {
        "OPENBLAS_CORETYPE": "SkylakeX", "NUMBA_CPU_NAME": "skylake-avx512", **NO_FEATURES,
    }),
    Cpu("one-thread", frozenset(), {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}),
)  # fmt: skip


def cpu_flags() -> set[str]:
    """What this CPU can do, in Linux's words; unknown elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.split()}


def disable_what_is_there(settings: dict[str, str]) -> dict[str, str]:
    """NumPy complains about features that it was not built with, or that are not there."""
    wanted = settings.get("NPY_DISABLE_CPU_FEATURES", "").split()
    if not wanted:
        return settings
    code = (
        "from numpy._core._multiarray_umath import __cpu_dispatch__ as d, __cpu_features__ as f;"
        "print(*[name for name in d if f.get(name)])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    known = [name for name in found.stdout.split() if name in wanted or name.startswith("X86_V")]
    return {**settings, "NPY_DISABLE_CPU_FEATURES": " ".join(known)}


def run_cpu(cpu: Cpu) -> str:
    """Run the suite as on this CPU."""
    missing = sorted(cpu.needs - cpu_flags())
    if missing:
        return f"skipped: this CPU has no {', '.join(missing)}"
    return pytest(sys.executable, ON_A_CPU, disable_what_is_there(cpu.settings))


def run_environment(folder: str, version: str, constraints: str | None) -> str:
    """Run the whole suite in an environment of its own."""
    python = find_python(version)
    if python is None:
        return f"skipped: there is no Python {version}"
    bin_folder = ROOT / folder / "bin"
    stamp = ROOT / folder / ".installed"
    sources = [ROOT / "pyproject.toml", *([ROOT / constraints] if constraints else [])]
    if not stamp.exists() or any(s.stat().st_mtime > stamp.stat().st_mtime for s in sources):
        try:
            install(python, ROOT / folder, constraints)
        except subprocess.CalledProcessError as error:
            return f"skipped: it cannot be installed here ({error})"
        stamp.touch()
    return pytest(str(bin_folder / "python"), [], {})


def install(python: str, folder: Path, constraints: str | None) -> None:
    """Make an environment with the library and what its tests need."""
    subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", "pip"], check=True)
    chosen = ["--constraint", constraints] if constraints else []
    subprocess.run([*pip, *chosen, "--editable", ".[dev]"], check=True, cwd=ROOT)


def find_python(version: str) -> str | None:
    """A Python of this version that starts."""
    candidates = [f"python{version}"]
    candidates += sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    for candidate in candidates:
        path = shutil.which(candidate)
        if (
            path
            and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return path
    return None


def pytest(python: str, tests: list[str], settings: dict[str, str]) -> str:
    """Run pytest and return its last line."""
    command = [python, "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider", *tests]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith(("FAILED", "ERROR", "E  ")):
            print("   ", line.rstrip(), flush=True)
    code = process.wait()
    return f"{'passed' if code == 0 else 'FAILED'}: {lines[-1].strip('= ') if lines else ''}"


def main(names: list[str]) -> int:
    """Run the profiles with these names, or all."""
    newest = next((version for version in NEWER if find_python(version)), NEWER[0])
    profiles = {cpu.name: (run_cpu, cpu) for cpu in CPUS}
    profiles["oldest"] = (run_environment, ".venv-oldest", OLDEST, "constraints-oldest.txt")
    profiles["newest"] = (run_environment, ".venv-newest", newest, None)
    unknown = [name for name in names if name not in profiles]
    if unknown:
        sys.exit(f"there is no profile {unknown[0]!r}; there are {', '.join(profiles)}")
    results = {}
    for name in names or profiles:
        print(f"--- {name}", flush=True)
        function, *arguments = profiles[name]
        begin = time.monotonic()
        results[name] = f"{function(*arguments)} ({(time.monotonic() - begin) / 60:.1f} min)"
        print(f"    {results[name]}", flush=True)
    print("\nOther machines")
    for name, result in results.items():
        print(f"  {name:12s} {result}")
    return int(any(result.startswith("FAILED") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
