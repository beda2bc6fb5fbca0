"""Every solver ends at the same optimum, counts its passes and keeps the contract."""

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import ADMM, LBFGS, SGD, HessianLBFGS, NewtonCG, Problem, operators, run
from admm_softmax.contracts import check_solver
from admm_softmax.design import RowBlockDesign, as_design
from admm_softmax.solvers.least_squares import PCG, Breakdown
from tests.problems import assert_close, make, minimum

TUNED = ADMM(relaxation=1.7, start="smart")
SOLVERS = {
    "admm": TUNED,
    "admm then lbfgs": TUNED.then(LBFGS(20, "gram")),
    "admm then newton": TUNED.then(NewtonCG(100, None, preconditioner="gram")),
    "lbfgs": LBFGS(20, "gram"),
    "newton": NewtonCG(100, None, preconditioner="gram"),
    "paper's lbfgs": HessianLBFGS(10, 200, 1e-6),
    "sgd": SGD(
        1.0, batch_size=10**6, momentum=0.98, nesterov=True, preconditioner="gram", restart=True
    ),
}


def build(name, dtype=np.float64):
    """The problem, and an equivalent one on which the independent minimiser does well."""
    n, d, K, alpha, noise, settings, soft = 90, 8, 4, 1e-2, 1.0, {}, False
    if name == "d > n":
        n, d = 30, 60
    if name.startswith("K = "):
        K = int(name[4:])
        n = 90 if K < 100 else 300
    if name == "separable":
        alpha, noise = 1e-5, 0.0
    soft = name == "soft labels"
    X, labels = make(n, d, K, soft=soft, noise=noise)
    if name == "collinear":
        X = np.column_stack([X, X[:, 0] + 1e-7 * X[:, 1], X[:, 2]])
    if name == "laplacian":
        settings["operator"] = operators.laplacian((2, 4))
    if name == "reference":
        settings["reference"] = np.random.default_rng(4).standard_normal((9, 4))
    if name == "weights":
        settings["sample_weight"] = np.random.default_rng(3).integers(0, 4, n)
    X = X.astype(dtype)
    plain = Problem.of(X.astype(np.float64), labels, alpha, **settings)
    if name == "scaled":
        scales = np.logspace(-4, 4, d)
        # F(W) with features X·scales and L = I is F(V) with X and L = 1/scales, V = scales·W.
        plain = Problem.of(X * 1.0, labels, 1e-6, operator=sp.diags_array(1 / scales))
        return Problem.of((X * scales).astype(dtype), labels, 1e-6), plain, X
    stored = sp.csr_array(X) if name == "sparse" else X
    return Problem.of(stored, labels, alpha, **settings), plain, X


PROBLEMS = [
    "dense",
    "sparse",
    "d > n",
    "K = 2",
    "K = 10",
    "K = 100",
    "collinear",
    "scaled",
    "separable",
    "laplacian",
    "reference",
    "soft labels",
    "weights",
]


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_meet_at_the_same_optimum(name):
    problem, plain, X = build(name)
    _, best = minimum(plain, X)
    tol = 1e-9 if name in ("separable", "scaled") else 1e-7
    for solver_name, solver in SOLVERS.items():
        result = run(problem, solver, tol=tol, max_iter=5000)
        assert result.status == "converged", solver_name
        assert result.iterate.objective == pytest.approx(best, rel=1e-8), solver_name


def in_double(problem):
    """The same problem, its X in float64."""
    design = as_design(problem.design.X.astype(np.float64), intercept=problem.design.intercept)
    labels, weights = (problem.design.gather(rows) for rows in (problem.labels, problem.weights))
    rows = design.place(labels), design.place(weights)
    return Problem.on_rows(design, *rows, problem.total_weight, problem.penalty, problem.n_classes)


@pytest.mark.parametrize("name", PROBLEMS)
def test_float32_meets_within_single_precision(name):
    problem, plain, X = build(name, np.float32)
    assert problem.design.dtype == np.float32
    _, best = minimum(plain, X)
    # Features of size 1e4 put rounding of 1e-3 into the gradient: there, tol is not reached, and
    # Newton's steps follow that rounding to where scores, and with them F, are less precise.
    tol, off = (0.0, 1e-3) if name == "scaled" else (1e-6, 1e-5)
    double = in_double(problem)
    for solver_name, solver in SOLVERS.items():
        if (name, solver_name) == ("scaled", "paper's lbfgs"):
            continue  # its CG has no preconditioner to undo the scales
        result = run(problem, solver, tol=tol, max_iter=300 if tol == 0 else 3000)
        assert result.status == "converged" or tol == 0, solver_name
        assert result.iterate.objective == pytest.approx(best, rel=off), solver_name
        assert double.objective(result.W) == pytest.approx(best, rel=off), solver_name


@pytest.mark.parametrize("name", SOLVERS)
def test_all_pass_the_public_check(name):
    check_solver(SOLVERS[name])


