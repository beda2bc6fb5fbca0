"""Intel's extension for scikit-learn: lbfgs with its own kernels."""

import warnings

import scipy.sparse as sp
from benchopt import BaseSolver
from benchopt.stopping_criterion import NoCriterion
from sklearn.exceptions import ConvergenceWarning
from sklearnex.linear_model import LogisticRegression


class Solver(BaseSolver):
    name = "scikit-learn-intelex"
    sampling_strategy = "iteration"
    stopping_criterion = NoCriterion(strategy="iteration")

    def skip(self, X, y, n_classes, alpha):
        if sp.issparse(X):
            return True, "sparse data go to scikit-learn itself"
        return False, None

    def set_objective(self, X, y, n_classes, alpha):
        self.data = X, y
        self.model = LogisticRegression(C=1 / (X.shape[0] * alpha), tol=1e-9, solver="lbfgs")

    def get_next(self, stop_val):
        return max(stop_val + 1, int(1.6 * stop_val))

    def run(self, n_iter):
        self.model.max_iter = n_iter + 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(*self.data)

    def get_result(self):
        return {"W": self.model.coef_.T, "b": self.model.intercept_}
