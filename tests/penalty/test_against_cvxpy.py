"""Every penalty, solved by an interior-point method on the formula, and by both solvers here."""

from functools import partial

import cvxpy as cp
import numpy as np
import pytest

from admm_softmax import ADMM, Problem, ProximalLBFGS, operators, penalties, run
from tests.peers import proximal_step, run_peer
from tests.problems import make, one_hot

GROUPS = [[0, 3], [1, 2, 5], [4]]
D = operators.gradient(6)
FACTORS = np.array([1.0, 0.0, 2.0, 0.5, 1.0, 1.5])
REFERENCE = np.vstack([0.2 * np.random.default_rng(5).standard_normal((6, 3)), np.zeros((1, 3))])


def groups_norm(W):
    return sum(len(g) ** 0.5 * cp.norm(W[g], "fro") for g in GROUPS)


#: The penalty, R(W)/α of the features as CVXPY has it, its constraints, α, and settings.
CASES = {
    "lasso": (penalties.Lasso(), lambda W: cp.sum(cp.abs(W)), 0.02, {}),
    "lasso with factors": (
        penalties.Lasso(factors=FACTORS), lambda W: FACTORS @ cp.sum(cp.abs(W), axis=1), 0.02, {},
    ),
    "lasso from a reference": (
        penalties.Lasso(), lambda W: cp.sum(cp.abs(W - REFERENCE[:6])), 0.02,
        {"reference": REFERENCE},
    ),
    "lasso and ridge": (
        penalties.Lasso(ridge=2.0, operator=D),
        lambda W: cp.sum(cp.abs(W)) + cp.sum_squares(D.toarray() @ W), 0.02, {},
    ),
    "elastic net": (
        penalties.ElasticNet(0.6), lambda W: 0.6 * cp.sum(cp.abs(W)) + 0.2 * cp.sum_squares(W),
        0.03, {},
    ),
    "group lasso by features": (
        penalties.GroupLasso(), lambda W: cp.sum(cp.norm(W, axis=1)), 0.04, {},
    ),
    "group lasso": (penalties.GroupLasso(GROUPS), groups_norm, 0.04, {}),
    "group lasso and ridge": (
        penalties.GroupLasso(GROUPS, ridge=0.5),
        lambda W: groups_norm(W) + 0.25 * sum(
            len(g) ** 0.5 * cp.sum_squares(W[g]) for g in GROUPS), 0.04, {},
    ),
    "sparse group lasso": (
        penalties.SparseGroupLasso(GROUPS, l1_ratio=0.4),
        lambda W: 0.6 * groups_norm(W) + 0.4 * sum(
            len(g) ** 0.5 * cp.sum(cp.abs(W[g])) for g in GROUPS), 0.03, {},
    ),
    "total variation": (
        penalties.TotalVariation(D), lambda W: cp.sum(cp.abs(D.toarray() @ W)), 0.02, {},
    ),
    "nuclear norm": (penalties.NuclearNorm(), cp.normNuc, 0.05, {}),
    "bounds": (penalties.Bounds(), lambda W: 0.5 * cp.sum_squares(W), 0.02, {}),
    "box": (
        penalties.Bounds(-0.1, [0.2, 0.1, 0.3, 0.2, 0.0, 1.0], ridge=0.0), lambda W: 0, 1.0, {},
    ),
}  # fmt: skip
#: Its last digits depend on its version and the CPU: at 1e-11 its residual was 2e-6 at most.
#: PEER_TOL, at a distance below 0.1, moves F by less than 1e-6. What is zero at the solution, and
#: is held there by more than PEER_TOL, is below PEER_TOL; all else is above 1e-2.
PEER_TOL, IS_ZERO = 1e-5, 1e-3
LIMITS = {"bounds": (0.0, np.inf), "box": (-0.1, np.array([0.2, 0.1, 0.3, 0.2, 0.0, 1.0])[:, None])}


def data(kind):
    X, labels = make(60, 6, 3, seed=3, soft=kind == "soft")
    weights = None if kind == "plain" else np.random.default_rng(1).random(60)
    return X, labels, weights


class Formula:
    """F as CVXPY has it, with its variables."""

    def __init__(self, name, kind):
        X, labels, weights = data(kind)
        _, formula, alpha, _ = CASES[name]
        C, w = one_hot(labels, 3), np.ones(60) if weights is None else weights
        self.coef, self.intercept = cp.Variable((6, 3)), cp.Variable(3)
        Z = X @ self.coef + np.ones((60, 1)) @ cp.reshape(self.intercept, (1, 3), order="C")
        loss = (w / w.sum()) @ (cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(C, Z), axis=1))
        self.objective = loss + alpha * formula(self.coef)
        self.limits = LIMITS.get(name)

    def __call__(self, W):
        """F(W)."""
        self.coef.value, self.intercept.value = W[:6], W[6]
        return float(self.objective.value)

    def minimiser(self):
        """W by Clarabel."""
        constraints = [] if self.limits is None else [self.limits[0] <= self.coef]
        if self.limits is not None and np.isfinite(self.limits[1]).all():
            constraints.append(self.limits[1] @ np.ones((1, 3)) >= self.coef)
        cp.Problem(cp.Minimize(self.objective), constraints).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, max_iter=500
        )
        return np.vstack([self.coef.value, self.intercept.value])


@pytest.mark.parametrize("kind", ["plain", "soft"])
@pytest.mark.parametrize("name", CASES)
def test_both_solvers_agree_with_an_interior_point_method(name, kind):
    penalty, _, alpha, settings = CASES[name]
    X, labels, weights = data(kind)
    problem = Problem.of(X, labels, alpha, penalty=penalty, sample_weight=weights, **settings)
    formula = Formula(name, kind)
    peer = run_peer(formula.minimiser, partial(proximal_step, problem), PEER_TOL)
    F, W = formula(peer), peer[:6]
    solvers = {"admm": ADMM(relaxation=1.6)}
    if problem.penalty.blocks is not None:
        solvers["proximal"] = ProximalLBFGS(tol=1e-8)
    for solver in solvers.values():
        result = run(problem, solver, tol=2e-7, max_iter=3000)
        assert result.status == "converged", solver
        assert result.iterate.objective == pytest.approx(formula(result.W), rel=1e-12), solver
        assert result.iterate.objective == pytest.approx(F, abs=1e-6), solver
        gap = result.history["gap"][-1]
        assert np.isnan(gap) or -1e-12 <= gap <= 1e-3
        ours = result.W[:6]
        if name == "nuclear norm":
            assert np.linalg.matrix_rank(ours, 1e-8) == np.linalg.matrix_rank(W, IS_ZERO)
        elif name == "total variation":
            np.testing.assert_array_equal(np.abs(D @ ours) > 1e-9, np.abs(D @ W) > IS_ZERO)
        elif name != "lasso from a reference" and "bo" not in name:
            np.testing.assert_array_equal(ours != 0, np.abs(W) > IS_ZERO)