EVERY = {
    **SOLVERS,
    "paper's newton": NewtonCG(),
    "paper's lbfgs": HessianLBFGS(),
    "plain lbfgs": LBFGS(),
    "armijo lbfgs": LBFGS(line_search="armijo"),
    "jacobi lbfgs": LBFGS(preconditioner="jacobi"),
    "jacobi newton": NewtonCG(preconditioner="jacobi"),
    "subsampled": LBFGS(20, "gram", subsample=30),
    "paper's sgd": SGD(batch_size=30),
    "paper's admm": ADMM(rho=0.05),
}


@pytest.mark.parametrize("name", EVERY)
def test_figures_passes_and_determinism(name):
    X, labels = make(90, 8, 4)
    runs = []
    for _ in range(2):
        problem = Problem.of(X, labels, 1e-2)
        result = run(problem, EVERY[name], tol=0.0, max_iter=7)
        runs.append(result)
        for record in result.history:
            assert np.isfinite(record["objective"])
        point = problem.at(result.W)
        assert_close(result.iterate.objective, point.objective, 1e-12)
        assert_close(result.iterate.gradient_norm, np.abs(point.gradient).max(), 1e-6)
        assert np.all(np.diff(result.history["passes"]) > 0)
    np.testing.assert_array_equal(runs[0].W, runs[1].W)


class Counted(RowBlockDesign):
    """A dense X that counts the rows it hands out, in units of all of them."""

    def __init__(self, X):
        super().__init__(X.shape, X.dtype, intercept=True)
        self.X, self.handed_out = X, []

    @property
    def times_read(self):
        return sum(self.handed_out) / self.n_rows

    def block(self, rows):
        self.handed_out.append(rows.stop - rows.start)  # a list, because views share it
        return self.X[rows]

    def rows_at(self, indices):
        self.handed_out.append(len(indices))
        return self.X[indices]


@pytest.mark.parametrize("name", EVERY)
def test_passes_are_the_reads_of_x(name):
    X, labels = make(90, 8, 4)
    problem = Problem.of(Counted(X), labels, 1e-2)
    result = run(problem, EVERY[name], tol=0.0, max_iter=8)
    reads = result.iterate.passes
    # SGD does not look at F, nor ADMM at its start: `run` does, for the history, and that is not
    # a pass of theirs.
    looks = 1 + result.n_iter if isinstance(EVERY[name], SGD) else "admm" in name
    assert problem.design.times_read == pytest.approx(reads + looks)
    assert problem.design.reads == pytest.approx(reads + looks)


def test_a_preconditioner_of_n_by_n_reads_x_too():
    X, labels = make(20, 300, 4)
    problem = Problem.of(X, labels, 1e-2)
    solver = SGD(0.1, 10, preconditioner="gram")
    own = problem.for_run()
    list(islice(solver.iterates(own, None), 2))
    # X Xᵀ and the mean of the rows; then, for each of two batches, half a read and two more.
    assert own.design.reads == problem.design.reads == pytest.approx(2 + 2 * (0.5 + 2))
    assert run(problem, solver, tol=0.0, max_iter=1).iterate.passes == own.design.reads


@pytest.mark.parametrize("name", [n for n in EVERY if n not in ("paper's sgd", "paper's admm")])
def test_a_start_at_the_optimum_stays_there(name):
    X, labels = make(90, 8, 4)
    problem = Problem.of(X, labels, 1e-2)
    W = run(problem, LBFGS(20, "gram"), tol=1e-10).W
    result = run(problem, EVERY[name], W0=W, tol=1e-7, max_iter=3)
    assert result.status == "converged"
    assert_close(result.iterate.objective, problem.objective(W), 1e-12)


def test_handing_over_shares_gram_matrix_and_factorisation():
    X, labels = make(200, 8, 4)
    problem = Problem.of(X, labels, 1e-2)
    chain = ADMM(rho=0.1).then(LBFGS(20, "gram"), after=4)
    # The Gram matrix and four passes of ADMM; then the start of L-BFGS and its steps.
    passes = run(problem, chain, tol=0.0, max_iter=6).history["passes"]
    assert passes.tolist() == [0, 2, 3, 4, 5, 6, 7, 8]
    own = problem.for_run()
    iterates = chain.iterates(own, None)
    list(islice(iterates, 5))
    step = own.workspace.w_step[1]
    factor = step.step.R
    list(islice(iterates, 3))
    assert own.workspace.w_step[1] is step
    assert step.step.R is factor
    assert step.rho == 0.1
    assert own.design.reads == 7  # the Gram matrix is there, from the first run


