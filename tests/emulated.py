"""The suite on 64-bit ARM, emulated on a machine of another kind.

    python3.11 tests/emulated.py [--seconds S] [--folder F] [tests ...]

Needs Linux, qemu-user-static, debootstrap, root (debootstrap asks for it) and Python 3.11, for
which the wheels are chosen. Everything is put into one folder, to be deleted at will: a Debian
root that is unpacked and never booted, the wheels of the dependencies for aarch64, and what Numba
compiles. Programs that the tests start are emulated too. Test files run one by one, each for at
most S seconds; ends with a line per file and the sums, and fails if a test did.

An emulator shows wrong code, wrong results and assumptions about x86. It shows nothing about
speed, and on x86 little about the order of memory accesses, which is stricter there than on ARM.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.machines import ON_A_CPU, ROOT

SUITE = "bookworm"  # its Python is 3.11, as constraints.txt supposes
CPU = "neoverse-n1"  # Graviton 2: NEON of 128 bits with float16, no SVE
GLIBC = (17, 24, 26, 27, 28, 31, 34)  # wheels for 2.x or older run on Debian 12

PYTHON = """#!/bin/sh
exec qemu-aarch64-static -cpu {cpu} -L '{root}' '{root}/usr/bin/python3.11' "$@"
"""
#: The emulated Python would name its own file, which this machine cannot start.
NAME_THE_EMULATOR = "import sys\nsys.executable = sys._base_executable = {python!r}\n"


def make_root(root: Path) -> None:
    """Unpack Debian's packages for arm64, and keep /usr, where libraries and Python are.

    Paths that exist in the root replace the machine's own for emulated programs; so a root with
    /tmp, /proc or /etc would hide what tests look at.
    """
    unfinished = root.with_name("unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = ["debootstrap", "--foreign", "--arch=arm64", "--variant=minbase"]
    subprocess.run([*command, "--include=python3", SUITE, str(unfinished)], check=True)
    for package in sorted((unfinished / "var/cache/apt/archives").glob("*.deb")):
        files = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, check=True
        ).stdout
        unpack = ["tar", "-x", "--keep-directory-symlink", "-C", str(unfinished)]
        subprocess.run(unpack, input=files, check=True)
    for entry in unfinished.iterdir():
        if entry.is_symlink():
            if entry.readlink().parts[0] != "usr":  # /lib and the like lead there
                entry.unlink()
        elif entry.name != "usr":
            shutil.rmtree(entry)
    unfinished.rename(root)


def install(site: Path, python: Path) -> None:
    """Unpack the wheels that the suite needs, in the versions of constraints.txt."""
    unfinished = site.with_name("unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in GLIBC]
    platforms += ["--platform=manylinux2014_aarch64"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(unfinished),
         "--only-binary=:all:", "--python-version=3.11", "--implementation=cp",
         "--abi=cp311", "--abi=abi3", "--abi=none", *platforms,
         "--constraint=constraints.txt", ".[dev]"],
        cwd=ROOT, check=True,
    )  # fmt: skip
    shutil.rmtree(unfinished / "admm_softmax")  # the tests import the checkout's
    (unfinished / "sitecustomize.py").write_text(NAME_THE_EMULATOR.format(python=str(python)))
    unfinished.rename(site)


def prepare(folder: Path) -> Path:
    """Make the emulated Python, or find it made; returns the program that starts it."""
    missing = [tool for tool in ("qemu-aarch64-static", "debootstrap") if not shutil.which(tool)]
    if missing or sys.version_info[:2] != (3, 11):
        sys.exit(f"needs Python 3.11, and cannot find: {', '.join(missing) or 'nothing else'}")
    folder.mkdir(parents=True, exist_ok=True)
    root, site, python = folder / "root", folder / "site", folder / "python"
    if not root.exists():
        make_root(root)
    if not site.exists():
        install(site, python)
    python.write_text(PYTHON.format(cpu=CPU, root=root))
    python.chmod(0o755)
    return python


def run(python: Path, tests: str, seconds: float) -> Counter[str]:
    """Run a file of tests; returns pytest's counts, and whether it was not over in time."""
    settings = {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(python.with_name("site"))]),
        "NUMBA_CACHE_DIR": str(python.with_name("cache")),
        # The emulator may show this machine's /proc/cpuinfo, from which LLVM would guess.
        "NUMBA_CPU_NAME": CPU,
    }
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    late = {}
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        late = {"not over in time": 1}
        process.send_signal(signal.SIGINT)  # pytest then tells what it has run
        output, _ = process.communicate()
    lines = output.splitlines() or [""]
    for line in lines:
        if line.startswith(("FAILED", "ERROR", "E  ")):
            print("   ", line)
    counts = re.findall(r"(\d+) (passed|failed|skipped|error|xfailed)", lines[-1])
    return Counter({name: int(count) for count, name in counts} or {"error": 1}) + Counter(late)


def main() -> int:
    """Run the tests that are named, or those that a CPU can decide."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", default=ON_A_CPU, help="files or folders")
    parser.add_argument("--seconds", type=float, default=1200, help="at most, per file")
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv-arm64")
    arguments = parser.parse_args()
    python = prepare(arguments.folder.absolute())
    files = []
    for name in arguments.tests:
        folder = ROOT / name
        files += sorted(folder.rglob("test_*.py")) if folder.is_dir() else [name]
    sums: Counter[str] = Counter()
    for name in map(str, files):
        counts = run(python, name, arguments.seconds)
        sums += counts
        print(f"{name.removeprefix(f'{ROOT}/')}: {dict(counts)}", flush=True)
    print(f"\n{CPU}, emulated: {dict(sums)}")
    return int(sums["failed"] + sums["error"] > 0)


if __name__ == "__main__":
    sys.exit(main())
