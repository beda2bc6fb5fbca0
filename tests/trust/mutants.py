"""Break the library in one place at a time, and see whether the tests notice.

    python -m tests.trust.mutants [name ...]

Each mutant is one change in a copy of the source. The tests that should notice run against the copy
until the first fails; before any mutant they run against the unchanged copy and must pass. Prints a
table in Markdown, and fails if a mutant survives.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutant:
    """A change of one line, and the tests that should notice."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


ZSTEP = ("tests/kernels/test_zstep.py",)
ADMM = ("tests/solvers/test_admm.py",)
PROBLEM = ("tests/test_problem.py",)
TIKHONOV = (
    "tests/penalty/test_tikhonov.py",
    "tests/estimators/test_operators_and_references.py",
    "tests/estimators/test_against_scikit_learn.py",
)
FOLDS = ("tests/path/test_folds.py",)
PATH = ("tests/path/test_path.py",)
COMPILED = ("tests/kernels/test_as_python.py",)
PASSES = ("tests/kernels/test_passes_as_python.py",)
STEPS = ("tests/estimators/test_dropin.py::test_one_step_per_fit_leads_to_a_model",)

MUTANTS = (
    Mutant("z-step: sign of ρ(z − v)", "kernels/zstep.py",
           "minus_labels(P, labels) + rho * (Z - V)", "minus_labels(P, labels) - rho * (Z - V)", ZSTEP),
    Mutant("z-step: rank-one term dropped", "kernels/zstep.py",
           "G / (P + rho) + q * common[:, None]", "G / (P + rho)", ZSTEP),
    Mutant("z-step: hard rows left unsolved", "kernels/zstep.py",
           "rows = np.flatnonzero(hard)", "rows = np.flatnonzero(hard)[:0]", ZSTEP),
    Mutant("compiled z-step: sign of the labels", "kernels/compiled/zstep.py",
           "g = (p - C[k, t]) + rho", "g = (p + C[k, t]) + rho", COMPILED),
    Mutant("dual update: relaxation's sign", "solvers/admm.py",
           "(A + (gamma - 1.0) * now.A - gamma * pull_back) / rho",
           "(A - (gamma - 1.0) * now.A - gamma * pull_back) / rho", ADMM),
    Mutant("dual update: not divided by ρ", "kernels/rows.py",
           "return minus_labels(P, labels) / rho", "return minus_labels(P, labels)", ADMM),
    Mutant("W-step: sign of the dual", "solvers/admm.py",
           "step.solve(rho * now.B + now.A + pull, now.W)",
           "step.solve(rho * now.B - now.A + pull, now.W)", ADMM),
    Mutant("W-step: reference left out", "solvers/admm.py",
           "step.solve(rho * now.B + now.A + pull, now.W)",
           "step.solve(rho * now.B + now.A, now.W)", ADMM),
    Mutant("dual of a given start forgotten", "solvers/admm.py",
           'if state["dual_is_zero"] and not W.any():', "if not W.any():", STEPS),
    Mutant("compiled pass: last rows left out", "kernels/compiled/folds.py",
           "if waiting >= enough or (first + block >= stop and not more):", "if waiting >= enough:", PASSES),
    Mutant("weights: not normalised", "problem.py",
           "return design.place(s / total), total", "return design.place(s), total", PROBLEM),
    Mutant("weights: ignored in the gradient", "kernels/rows.py",
           "R = minus_labels(P, labels) * weights[:, None]\n    sums = _loss_and_accuracy",
           "R = minus_labels(P, labels) / len(weights)\n    sums = _loss_and_accuracy", PROBLEM),
    Mutant("intercept: always penalised", "penalty/tikhonov.py",
           "scale[n_features:] = penalised", "scale[n_features:] = True", TIKHONOV),
    Mutant("intercept: never penalised", "penalty/tikhonov.py",
           "scale[n_features:] = penalised", "scale[n_features:] = False", TIKHONOV),
    Mutant("folds: matrix added, not subtracted", "path/folds.py",
           "np.subtract(whole, part, out=part", "np.add(whole, part, out=part", FOLDS),
    Mutant("folds: weights of the rest not restored", "path/folds.py",
           "np.divide(part, 1.0 - design.total(w), out=part", "np.divide(part, 1.0, out=part", FOLDS),
    Mutant("path: starts extrapolated backwards", "path/warm_starts.py",
           "W_last + share * (W_last - W_before)", "W_last - share * (W_last - W_before)", PATH),
    Mutant("path: every fit starts from zero", "path/warm_starts.py",
           "starts = [trail.ahead(alpha) for trail in trails]", "starts = [None for _ in trails]", PATH),
)  # fmt: skip


def copy_tree(folder: Path) -> Path:
    """The source and its tests, in a folder of their own."""
    for part in ("src", "tests", "docs", "pyproject.toml", "README.md"):
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / part)
    return folder


def run_tests(folder: Path, tests: tuple[str, ...]) -> tuple[bool, str]:
    """Whether they pass, and the first that failed."""
    settings = {
        "PYTHONPATH": str(folder / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / ".hypothesis"),
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    done = subprocess.run(
        [*command, *tests],
        cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):  # tests that cannot even be collected have noticed nothing
        sys.exit(f"{' '.join(tests)} cannot run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    name = failed[0].split(" - ")[0].rpartition("::")[2] if failed else ""
    return done.returncode == 0, name or done.stdout.strip()[-200:]


def check(mutant: Mutant) -> tuple[Mutant, bool, str, float]:
    """Whether the tests notice, which of them did, and the seconds it took."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as root:
        folder = copy_tree(Path(root))
        file = folder / "src" / "admm_softmax" / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) < 1:
            sys.exit(f"{mutant.what}: {mutant.file} no longer has {mutant.old!r}")
        file.write_text(text.replace(mutant.old, mutant.new, 1), encoding="utf-8")
        passed, which = run_tests(folder, mutant.tests)
    return mutant, not passed, which, time.monotonic() - begin


def main(names: list[str]) -> int:
    """Run the mutants whose description contains one of these words, or all."""
    chosen = [m for m in MUTANTS if not names or any(name in m.what for name in names)]
    sets = list(dict.fromkeys(mutant.tests for mutant in chosen))
    with tempfile.TemporaryDirectory(prefix="mutant-") as root, ThreadPoolExecutor(2) as pool:
        folder = copy_tree(Path(root))
        for passed, which in pool.map(lambda tests: run_tests(folder, tests), sets):
            if not passed:
                print(f"the tests fail without any mutant: {which}")
                return 1
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(check, chosen))
    print("| what is broken | where | noticed | by | seconds |\n|---|---|---|---|---|")
    for mutant, noticed, which, seconds in results:
        verdict = "yes" if noticed else "**no**"
        by = f"`{which}`" if noticed else ""
        print(f"| {mutant.what} | `{mutant.file}` | {verdict} | {by} | {seconds:.0f} |")
    return int(not all(noticed for _, noticed, _, _ in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