def test_a_chain_hands_over_when_progress_slows():
    X, labels = make(90, 8, 4, noise=0.0)
    problem = Problem.of(X, labels, 1e-5)
    slow = run(problem, TUNED, tol=1e-7, max_iter=1500)
    polished = run(problem, SOLVERS["admm then lbfgs"], tol=1e-7, max_iter=1500)
    assert polished.status == "converged"
    assert polished.n_iter < 0.2 * slow.n_iter
    assert {"rho", "step"} <= set(polished.history.columns)


def test_a_chain_of_three_and_bad_settings():
    X, labels = make(90, 8, 4)
    problem = Problem.of(X, labels, 1e-2)
    chain = SGD(seed=1).then(ADMM(rho=0.1), after=2).then(NewtonCG(), after=4)
    result = run(problem, chain, tol=1e-8, max_iter=50)
    assert result.status == "converged"
    rho = result.history["rho"]
    # SGD's start and two epochs, ADMM's start and two steps, then Newton-CG.
    assert np.isnan(rho[:4]).all()
    assert (rho[4:6] == 0.1).all()
    assert np.isnan(rho[6:]).all()
    assert result.history["iteration"][:8].tolist() == [0, 1, 2, 2, 3, 4, 4, 5]
    with pytest.raises(ValueError, match="after must be at least 1 or None, got 0"):
        ADMM().then(LBFGS(), after=0)
    for bad in ({"following": "lbfgs"}, {"following": LBFGS}):
        with pytest.raises(TypeError, match="a chain is made of solver objects"):
            ADMM().then(**bad)
    with pytest.raises(TypeError, match=r"after must be at least 1 or None, got 2.5"):
        ADMM().then(LBFGS(), after=2.5)


def test_a_sketch_that_exhausts_the_spectrum_still_preconditions(monkeypatch):
    monkeypatch.setattr("admm_softmax.solvers.least_squares.auto.LARGEST_FACTOR", 10)
    X, labels = make(25, 60, 3)
    problem = Problem.of(X, labels, 0.0)
    for solver in (LBFGS(20, "gram"), NewtonCG(preconditioner="gram")):
        assert run(problem, solver, tol=1e-5, max_iter=200).status == "converged"


@pytest.mark.parametrize("alpha", [0.0, 1e-8])
def test_a_sample_that_misses_columns_or_has_few_rows_still_preconditions(alpha):
    rng = np.random.default_rng(0)
    rare = np.zeros((500, 30))
    rare[rng.integers(0, 500, 60), np.arange(60) % 30] = 1.0
    X = np.column_stack([rng.standard_normal((500, 4)), rare])
    labels = np.where(rng.random(500) < 0.3, rng.integers(0, 3, 500), np.argmax(X[:, :3], axis=1))
    problem = Problem.of(X, labels, alpha)
    best = run(problem, LBFGS(20, "gram"), tol=1e-8, max_iter=2000).iterate.objective
    for solver in (
        LBFGS(20, "gram", subsample=20),
        NewtonCG(200, 1e-3, preconditioner="gram", subsample=100),
    ):
        result = run(problem, solver, tol=1e-6, max_iter=2000)
        assert result.status == "converged"
        assert result.iterate.objective == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("flaw", ["zero", "constant", "duplicate", "all zero"])
def test_a_breakdown_of_the_preconditioner_is_survived(flaw, monkeypatch):
    monkeypatch.setattr("admm_softmax.solvers.least_squares.auto.LARGEST_FACTOR", 10)
    X, labels = make(200, 30, 3)
    X[:, 3] = {"zero": 0.0, "constant": 1.0, "duplicate": X[:, 4], "all zero": 0.0}[flaw]
    X = 0 * X if flaw == "all zero" else X
    problem = Problem.of(X, labels, 1e-3, operator=operators.laplacian(30))
    for solver in (
        LBFGS(20, "gram"),
        NewtonCG(preconditioner="gram"),
        TUNED.then(LBFGS(20, "gram")),
    ):
        assert run(problem, solver, tol=1e-5, max_iter=300).status == "converged"


def test_jacobi_steps_in_for_a_factorisation_that_fails(monkeypatch, caplog):
    X, labels = make(90, 8, 4)
    problem = Problem.of(X, labels, 1e-2)

    def fail(self, rho):
        raise Breakdown("no such luck")

    monkeypatch.setattr("admm_softmax.solvers.least_squares.auto.AutoStep.factor", fail)
    assert run(problem, LBFGS(20, "gram"), tol=1e-6, max_iter=300).status == "converged"
    assert "no such luck; the preconditioner falls back to Jacobi" in caplog.text


def test_gram_preconditioning_without_a_factorisation():
    X, labels = make(200, 30, 3)
    problem = Problem.of(X, labels, 1e-2)
    _, best = minimum(problem, X)
    solver = ADMM(rho=0.05, least_squares=PCG(rank=10)).then(LBFGS(20, "gram"), after=3)
    result = run(problem, solver, tol=1e-8, max_iter=300)
    assert result.status == "converged"
    assert result.iterate.objective == pytest.approx(best, rel=1e-10)
