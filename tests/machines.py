"""The suite on other machines, as far as one machine can stand for them.

    python tests/machines.py [--most-minutes M] [name ...]

CPU profiles set what BLAS, NumPy and Numba compile for, and are asked what they made of it;
environments have the oldest dependencies that pyproject.toml allows on the oldest Python, and the
newest Python that is found. What cannot run here is skipped by name. Ends with a line per profile
and the minutes of all, and fails if one of them did, or if they took longer than M minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    "tests/probes",
    "tests/sources",
    "tests/test_compilation.py",
    "tests/test_cpu.py",
    "tests/test_half_precision.py",
    "tests/test_problem.py",
    "tests/test_parallel.py",
    "tests/test_extending.py",
    "tests/test_lanes.py",
    "tests/test_vectors.py",
]

#: NumPy must not use these where an older CPU is played.
AVX = "AVX AVX2 FMA3 F16C AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"


#: Without it Numba adds this CPU's own features to the name of another, and nothing is played.
NO_FEATURES = {"NUMBA_CPU_FEATURES": ""}


#: What Linux, macOS and Windows call the processors that profiles with names of x86 play.
X86 = frozenset({"x86_64", "amd64"})


@dataclass(frozen=True)
class Cpu:
    """A CPU to play on this one: what it needs, and what makes libraries believe in it."""

    name: str
    needs: frozenset[str] = frozenset()
    settings: dict[str, str] = field(default_factory=dict)
    #: Architectures that it can be played on; empty for all.
    on: frozenset[str] = X86
    #: Bytes of the vectors that Numba then compiles for.
    vector_bytes: int | None = None

    def why_not(self) -> str | None:
        """Why it cannot be played here; None where it can."""
        machine = platform.machine()
        if self.on and machine.lower() not in self.on:
            return f"this is {machine}, not {' or '.join(sorted(self.on))}"
        missing = sorted(self.needs - cpu_flags())
        return f"this CPU has no {', '.join(missing)}" if missing else None


CPUS = (
    Cpu("haswell", frozenset({"avx2", "fma"}), {
        "OPENBLAS_CORETYPE": "Haswell", "NUMBA_CPU_NAME": "haswell", **NO_FEATURES,
    }, vector_bytes=32),
    Cpu("sse", frozenset(), {
        "OPENBLAS_CORETYPE": "Nehalem", "NUMBA_CPU_NAME": "nehalem", **NO_FEATURES,
        "NPY_DISABLE_CPU_FEATURES": AVX,
    }, vector_bytes=16),
    Cpu("skylakex", frozenset({"avx512f", "avx512bw", "avx512vl"}), {
        "OPENBLAS_CORETYPE": "SkylakeX", "NUMBA_CPU_NAME": "skylake-avx512", **NO_FEATURES,
    }, vector_bytes=64),
    Cpu("one-thread", on=frozenset(), settings={
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    }),
)  # fmt: skip


def cpu_flags() -> set[str]:
    """What this CPU can do, in Linux's words for x86; unknown elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.split()}


#: Prints the width of Numba's vectors, features of NumPy's, and core and threads of each OpenBLAS.
ASK = """
import json
import numpy, scipy.linalg
from numpy._core._multiarray_umath import __cpu_features__
from threadpoolctl import threadpool_info
from admm_softmax.kernels.compiled.target import VECTOR_BYTES
found = [library for library in threadpool_info() if library["internal_api"] == "openblas"]
print(json.dumps({
    "vector_bytes": VECTOR_BYTES,
    "features": [name for name, is_there in __cpu_features__.items() if is_there],
    "cores": [library["architecture"] for library in found],
    "threads": [library["num_threads"] for library in found],
}))
"""


