"""Peers (scikit-learn, SciPy, CVXPY): they are asked for a minimum, and for nothing else.

What a peer says about itself (a warning, its iterations, its evaluations) depends on its version
and on the CPU. So every peer is run by `run_peer`, which looks at the gradient where it stopped, or at
what is zero at a solution where the penalty has kinks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.linear_model import LogisticRegression

from admm_softmax.problem import Problem

T = TypeVar("T")


def run_peer(peer: Callable[[], T], gradient: Callable[[T], Any], tol: float) -> T:
    """What a peer returns: its warnings ignored, and max|gradient| ≤ tol there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = peer()
    size = float(np.abs(gradient(found)).max())
    assert size <= tol, f"the peer stopped at a gradient of {size:.1e}; {tol:.1e} was wanted"
    return found


def proximal_step(problem: Problem, W: Any) -> Any:
    """W − prox(W − ∇f(W)), f the smooth part of F: zero at a solution, and small close to it.

    For interior-point methods, which end at small entries where the solution has zeros: there the
    optimality condition of a penalty with kinks is not small.
    """
    return W - problem.penalty.prox(W - problem.at(W).gradient, 1.0)


def fitted(peer: Any, *data: Any) -> Any:
    """A peer after its fit, its warnings ignored: for tests of names and shapes alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peer.fit(*data)


def two_class_regression(X: Any, y: Any, C: float, *, tol: float = 1e-7) -> Any:
    """scikit-learn's LogisticRegression for labels 0 and 1, at its minimum."""
    peer = LogisticRegression(C=C, solver="newton-cg", tol=1e-10, max_iter=1000)

    def gradient(clf: Any) -> Any:
        error = clf.predict_proba(X)[:, 1] - y
        of_coef = X.T @ error + clf.coef_[0] / C
        return np.append(of_coef, error.sum()) / len(y)

    return run_peer(lambda: peer.fit(X, y), gradient, tol)


def logistic_regression(problem: Problem, X: Any, y: Any, *, tol: float = 1e-7) -> Any:
    """W of scikit-learn's LogisticRegression for a ridge and three classes or more.

    alpha = 1 / (S C). With two classes its W is one column, and its penalty half of ours.
    """
    assert problem.n_classes > 2
    C = 1.0 / (problem.total_weight * problem.penalty.alpha)
    peer = LogisticRegression(
        C=C, solver="newton-cg", tol=1e-10, max_iter=1000, fit_intercept=problem.design.intercept
    )

    def fit() -> Any:
        peer.fit(X, y)
        if not problem.design.intercept:
            return peer.coef_.T
        return np.vstack([peer.coef_.T, peer.intercept_])

    return run_peer(fit, lambda W: problem.at(W).gradient, tol)
