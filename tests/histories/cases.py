"""Small runs whose iterates are stored: every solver, W-step strategy and kind of data.

The histories in `stored.json` are those of the library as it is. A change that is meant to leave
the algorithms alone must leave these numbers alone. Those in `before.json` were recorded with the
code before the inside of the library was rebuilt (commit 0e166b6); `before.py` says how the two
fit together, and which cases were recorded anew, and why. So that the old code can run this folder,
what is newer is imported only where it is used, and arrays are from `numpy.random.default_rng`.

Runs are short on purpose. Line searches and pairs of gradients amplify the rounding of one
iteration in the next, so that two machines that both work correctly disagree in ever more
digits; see `FEWER` for the runs where that shows early.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from admm_softmax import ADMM, LBFGS, SGD, NewtonCG
from tests.histories.problems import arrays, soft_labels, weights
from tests.histories.traces import ITERATIONS, Columns, cross_validation, fit, history, path, sweep

#: Solvers that search along lines, which amplifies rounding, do one step less.
SEARCHING = ("lbfgs", "newton", "hessian", "row_space", "chain")

#: Which solver meets which data.
RUNS: dict[str, str] = {
    "admm": "dense fortran blocks sparse weighted soft gradient no_intercept fold float32 large "
    "large_sparse",
    "admm_tuned": "dense warm sparse_soft operator penalised wide sparse_fold float32_sparse "
    "large_soft",
    "admm_adaptive": "dense sparse_weighted soft wide_weighted",
    "cholesky": "binary sparse operator weighted float32 soft fold",
    "qr": "dense sparse_weighted gradient wide soft fold",
    "woodbury": "wide wide_sparse wide_weighted no_intercept wide_soft wide_fold",
    "pcg": "dense operator",
    "pcg_rank_3": "sparse soft gradient",
    "pcg_jacobi": "weighted wide_sparse fold",
    "spectral": "dense gradient penalised fold soft",
    "spectral_auto": "sparse_weighted operator",
    "lbfgs": "dense warm sparse_soft operator fold large",
    "lbfgs_armijo": "weighted wide_sparse",
    "lbfgs_jacobi": "blocks sparse soft gradient large_sparse",
    "lbfgs_gram": "dense sparse weighted operator wide wide_sparse sparse_fold float32",
    "lbfgs_sample": "dense sparse_weighted fold",
    "newton": "dense sparse soft no_intercept large_sparse",
    "newton_jacobi": "weighted gradient",
    "newton_gram": "binary sparse_soft operator wide float32_sparse",
    "newton_sample": "penalised sparse",
    "hessian_lbfgs": "dense sparse_weighted soft fold",
    "sgd": "dense sparse_weighted fold operator",
    "sgd_gram": "weighted sparse_soft",
    "sgd_full": "dense sparse gradient",
    "row_space": "wide wide_soft wide_free wide_fold",
    "whole_newton": "dense sparse weighted soft binary fold operator",
    "admm_split": "lasso elastic_net group_lasso variation",
    "proximal": "lasso elastic_net group_lasso",
    "chain": "dense sparse_weighted operator wide",
    "chain_slow": "weighted",
    "chain_newton": "soft sparse",
}

#: Steps where rounding would grow beyond the tolerance, or where a chain looks at one W twice.
FEWER: dict[str, int] = {
    "lbfgs_jacobi-soft": 5,  # the sixth interpolates between two values of F that are close
    "chain_newton-soft": 5,
    "chain_newton-sparse": 5,
    "row_space-wide": 5,
    "row_space-wide_soft": 5,
    "row_space-wide_free": 5,
    "row_space-wide_fold": 5,
    "whole_newton-dense": 4,  # converged to rounding after that
    "whole_newton-sparse": 4,
    "whole_newton-weighted": 4,
    "whole_newton-soft": 4,
    "whole_newton-binary": 4,
    "whole_newton-fold": 4,
    "whole_newton-operator": 3,  # W_ref makes the Hessian worse conditioned
    "admm_split-lasso": 3,  # each is five iterations
    "admm_split-elastic_net": 3,
    "admm_split-group_lasso": 3,
    "admm_split-variation": 3,
    "proximal-lasso": 3,
    "proximal-elastic_net": 3,
    "proximal-group_lasso": 3,
}

#: Where the point of the case comes later, and rounding lets it.
MORE: dict[str, int] = {
    "chain_slow-weighted": 12,  # hands over when the gradient falls slowly
}

#: Double precision agrees to twelve digits and single to five, of the largest number in a column.
#: With other BLAS kernels, other vector widths in compiled passes, or X off by one bit in every
#: entry, the same code stays within a tenth of either.
TOLERANCE, SINGLE = 1e-12, 1e-5


def _rows_dense() -> tuple[Any, Any, Any]:
    return *arrays(120, 8, 3, seed=31), None


def _rows_weighted() -> tuple[Any, Any, Any]:
    return *arrays(100, 7, 4, seed=32), weights(100, seed=320)


def _rows_sparse() -> tuple[Any, Any, Any]:
    return *arrays(150, 20, 3, seed=33, density=0.3), weights(150, seed=330)


def _rows_soft() -> tuple[Any, Any, Any]:
    X, _ = arrays(90, 6, 3, seed=34)
    return X, soft_labels(90, 3, seed=340), None


def _rows_wide() -> tuple[Any, Any, Any]:
    return *arrays(45, 100, 3, seed=35), None


def _rows_large() -> tuple[Any, Any, Any]:
    """Too small to compile for one fold, large enough for three that go together."""
    return *arrays(20_000, 8, 4, seed=36), None


#: Solvers by name, and many fits that share their reads, Gram matrices and factorisations.
ESTIMATORS: dict[str, Callable[[], Columns]] = {
    "fit-auto": partial(fit, _rows_weighted, "auto", iterations=6),
    "fit-admm": partial(fit, _rows_sparse, "admm"),
    "fit-lbfgs": partial(fit, _rows_soft, "lbfgs", iterations=6),
    "fit-newton": partial(fit, _rows_dense, "newton-cg", iterations=6),
    "fit-sgd": partial(fit, _rows_weighted, "sgd"),
    # Each iterate is many steps of the small problem, and rounding grows with them.
    "fit-wide": partial(fit, _rows_wide, "auto", iterations=2),
    "cv-dense": partial(cross_validation, _rows_dense, max_iter=5),
    "cv-weighted": partial(cross_validation, _rows_weighted, max_iter=5, refit=False),
    "cv-sparse": partial(cross_validation, _rows_sparse, max_iter=5),
    "cv-soft": partial(cross_validation, _rows_soft, max_iter=5),
    "cv-wide": partial(cross_validation, _rows_wide, max_iter=1, alphas=[1.0, 0.3]),
    "cv-admm": partial(cross_validation, _rows_weighted, max_iter=5, solver=ADMM(rho=0.1)),
    "cv-admm_sparse": partial(cross_validation, _rows_sparse, max_iter=4, solver="admm"),
    "cv-lbfgs_gram": partial(cross_validation, _rows_dense, max_iter=4, solver=LBFGS(20, "gram")),
    "cv-newton": partial(cross_validation, _rows_soft, max_iter=3, solver="newton-cg"),
    "cv-sgd": partial(cross_validation, _rows_dense, max_iter=3, solver=SGD(0.1, 30)),
    "cv-large": partial(cross_validation, _rows_large, max_iter=3, alphas=[0.1, 0.01]),
    "cv-converged": partial(cross_validation, _rows_dense, tol=1e-3, solver=NewtonCG()),
    "path-dense": partial(path, _rows_dense, max_iter=5),
    "path-sparse": partial(path, _rows_sparse, max_iter=5),
    "path-soft": partial(path, _rows_soft, max_iter=6, solver=ADMM(rho=0.1)),
    "path-wide": partial(path, _rows_wide, max_iter=1, alphas=[1.0, 0.3]),
    "path-converged": partial(path, _rows_weighted, tol=1e-3),
    "sweep-cholesky": partial(sweep, [0.05, 0.5], [0.01, 0.1]),
    "sweep-spectral": partial(sweep, [0.01, 0.1, 1.0], [1e-3, 1e-2, 0.1, 1.0, 5.0]),
}


@dataclass(frozen=True)
class Case:
    """One run, what it returns column by column, and how far that may be off."""

    name: str
    trace: Callable[[], Columns]
    tolerance: float


def _steps(solver: str) -> int:
    return ITERATIONS - solver.startswith(SEARCHING)


def _all() -> dict[str, Case]:
    traces = dict(ESTIMATORS)
    for solver, problems in RUNS.items():
        for problem in problems.split():
            name = f"{solver}-{problem}"
            traces[name] = partial(
                history, problem, solver, {**FEWER, **MORE}.get(name, _steps(solver))
            )
    return {
        name: Case(name, trace, SINGLE if "float32" in name else TOLERANCE)
        for name, trace in traces.items()
    }


CASES = _all()
