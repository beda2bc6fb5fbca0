"""Histories of the code before the inside of the library was rebuilt, and how they compare.

`before.json` was recorded at commit 0e166b6, in a worktree of its own ::

    git worktree add /tmp/before 0e166b6
    cp -r tests/histories /tmp/before/tests
    cd /tmp/before && PYTHONPATH=src:. python -m tests.histories.before

Two things were counted in another way there, and nothing else is adjusted:

- The start was an iteration for solvers that look at it first (L-BFGS, Newton-CG), so that they
  were recorded with `max_iter` one larger, and chains of them with `after` one larger; numbers
  of iterations are compared without it.
- Solvers that do not look at it (ADMM, SGD) did not yield it, so that the record of the start,
  the one that costs no pass, is left out of what is stored now.

Of the 146 cases that the old code can run, 28 are in `ANEW`. The other 118 agree to the tolerance
of the case, 113 of them bit for bit on the machine they were recorded on. Reads agree too, but for
those in `COUNTED`. Compared are F, the gradient's norm, the norm of W and one random projection of
it, not W entry by entry.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.histories import cases
from tests.histories.solvers import SOLVERS
from tests.histories.traces import Columns, history

BEFORE = Path(__file__).with_name("before.json")

Stored = Mapping[str, Sequence[float | None]]

_CURVATURE = (
    "L-BFGS with a preconditioner follows the curvature by another rule (decision 17), which came "
    "in the same commit and cannot be switched off: that nothing else differs is not shown"
)

#: Cases whose iterates were meant to change, with the reason: recorded anew at the rebuilding.
ANEW: dict[str, str] = {
    **dict.fromkeys(
        [
            *("lbfgs_gram-" + name for name in ["dense", "float32", "operator", "sparse"]),
            *("lbfgs_gram-" + name for name in ["sparse_fold", "weighted", "wide_sparse"]),
            *("lbfgs_jacobi-" + name for name in ["blocks", "gradient", "large_sparse", "soft"]),
            "lbfgs_jacobi-sparse",
            "row_space-wide_soft",
            *("lbfgs_sample-" + name for name in ["dense", "fold", "sparse_weighted"]),
            "fit-lbfgs",
            *("cv-" + name for name in ["dense", "large", "lbfgs_gram", "soft", "sparse", "wide"]),
            *("path-" + name for name in ["dense", "sparse", "wide"]),
        ],
        _CURVATURE,
    ),
    "fit-auto": "'auto' takes Newton's method for one fit of a small problem",
    "sweep-spectral": "the start, equal to ADMM's first W, can be the iterate kept: 0 instead of 1",
}

_SHARE = "a Gram matrix or triangle counts as the share of rows that have weight (decision 16)"

#: Cases with the same iterates whose reads are counted in another way, with the reason.
COUNTED: dict[str, str] = {
    **dict.fromkeys(
        [
            *("admm-" + name for name in ["fold", "large_sparse", "weighted"]),
            *("admm_adaptive-" + name for name in ["sparse_weighted", "wide_weighted"]),
            *("admm_tuned-" + name for name in ["float32_sparse", "penalised", "sparse_fold"]),
            *("admm_tuned-sparse_soft", "cholesky-weighted", "fit-admm", "fit-sgd"),
            *("newton_gram-float32_sparse", "newton_gram-sparse_soft", "qr-sparse_weighted"),
            *("sgd_gram-sparse_soft", "sgd_gram-weighted", "cholesky-fold", "qr-fold"),
            *("row_space-wide_fold", "row_space-wide_free"),
            *("chain-sparse_weighted", "chain_slow-weighted", "path-converged"),
            *("spectral-fold", "spectral-penalised", "spectral_auto-sparse_weighted"),
        ],
        _SHARE,
    ),
    **dict.fromkeys(
        [
            *(name + "-wide" for name in ["admm_tuned", "chain", "lbfgs_gram", "newton_gram"]),
            "row_space-wide",
        ],
        "the W-step of rows in memory is by n × n from fewer columns on, and reads X twice",
    ),
    "path-soft": "the loop reads X once at each of the three starts, for their records",
}

#: Names of cases whose solver did not yield its start.
LATE = ("admm", "cholesky", "qr", "woodbury", "pcg", "spectral", "sgd", "sweep")
LATE_NAMES = ("fit-admm", "fit-sgd", "cv-admm", "cv-admm_sparse", "cv-sgd", "path-soft")


def load() -> dict[str, dict[str, list[float | None]]]:
    """The columns before, by case."""
    found: dict[str, dict[str, list[float | None]]] = json.loads(BEFORE.read_text())
    return found


def is_late(name: str) -> bool:
    """Whether the case's solver did not yield its start."""
    return name.startswith(LATE) or name in LATE_NAMES


def as_counted_now(name: str, columns: Stored) -> dict[str, list[float | None]]:
    """Columns from before, the numbers of iterations without the start."""
    start = 0 if is_late(name) else 1
    return {
        key: [x if x is None or key != "iterations" else x - start for x in column]
        for key, column in columns.items()
    }


def without_start(stored: Stored) -> dict[str, list[float | None]]:
    """Columns without the records of a start that has cost no pass."""
    passes = stored.get("passes", [])
    kept = [i for i, count in enumerate(passes) if count != 0]
    return {
        name: [column[i] for i in kept] if len(column) == len(passes) else list(column)
        for name, column in stored.items()
    }


def _trace(name: str, case: cases.Case) -> Callable[[], Columns]:
    """The same steps, for the code that counted the start as one."""
    trace: Any = case.trace
    if is_late(name):
        return case.trace
    if name not in cases.ESTIMATORS:
        problem, solver, iterations = trace.args
        starts = 2 if solver in ("row_space", "chain_newton") else 1
        return partial(history, problem, solver, iterations + starts)
    more = {
        key: trace.keywords[key] + 1 for key in ("iterations", "max_iter") if key in trace.keywords
    }
    return partial(trace.func, *trace.args, **{**trace.keywords, **more})


def main() -> None:
    """Record every case that this code can run."""
    from admm_softmax import LBFGS, NewtonCG
    from admm_softmax.solvers.row_space import RowSpace
    from tests.histories.record import as_json

    inner, jacobi = LBFGS(20, "gram"), LBFGS(preconditioner="jacobi")
    SOLVERS["row_space"] = lambda: RowSpace(inner).then(inner, after=2)
    SOLVERS["chain_newton"] = lambda: jacobi.then(NewtonCG(), after=2)
    found = {}
    for name, case in cases.CASES.items():
        if sys.argv[1:] and not name.startswith(tuple(sys.argv[1:])):
            continue
        try:
            found[name] = as_json(_trace(name, case)())
        except ImportError as error:
            print(f"{name}: {error}")
    lines = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found)]
    BEFORE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
