"""Small problems that the tests share, and an independent minimiser of F."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from admm_softmax.problem import Problem


def make(n=80, d=6, K=4, *, seed=0, soft=False, noise=1.0, dtype=np.float64):
    """Rows, and labels drawn from a softmax model of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 2.0, d)
    scores = X @ rng.standard_normal((d, K)) / np.sqrt(d)
    if soft:
        labels = softmax(scores + noise * rng.standard_normal((n, K)), axis=1)
    else:
        labels = (scores + noise * rng.gumbel(size=(n, K))).argmax(axis=1)
        labels[:K] = np.arange(K)
    return X.astype(dtype), labels


def one_hot(labels, K):
    return np.eye(K)[labels] if np.ndim(labels) == 1 else np.asarray(labels)


def dense_objective(problem: Problem, X):
    """F and its gradient, written out once more from the formula, on dense arrays."""
    K = problem.n_classes
    C, w = one_hot(problem.labels, K), problem.weights
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    if problem.design.intercept:
        X = np.column_stack([X, np.ones(len(X))])
    L, alpha = problem.penalty.L.toarray(), problem.penalty.alpha
    W_ref = problem.penalty.reference
    W_ref = np.zeros(problem.shape) if W_ref is None else W_ref

    def value_and_gradient(flat):
        W = flat.reshape(problem.shape)
        Z, D = X @ W, L @ (W - W_ref)
        value = w @ (logsumexp(Z, axis=1) - (C * Z).sum(axis=1)) + alpha / 2 * (D**2).sum()
        gradient = X.T @ ((softmax(Z, axis=1) - C) * w[:, None]) + alpha * L.T @ D
        return value, gradient.ravel()

    return value_and_gradient


def minimum(problem: Problem, X):
    """W* and F(W*) by SciPy's trust-region Newton method with an explicit Hessian."""
    value_and_gradient = dense_objective(problem, X)

    def hessian_product(flat, v):
        h = 1e-6 / max(1e-12, np.linalg.norm(v))
        return (value_and_gradient(flat + h * v)[1] - value_and_gradient(flat - h * v)[1]) / (2 * h)

    start = minimize(
        value_and_gradient,
        np.zeros(np.prod(problem.shape)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-8},
    ).x
    solution = minimize(
        value_and_gradient,
        start,
        jac=True,
        hessp=hessian_product,
        method="trust-ncg",
        options={"gtol": 1e-10, "maxiter": 50},
    )
    return solution.x.reshape(problem.shape), float(solution.fun)
