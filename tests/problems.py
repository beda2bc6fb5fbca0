"""Small problems that the tests share, and an independent minimiser of F."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, minres
from scipy.special import logsumexp, softmax

from admm_softmax.problem import Problem
from tests.peers import run_peer


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


def rows_of(problem: Problem):
    """The labels as rows of the simplex and the weights, as arrays of the caller's."""
    labels = problem.design.gather(problem.labels)
    return one_hot(labels, problem.n_classes), problem.design.gather(problem.weights)


def placed(design, arrays):
    """Handles of the arrays in the design."""
    return tuple(design.place(array) for array in arrays)


def assert_close(actual, expected, rtol):
    """Equal but for rounding: entries differ by at most rtol times the largest of all."""
    scale = float(np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * scale)


class DenseObjective:
    """F and its derivatives, written out once more from the formula, on dense arrays."""

    def __init__(self, problem: Problem, X):
        self.shape = problem.shape
        self.C, w = rows_of(problem)
        self.w = w[:, None]
        X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
        self.X = np.column_stack([X, np.ones(len(X))]) if problem.design.intercept else X
        penalty = problem.penalty.quadratic
        self.L, self.alpha, W_ref = penalty.L.toarray(), penalty.strength, penalty.reference
        self.W_ref = np.zeros(problem.shape) if W_ref is None else W_ref

    def __call__(self, flat):
        """F and ∇F, as SciPy wants them."""
        W = flat.reshape(self.shape)
        Z, D = self.X @ W, self.L @ (W - self.W_ref)
        losses = logsumexp(Z, axis=1) - (self.C * Z).sum(axis=1)
        value = self.w[:, 0] @ losses + self.alpha / 2 * (D**2).sum()
        gradient = self.X.T @ ((softmax(Z, axis=1) - self.C) * self.w) + self.alpha * self.L.T @ D
        return value, gradient.ravel()

    def gradient(self, flat):
        """∇F."""
        return self(flat)[1]

    def hessian_product(self, flat, v):
        """∇²F v."""
        W, V = flat.reshape(self.shape), v.reshape(self.shape)
        P, Z = softmax(self.X @ W, axis=1), self.X @ V
        R = P * (Z - (P * Z).sum(axis=1, keepdims=True)) * self.w
        return (self.X.T @ R + self.alpha * self.L.T @ (self.L @ V)).ravel()


def minimum(problem: Problem, X, tol=1e-11):
    """W* and F(W*) by SciPy: L-BFGS-B to come close, then a trust-region Newton method.

    Both compare values of F, and so end where its rounding begins, at gradients of 1e-8 or so.
    Plain Newton steps, by MINRES because the Hessian may be singular, go on from there. A number
    added to the whole of an unpenalised intercept changes nothing, and MINRES drifts along it
    by rounding: W* is the minimiser whose intercept has mean zero, as it has at the start.
    """
    F = DenseObjective(problem, X)

    def solve():
        start = minimize(
            F,
            np.zeros(np.prod(problem.shape)),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-8},
        ).x
        flat = minimize(
            F,
            start,
            jac=True,
            hessp=F.hessian_product,
            method="trust-ncg",
            options={"gtol": 1e-10, "maxiter": 100},
        ).x
        for _ in range(3):
            H = LinearOperator((flat.size,) * 2, matvec=partial(F.hessian_product, flat))
            flat = flat - minres(H, F.gradient(flat), rtol=1e-8, maxiter=2000)[0]
        return flat

    flat = run_peer(solve, F.gradient, tol)
    W = flat.reshape(problem.shape)
    if problem.design.intercept and not F.L[:, -1].any():
        W[-1] -= W[-1].mean()
    return W, float(F(flat)[0])
