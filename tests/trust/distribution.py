"""Build wheel and source archive, and check them as a user would get them: `make dist`.

Each is installed into an empty environment and passes a smoke test there, away from the source.
`twine check` reads their metadata, and the wheel's environment is listed as a CycloneDX bill of
materials. Everything is left in `dist/`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
SMOKE = """
import pathlib, sys
import numpy as np
import admm_softmax
from admm_softmax import ADMM, Problem, SoftmaxRegression, SoftmaxRegressionCV, run
assert sys.prefix in admm_softmax.__file__, admm_softmax.__file__
assert (pathlib.Path(admm_softmax.__file__).parent / "py.typed").exists()
rng = np.random.default_rng(0)
X, y = rng.standard_normal((400, 6)), np.arange(400) % 3
X[np.arange(400), y] += 3
assert SoftmaxRegression(1e-3).fit(X, y).score(X, y) > 0.9
assert SoftmaxRegressionCV(3, cv=3).fit(X, y).coef_.shape == (3, 6)
assert run(Problem.of(X, y, 1e-2), ADMM(rho=0.1)).status == "converged"
print(admm_softmax.__version__)
"""


def run(*command: str | Path, **settings: object) -> str:
    """Run a command; its output, or the end of this script with its errors."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **settings
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def build() -> list[Path]:
    """Wheel and source archive, in an empty `dist/`."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    made = sorted(DIST.glob("*.whl")) + sorted(DIST.glob("*.tar.gz"))
    assert len(made) == 2, made
    print(run(sys.executable, "-m", "twine", "check", "--strict", *made).strip())
    return made


def installed(package: Path, folder: Path) -> Path:
    """The Python of an environment that has the package and what it depends on, alone."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", package)
    return python


def smoke_test(python: Path, package: Path, folder: Path) -> str:
    """Import and fit, away from the source and without its environment; then the command.

    Without the extra `cli` the command says in a line what is missing; with it, it works.
    """
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    here = {"cwd": folder, "env": {**clean, "NUMBA_CACHE_DIR": str(folder / "numba")}}
    version = run(python, "-c", SMOKE, **here).strip()
    command = [str(folder / "bin" / "admm-softmax"), "--version"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, **here)
    assert refused.returncode, "the command works without the extra cli"
    assert "admm-softmax[cli]" in refused.stderr, refused.stderr
    run(python, "-m", "pip", "install", "--quiet", f"{package}[cli]")
    assert version in run(*command, **here)
    return version


def bill_of_materials(python: Path, wheel: Path) -> Path:
    """CycloneDX JSON beside the wheel: the library and everything installed with it."""
    path = DIST / f"{wheel.stem}.cdx.json"
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    run(*command, "--output-format", "JSON", "--output-file", path, python)
    names = {part["name"] for part in json.loads(path.read_text(encoding="utf-8"))["components"]}
    assert {"numpy", "scipy", "scikit-learn", "numba"} <= names, names
    print(f"{path.name}: {len(names)} components")
    return path


def checked(package: Path) -> str:
    """Install a package into an empty environment, and try it there; the wheel is also listed."""
    with tempfile.TemporaryDirectory(prefix="admm-softmax-") as root:
        folder = Path(root)
        python = installed(package, folder)
        if package.suffix == ".whl":
            bill_of_materials(python, package)
        return f"{package.name}: version {smoke_test(python, package, folder)} works"


def main() -> int:
    """Everything, in order."""
    wheel, archive = build()
    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(checked, (wheel, archive)):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