def what_is_played(settings: dict[str, str]) -> dict[str, Any]:
    """What libraries make of these settings, in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", ASK], env={**os.environ, **settings}, cwd=ROOT,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def what_is_wrong(cpu: Cpu, settings: dict[str, str], played: dict[str, Any]) -> list[str]:
    """What libraries do otherwise than the profile wants; another BLAS than OpenBLAS is not asked."""
    wrong = []
    core, threads = (settings.get(f"OPENBLAS_{name}") for name in ("CORETYPE", "NUM_THREADS"))
    if core and any(found.lower() != core.lower() for found in played["cores"]):
        wrong.append(f"OpenBLAS runs as {', '.join(played['cores'])}, not {core}")
    if threads and any(found != int(threads) for found in played["threads"]):
        wrong.append(f"OpenBLAS has {played['threads']} threads, not {threads}")
    if cpu.vector_bytes not in (None, played["vector_bytes"]):
        wrong.append(f"Numba's vectors have {played['vector_bytes']} bytes, not {cpu.vector_bytes}")
    on = set(settings.get("NPY_DISABLE_CPU_FEATURES", "").split()) & set(played["features"])
    if on:
        wrong.append(f"NumPy uses {', '.join(sorted(on))}")
    return wrong


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
    reason = cpu.why_not()
    if reason is not None:
        return f"skipped: {reason}"
    settings = disable_what_is_there(cpu.settings)
    try:
        wrong = what_is_wrong(cpu, settings, what_is_played(settings))
    except subprocess.CalledProcessError as error:
        wrong = [error.stderr.strip().rpartition("\n")[2] or str(error)]
    if wrong:
        return f"FAILED: {'; '.join(wrong)}"
    return pytest(sys.executable, ON_A_CPU, settings)


def run_environment(folder: str, version: str, constraints: str | None) -> str:
    """Run the whole suite in an environment of its own."""
    python = find_python(version)
    if python is None:
        return f"skipped: there is no Python {version}"
    bin_folder = ROOT / folder / "bin"
    stamp = ROOT / folder / ".installed"
    sources = [ROOT / "pyproject.toml", *([ROOT / constraints] if constraints else [])]
    if not stamp.exists() or any(s.stat().st_mtime > stamp.stat().st_mtime for s in sources):
        problem = install(python, ROOT / folder, constraints)
        if problem is not None:
            return problem
        stamp.touch()
    return pytest(str(bin_folder / "python"), [], {})


def install(python: str, folder: Path, constraints: str | None) -> str | None:
    """Make an environment with the library and what its tests need; returns what stood against it."""
    venv = subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=False)
    if venv.returncode:
        return f"skipped: {python} makes no environments"
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    chosen = ["--constraint", constraints] if constraints else []
    for what in (["--upgrade", "pip"], [*chosen, "--editable", ".[dev]"]):
        done = subprocess.run(
            [*pip, *what], cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False
        )
        print(done.stderr, end="", flush=True)
        if done.returncode:
            return what_pip_says(done.stderr)
    return None


#: What pip says where it reaches no package index: of its errors, or where none has any version.
UNREACHABLE = (
    "NewConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ProxyError", "SSLError",
    "Connection refused", "Connection reset", "name resolution", "(from versions: none)",
)  # fmt: skip


def what_pip_says(errors: str) -> str:
    """Without an index nothing can be told; dependencies that do not fit together are a failure."""
    if "ResolutionImpossible" not in errors and any(word in errors for word in UNREACHABLE):
        return "skipped: the package index cannot be reached"
    lines = [line for line in errors.splitlines() if line.startswith("ERROR:")]
    # The last is a link to a page on conflicts.
    reasons = [line for line in lines if "ResolutionImpossible" not in line] or lines
    return f"FAILED: it cannot be installed: {reasons[-1] if reasons else errors.strip()[-200:]}"


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


def main(arguments: list[str]) -> int:
    """Run the profiles with these names, or all."""
    newest = next((version for version in NEWER if find_python(version)), NEWER[0])
    profiles = {cpu.name: (run_cpu, cpu) for cpu in CPUS}
    profiles["oldest"] = (run_environment, ".venv-oldest", OLDEST, "constraints-oldest.txt")
    profiles["newest"] = (run_environment, ".venv-newest", newest, None)
    parser = argparse.ArgumentParser(description="Run the suite as on other machines.")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(profiles))
    parser.add_argument(
        "--most-minutes", type=float, default=float("inf"), metavar="M",
        help="fail where all together take longer; without it the time is only printed",
    )  # fmt: skip
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in profiles]
    if unknown:
        parser.error(f"there is no profile {unknown[0]!r}; there are {', '.join(profiles)}")
    results, minutes = {}, 0.0
    for name in chosen.names or profiles:
        print(f"--- {name}", flush=True)
        function, *rest = profiles[name]
        begin = time.monotonic()
        result, taken = function(*rest), (time.monotonic() - begin) / 60
        minutes += taken
        results[name] = f"{result} ({taken:.1f} min)"
        print(f"    {results[name]}", flush=True)
    print("\nOther machines")
    for name, result in results.items():
        print(f"  {name:12s} {result}")
    is_late = minutes > chosen.most_minutes
    late = f", FAILED: more than {chosen.most_minutes:g}" if is_late else ""
    print(f"  {'all':12s} {minutes:.1f} min{late}")
    return int(is_late or any(result.startswith("FAILED") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
