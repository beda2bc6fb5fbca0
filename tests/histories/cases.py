"""Small runs whose iterates are stored: every solver, W-step strategy and kind of data.

The histories in `stored.json` are those of the library as it is. A change that is meant to leave
the algorithms alone must leave these numbers alone. Those in `before.json` were recorded with the
code before the inside of the library was rebuilt (commit 0e166b6); `before.py` says how the two
fit together, and which cases were recorded anew, and why. So that the old code can run this file,
what is newer is imported only where it is used, and arrays are from `numpy.random.default_rng`.

Runs are short on purpose. Line searches and pairs of gradients amplify the rounding of one
iteration in the next, so that two machines that both work correctly disagree in ever more
digits; see `FEWER` for the runs where that shows early.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax import (
    ADMM,
    LBFGS,
    SGD,
    HessianLBFGS,
    NewtonCG,
    Problem,
    operators,
    run,
)

Columns = dict[str, list[float]]

#: Steps of a run; one less of solvers that search along lines, which amplify rounding.
ITERATIONS = 7
SEARCHING = ("lbfgs", "newton", "hessian", "row_space", "chain")

# ---- data ----


def arrays(n: int, d: int, K: int, *, seed: int, density: float | None = None) -> tuple[Any, Any]:
    """Rows on several scales, and noisy labels that depend on them; CSR with a density."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 2.0, d)
    scores = X @ rng.standard_normal((d, K)) / np.sqrt(d)
    labels = (scores + rng.gumbel(size=(n, K))).argmax(axis=1)
    labels[:K] = np.arange(K)
    if density is not None:
        X = sp.csr_array(np.where(rng.random((n, d)) < density, X, 0.0))
    return X, labels


