"""The strongest penalty of a path: from there on, W is at its reference."""

from __future__ import annotations

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.design import DenseDesign
from admm_softmax.kernels import rows
from admm_softmax.penalty import Tikhonov
from admm_softmax.problem import Problem
from admm_softmax.solvers import LBFGS, ProximalLBFGS, run
from admm_softmax.solvers.duality import frequencies_start, leaves_intercept

#: The accuracy of the fit of what is not penalised.
TOL = 1e-9
#: A strength beyond any largest α, in units of a bound on the gradient.
HUGE = 1e6


def largest_alpha(problem: Problem) -> float:
    """The α from which on only what is free is fitted; infinite where there is none.

    Exact: the gradient of the loss is taken where intercept and free features are at their
    optimum, whatever the weights and labels.

    >>> from admm_softmax import penalties
    >>> X = np.array([[-1.0], [1.0], [0.0], [2.0]])
    >>> round(largest_alpha(Problem.of(X, [0, 0, 1, 1], 1.0, penalty=penalties.Lasso())), 9)
    0.25
    """
    if problem.penalty.is_smooth:
        return np.inf
    gradient = problem.at(null_model(problem)).loss_gradient
    if leaves_intercept(problem):
        gradient[-1] = 0.0
    return problem.penalty.alpha_max(gradient)


def null_model(problem: Problem) -> Array:
    """W with only what is free fitted: the intercept, free features, unseen directions."""
    penalty, design = problem.penalty, problem.design
    W = np.zeros(problem.shape) if penalty.reference is None else penalty.reference.copy()
    unseen = penalty.unseen()
    if unseen is not None and unseen.shape[1]:
        return _along(problem, unseen)
    blocks = penalty.blocks
    is_free = np.zeros(len(W), bool)
    if blocks is not None:
        is_free = ~np.isfinite(blocks.reach(np.ones(problem.shape)))
    features = slice(0, design.n_features - design.intercept)
    if blocks is not None and (is_free[features].any() or penalty.reference is not None):
        size = float(np.abs(problem.at(W).loss_gradient).max())
        strong = problem.with_alpha(HUGE * max(size, 1e-300))
        return run(strong, ProximalLBFGS(tol=TOL, gap=False), tol=TOL, max_iter=1000, W0=W).W
    if penalty.reference is None and leaves_intercept(problem):
        return frequencies_start(problem)
    return W


def _along(problem: Problem, directions: Array) -> Array:
    """The best W among combinations of some directions and the intercept.

    In memory the scores of the directions become the columns of a small problem; elsewhere
    they stay where they are, and every step reads X.
    """
    design = problem.design
    if not design.is_in_memory:
        return _along_by_passes(problem, directions)
    scores = design.gather(design.fold(directions, rows.predict).new_rows)
    small = DenseDesign(np.array(scores, dtype=np.float64), intercept=design.intercept)
    q = directions.shape[1]
    reduced = Problem.on_rows(
        small,
        small.place(design.gather(problem.labels)),
        small.place(design.gather(problem.weights)),
        problem.total_weight,
        Tikhonov.over(q, 0.0, intercept=design.intercept),
        problem.n_classes,
    )
    found = run(reduced, LBFGS(20, "jacobi"), tol=1e-10, max_iter=2000).W
    W: Array = directions @ found[:q]
    if design.intercept:
        W[-1] += found[-1]
    return W


def _along_by_passes(problem: Problem, directions: Array) -> Array:
    """The same by L-BFGS on the few coefficients, one read of X per gradient."""
    from scipy.optimize import minimize  # noqa: PLC0415  (slow to load)

    d, K = problem.shape
    if problem.design.intercept:
        directions = np.column_stack([directions, np.eye(d)[:, -1]])
    q = directions.shape[1]

    def loss(flat: Array) -> tuple[float, Array]:
        point = problem.at(directions @ flat.reshape(q, K))
        return point.loss, (directions.T @ point.loss_gradient).ravel()

    options = {"gtol": 1e-10, "ftol": 0.0, "maxiter": 2000, "maxfun": 4000}
    found = minimize(loss, np.zeros(q * K), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(directions @ found.x.reshape(q, K))
