"""Rows stay where they are: no solver gathers what has a row per example."""

import numpy as np
import pytest

from admm_softmax import (
    ADMM,
    LBFGS,
    SGD,
    HessianLBFGS,
    Newton,
    NewtonCG,
    Problem,
    ProximalLBFGS,
    operators,
    penalties,
    run,
)
from admm_softmax.design import DenseDesign, PartitionedDesign
from admm_softmax.path.largest_alpha import largest_alpha
from admm_softmax.solvers.identity import problem_identity
from admm_softmax.solvers.least_squares import PCG, Spectral, Woodbury
from admm_softmax.solvers.row_space import RowSpace
from tests.problems import assert_close, make


class Elsewhere(PartitionedDesign):
    """Parts whose rows never come together: the model of a cluster."""

    def __init__(self, parts):
        super().__init__(parts)
        self.is_in_memory, self.is_remote = False, True

    def gather(self, rows):
        raise AssertionError("rows were gathered")


def build(penalty=None, soft=False, intercept=True):
    X, labels = make(90, 6, 3, soft=soft)
    weights = np.random.default_rng(0).random(90) + 0.5
    parts = [DenseDesign(part, intercept=intercept) for part in np.split(X, [20, 51])]
    settings = {"penalty": penalty, "sample_weight": weights, "n_classes": 3}
    here = Problem.of(X, labels, 0.05, intercept=intercept, **settings)
    return Problem.of(Elsewhere(parts), labels, 0.05, **settings), here


SOLVERS = {
    "lbfgs": LBFGS(),
    "lbfgs jacobi": LBFGS(preconditioner="jacobi"),
    "lbfgs gram": LBFGS(preconditioner="gram"),
    "lbfgs sample": LBFGS(preconditioner="gram", subsample=30),
    "newton-cg": NewtonCG(preconditioner="gram"),
    "newton": Newton(),
    "hessian": HessianLBFGS(),
    "sgd": SGD(0.1, 16),
    "admm": ADMM(rho=0.1),
    "admm smart": ADMM(rho="auto", relaxation=1.7, start="smart"),
    "admm qr": ADMM(rho=0.1, least_squares="qr"),
    "admm pcg": ADMM(rho=0.1, least_squares=PCG(rank=3)),
    "admm spectral": ADMM(rho=0.1, least_squares=Spectral()),
    "chain": ADMM(rho=0.1).then(LBFGS(preconditioner="gram"), after=2),
}


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", SOLVERS)
def test_smooth_fits_gather_nothing(name, soft):
    there, here = build(soft=soft)
    results = [run(p, SOLVERS[name], tol=0.0, max_iter=3) for p in (there, here)]
    assert_close(results[0].W, results[1].W, 1e-8)


@pytest.mark.parametrize("solver", [ProximalLBFGS(), ADMM(rho=0.1)], ids=["proximal", "admm"])
def test_fits_under_kinks_gather_nothing(solver):
    results = [run(p, solver, tol=0.0, max_iter=6) for p in build(penalties.ElasticNet(0.5))]
    assert_close(results[0].W, results[1].W, 1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_largest_alpha_gathers_nothing(intercept):
    penalty = penalties.TotalVariation(operators.gradient(6))
    found = [largest_alpha(problem) for problem in build(penalty, intercept=intercept)]
    assert found[0] == pytest.approx(found[1], rel=1e-7)


def test_a_problem_is_known_without_gathering():
    there, _ = build()
    other = Problem.of(there.design, np.zeros(90, int), 0.05, n_classes=3)
    first, second = problem_identity(there), problem_identity(other)
    assert problem_identity(build()[0]) == first
    assert {name for name in first if first[name] != second[name]} == {"y", "sample_weight"}


@pytest.mark.parametrize(
    "solver", [ADMM(rho=0.1, least_squares=Woodbury()), RowSpace(LBFGS())], ids=["woodbury", "row"]
)
def test_what_needs_an_n_by_n_matrix_is_refused(solver):
    there, _ = build()
    with pytest.raises((np.linalg.LinAlgError, NotImplementedError), match="Elsewhere"):
        run(there, solver, max_iter=2)