def weights(n: int, *, seed: int) -> Any:
    """Sample weights, a few of them zero."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.15, 0.0, rng.uniform(0.2, 3.0, n))


def soft_labels(n: int, K: int, *, seed: int) -> Any:
    """Rows of the simplex, most of them close to a corner."""
    C = np.random.default_rng(seed).random((n, K)) ** 4
    return C / C.sum(axis=1, keepdims=True)


def normal(shape: tuple[int, int], *, seed: int) -> Any:
    """A W_ref or a W₀."""
    return 0.3 * np.random.default_rng(seed).standard_normal(shape)


def _dense() -> Problem:
    return Problem.of(*arrays(120, 8, 4, seed=1), 1e-2)


def _fortran() -> Problem:
    X, labels = arrays(110, 9, 3, seed=2)
    return Problem.of(np.asfortranarray(X), labels, 1e-2)


def _binary() -> Problem:
    return Problem.of(*arrays(80, 5, 2, seed=3), 1e-2)


def _blocks() -> Problem:
    """More than a megabyte: several blocks of rows, whose sums are added up."""
    return Problem.of(*arrays(3000, 60, 3, seed=4), 1e-2)


def _sparse() -> Problem:
    return Problem.of(*arrays(150, 30, 3, seed=5, density=0.2), 1e-2)


def _weighted() -> Problem:
    X, labels = arrays(100, 6, 3, seed=6)
    return Problem.of(X, labels, 1e-2, sample_weight=weights(100, seed=60))


def _sparse_weighted() -> Problem:
    X, labels = arrays(140, 20, 4, seed=7, density=0.25)
    return Problem.of(X, labels, 1e-2, sample_weight=weights(140, seed=70))


def _soft() -> Problem:
    X, _ = arrays(90, 7, 4, seed=8)
    return Problem.of(X, soft_labels(90, 4, seed=80), 1e-2)


def _sparse_soft() -> Problem:
    X, _ = arrays(130, 16, 3, seed=9, density=0.3)
    labels, s = soft_labels(130, 3, seed=90), weights(130, seed=91)
    return Problem.of(X, labels, 1e-2, sample_weight=s)


def _operator() -> Problem:
    """A nonsingular L that is not diagonal, and a reference."""
    X, labels = arrays(100, 12, 3, seed=10)
    L, W_ref = operators.laplacian(12), normal((13, 3), seed=100)
    return Problem.of(X, labels, 1e-2, operator=L, reference=W_ref)


def _gradient() -> Problem:
    """A singular L, with sparse rows."""
    X, labels = arrays(120, 12, 3, seed=11, density=0.5)
    W_ref = normal((13, 3), seed=110)
    return Problem.of(X, labels, 1e-2, operator=operators.gradient((3, 4)), reference=W_ref)


def _no_intercept() -> Problem:
    return Problem.of(*arrays(90, 7, 3, seed=12), 1e-2, intercept=False)


def _penalised() -> Problem:
    X, labels = arrays(100, 10, 3, seed=13)
    s = weights(100, seed=130)
    return Problem.of(X, labels, 1e-2, sample_weight=s, penalize_intercept=True)


def _wide() -> Problem:
    return Problem.of(*arrays(40, 90, 3, seed=14), 1e-1)


def _wide_sparse() -> Problem:
    X, labels = arrays(40, 100, 3, seed=15, density=0.3)
    return Problem.of(X, labels, 1e-1, operator=operators.laplacian((10, 10)))


def _wide_weighted() -> Problem:
    X, labels = arrays(45, 95, 3, seed=16)
    s = weights(45, seed=160)
    return Problem.of(X, labels, 1e-1, sample_weight=s, penalize_intercept=True)


def _wide_soft() -> Problem:
    X, _ = arrays(40, 85, 3, seed=24)
    return Problem.of(X, soft_labels(40, 3, seed=240), 1e-1, sample_weight=weights(40, seed=241))


def _wide_free() -> Problem:
    """As RowSpace takes it: weights, hard labels, an intercept without penalty."""
    X, labels = arrays(42, 80, 3, seed=25)
    return Problem.of(X, labels, 1e-1, sample_weight=weights(42, seed=250))


def _wide_fold() -> Problem:
    return Problem.of(*arrays(48, 85, 3, seed=26), 1e-1).on(np.arange(48) % 4 != 1)


def _lasso() -> Problem:
    from admm_softmax import penalties

    return Problem.of(*arrays(100, 8, 3, seed=40), 2e-2, penalty=penalties.Lasso())


def _elastic_net() -> Problem:
    from admm_softmax import penalties

    X, labels = arrays(120, 14, 3, seed=41, density=0.4)
    s, net = weights(120, seed=410), penalties.ElasticNet(0.5)
    return Problem.of(X, labels, 2e-2, sample_weight=s, penalty=net)


def _group_lasso() -> Problem:
    from admm_softmax import penalties

    X, _ = arrays(90, 6, 3, seed=42)
    C = soft_labels(90, 3, seed=420)
    return Problem.of(X, C, 2e-2, penalty=penalties.GroupLasso()).on(np.arange(90) % 3 != 0)


def _variation() -> Problem:
    """A second split with an L of its own."""
    from admm_softmax import penalties

    X, labels = arrays(100, 9, 3, seed=43)
    return Problem.of(X, labels, 1e-2, penalty=penalties.TotalVariation(operators.gradient(9)))


def _fold() -> Problem:
    """Part of the rows by weight zero, one of them twice: how folds share a design."""
    X, labels = arrays(120, 8, 3, seed=17)
    whole = Problem.of(X, labels, 1.0, sample_weight=weights(120, seed=170))
    return whole.with_alpha(1e-2).on(np.append(np.flatnonzero(np.arange(120) % 3), 1))


def _sparse_fold() -> Problem:
    X, labels = arrays(150, 15, 3, seed=18, density=0.3)
    return Problem.of(X, labels, 1e-2).on(np.arange(150) % 4 != 2)


def _single() -> Problem:
    X, labels = arrays(120, 8, 3, seed=19)
    return Problem.of(X.astype(np.float32), labels, 1e-1)


def _single_sparse() -> Problem:
    X, labels = arrays(150, 20, 3, seed=20, density=0.3)
    s = weights(150, seed=200)
    return Problem.of(X.astype(np.float32), labels, 1e-2, sample_weight=s)


def _large() -> Problem:
    """Enough scores for the compiled passes."""
    return Problem.of(*arrays(20_000, 12, 10, seed=21), 1e-3)


def _large_sparse() -> Problem:
    X, labels = arrays(20_000, 25, 10, seed=22, density=0.15)
    return Problem.of(X, labels, 1e-3, sample_weight=weights(20_000, seed=220))


def _large_soft() -> Problem:
    X, _ = arrays(25_000, 10, 8, seed=23)
    return Problem.of(X, soft_labels(25_000, 8, seed=230), 1e-3)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "dense": _dense,
    "warm": _dense,
    "fortran": _fortran,
    "binary": _binary,
    "blocks": _blocks,
    "sparse": _sparse,
    "weighted": _weighted,
    "sparse_weighted": _sparse_weighted,
    "soft": _soft,
    "sparse_soft": _sparse_soft,
    "operator": _operator,
    "gradient": _gradient,
    "no_intercept": _no_intercept,
    "penalised": _penalised,
    "wide": _wide,
    "wide_sparse": _wide_sparse,
    "wide_weighted": _wide_weighted,
    "wide_soft": _wide_soft,
    "wide_free": _wide_free,
    "wide_fold": _wide_fold,
    "lasso": _lasso,
    "elastic_net": _elastic_net,
    "group_lasso": _group_lasso,
    "variation": _variation,
    "fold": _fold,
    "sparse_fold": _sparse_fold,
    "float32": _single,
    "float32_sparse": _single_sparse,
    "large": _large,
    "large_sparse": _large_sparse,
    "large_soft": _large_soft,
}

# ---- solvers ----


def _pcg(**settings: Any) -> ADMM:
    from admm_softmax.solvers.least_squares import PCG

    return ADMM(rho=0.05, least_squares=PCG(**settings))


def _spectral(**settings: Any) -> ADMM:
    from admm_softmax.solvers.least_squares import Spectral

    return ADMM(least_squares=Spectral(), **settings)


def _row_space() -> Any:
    from admm_softmax.solvers.row_space import RowSpace

    return RowSpace(LBFGS(20, "gram")).then(LBFGS(20, "gram"), after=1)


def _newton_whole() -> Any:
    from admm_softmax import Newton

    return Newton()


def _proximal() -> Any:
    from admm_softmax import ProximalLBFGS

    return ProximalLBFGS()


#: By name, and made when needed: a solver that cannot be imported fails its own cases alone.
SOLVERS: dict[str, Callable[[], Any]] = {
    "admm": lambda: ADMM(rho=0.1),
    "admm_tuned": lambda: ADMM(rho="auto", relaxation=1.7, start="smart"),
    "admm_split": lambda: ADMM(rho=0.1, relaxation=1.5),
    "admm_adaptive": lambda: ADMM(rho=5.0, adaptive_rho=True, gradient_every=1),
    "cholesky": lambda: ADMM(rho=0.05, relaxation=1.5, least_squares="cholesky"),
    "qr": lambda: ADMM(rho=0.05, least_squares="qr", gradient_every=2),
    "woodbury": lambda: ADMM(rho=0.05, least_squares="woodbury"),
    "pcg": lambda: ADMM(rho=0.05, least_squares="pcg"),
    "pcg_rank_3": lambda: _pcg(rank=3),
    "pcg_jacobi": lambda: _pcg(preconditioner="jacobi"),
    "spectral": lambda: _spectral(rho=0.05),
    "spectral_auto": lambda: _spectral(rho="auto", relaxation=1.7, start="smart"),
    "lbfgs": LBFGS,
    "lbfgs_armijo": lambda: LBFGS(3, line_search="armijo"),
    "lbfgs_jacobi": lambda: LBFGS(preconditioner="jacobi"),
    "lbfgs_gram": lambda: LBFGS(20, "gram"),
    "lbfgs_sample": lambda: LBFGS(20, "gram", subsample=50, seed=3),
    "newton": NewtonCG,
    "newton_jacobi": lambda: NewtonCG(100, None, preconditioner="jacobi"),
    "newton_gram": lambda: NewtonCG(100, None, preconditioner="gram"),
    "newton_sample": lambda: NewtonCG(preconditioner="gram", subsample=60, seed=1),
    "hessian_lbfgs": HessianLBFGS,
    "sgd": lambda: SGD(0.1, batch_size=32),
    "sgd_gram": lambda: SGD(
        0.2, batch_size=25, nesterov=True, schedule="inverse", preconditioner="gram", seed=4
    ),
    "sgd_full": lambda: SGD(
        1.0, batch_size=10**6, nesterov=True, restart=True, preconditioner="jacobi"
    ),
    "row_space": _row_space,
    "whole_newton": _newton_whole,
    "proximal": _proximal,
    "chain": lambda: ADMM(rho="auto", relaxation=1.7, start="smart").then(
        LBFGS(20, "gram"), after=3
    ),
    "chain_slow": lambda: ADMM(rho=2.0, gradient_every=1).then(LBFGS(20, "gram")),
    "chain_newton": lambda: LBFGS(preconditioner="jacobi").then(NewtonCG(), after=1),
}

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

# ---- what is stored ----


def projection(W: Any) -> float:
    """One random projection of W, the same for all of its shape, to tell W from its norm."""
    return float(np.vdot(np.random.default_rng(12345).standard_normal(W.shape), W))


def history(problem_name: str, solver_name: str, iterations: int) -> Columns:
    """The first iterates of a solver."""
    problem = PROBLEMS[problem_name]()
    W0 = normal(problem.shape, seed=999) if problem_name == "warm" else None
    seen: list[Any] = []
    result = run(
        problem,
        SOLVERS[solver_name](),
        W0=W0,
        max_iter=iterations,
        tol=0.0,
        callbacks=lambda iterate: seen.append(iterate.W.copy()),
    )
    return {
        **_history_columns(result.history),
        "norm": [float(np.linalg.norm(W)) for W in seen],
        "projection": [projection(W) for W in seen],
    }


def fit(
    data: Callable[[], tuple[Any, Any, Any]], solver: str, iterations: int = ITERATIONS
) -> Columns:
    """A solver as it is set up for its name."""
    from admm_softmax import SoftmaxRegression

    X, y, s = data()
    model = SoftmaxRegression(0.01, solver=solver, max_iter=iterations, tol=0.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations do not converge, and need not
        model.fit(X, y, sample_weight=s)
    coef = np.column_stack([model.coef_, model.intercept_])
    return {
        **_history_columns(model.history_),
        "norm": [float(np.linalg.norm(coef))],
        "projection": [projection(coef)],
    }


def _history_columns(found: Any) -> Columns:
    names = ("objective", "gradient_norm", "passes")
    return {name: [float(x) for x in found[name]] for name in names}


def cross_validation(data: Callable[[], tuple[Any, Any, Any]], **settings: Any) -> Columns:
    """Every fold's coefficients and scores under every penalty, and the last fit."""
    from admm_softmax import SoftmaxRegressionCV

    X, y, s = data()
    model = SoftmaxRegressionCV(cv=3, **{"alphas": ALPHAS, "tol": 0.0, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=s)
    fits = model.coefs_paths_.reshape(-1, *model.coefs_paths_.shape[2:])
    fits = [*fits, np.column_stack([model.coef_, model.intercept_])]
    columns = {
        "score": [float(x) for x in model.scores_.ravel()],
        "norm": [float(np.linalg.norm(coef)) for coef in fits],
        "projection": [projection(coef) for coef in fits],
        "iterations": [float(x) for x in model.n_iter_.ravel()],
    }
    return columns if model.history_ is None else {**columns, **_history_columns(model.history_)}


def path(data: Callable[[], tuple[Any, Any, Any]], **settings: Any) -> Columns:
    """The histories under all penalties, one after the other, and where each of them ended."""
    from admm_softmax import softmax_path

    X, y, s = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = softmax_path(
            X,
            y,
            **{"alphas": ALPHAS, "tol": 0.0, **settings},
            sample_weight=s,
            X_val=X[:30],
            y_val=y[:30],
        )
    histories = [_history_columns(result.history) for result in found.results]
    return {
        **{name: [x for part in histories for x in part[name]] for name in histories[0]},
        "norm": [float(np.linalg.norm(result.W)) for result in found.results],
        "projection": [projection(result.W) for result in found.results],
        "iterations": [float(result.n_iter) for result in found.results],
        "score": [float(x) for x in found.val_loss],
        "reads": [float(found.reads)],
    }


def sweep(rhos: list[float], alphas: list[float]) -> Columns:
    """ADMM under pairs (ρ, α) that share factorisations, or one eigendecomposition."""
    from admm_softmax import sweep_rho_alpha

    X, labels = arrays(120, 8, 3, seed=30)
    train, val = Problem.of(X[::2], labels[::2]), Problem.of(X[1::2], labels[1::2])
    found = sweep_rho_alpha(train, rhos, alphas, validation=val, max_iter=5)
    columns = {"objective": "objective", "score": "val_loss", "iterations": "kept_iteration"}
    return {name: [float(x) for x in found.table(table).ravel()] for name, table in columns.items()}


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


#: For four classes α = 1 would not do: τ = α/κ is then 4^2.5 at first, half-way between two
#: shared factorisations, and rounding would decide which of them is taken.
ALPHAS = [0.8, 0.08, 0.008]

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
