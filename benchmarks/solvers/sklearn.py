"""scikit-learn's solvers, restarted with more iterations for every point of the curve."""

import warnings

from benchopt import BaseSolver
from benchopt.stopping_criterion import NoCriterion
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression


class Solver(BaseSolver):
    name = "scikit-learn"
    parameters = {"solver": ["lbfgs", "newton-cg", "newton-cholesky", "saga"]}
    sampling_strategy = "iteration"
    stopping_criterion = NoCriterion(strategy="iteration")

    def skip(self, X, y, n_classes, alpha):
        if self.solver == "newton-cholesky" and X.shape[1] * n_classes > 12_000:
            return True, "its Hessian of (d K)² entries would not fit"
        return False, None

    def set_objective(self, X, y, n_classes, alpha):
        self.data = X, y
        self.model = LogisticRegression(
            C=1 / (X.shape[0] * alpha), tol=1e-9, solver=self.solver, random_state=0
        )

    def get_next(self, stop_val):
        return max(stop_val + 1, int(1.6 * stop_val))

    def run(self, n_iter):
        self.model.max_iter = n_iter + 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(*self.data)

    def get_result(self):
        coef, b = self.model.coef_, self.model.intercept_
        return {"W": coef.T, "b": b}
