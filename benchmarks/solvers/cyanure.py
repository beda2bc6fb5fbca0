"""cyanure: accelerated incremental gradients (QNing, Catalyst, MISO; its own choice)."""

import io
from contextlib import redirect_stdout

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import NoCriterion
from cyanure.estimators import Classifier


class Solver(BaseSolver):
    name = "cyanure"
    sampling_strategy = "iteration"
    stopping_criterion = NoCriterion(strategy="iteration")

    def set_objective(self, X, y, n_classes, alpha):
        self.data, self.shape = (X, y), (X.shape[1], n_classes)
        self.settings = {
            "loss": "multiclass-logistic",
            "penalty": "l2",
            "lambda_1": alpha,
            "fit_intercept": True,
            "tol": 1e-9,
            "duality_gap_interval": 10,
            "verbose": False,
        }

    def get_next(self, stop_val):
        return max(stop_val + 1, int(1.6 * stop_val))

    def run(self, n_iter):
        self.model = None
        if n_iter:
            model = Classifier(**self.settings, max_iter=n_iter)
            with redirect_stdout(io.StringIO()):
                self.model = model.fit(*self.data)

    def get_result(self):
        if self.model is None:
            return {"W": np.zeros(self.shape), "b": np.zeros(self.shape[1])}
        coef = np.asarray(self.model.coef_)
        W = coef if coef.shape == self.shape else coef.T
        return {"W": W, "b": np.asarray(self.model.intercept_).ravel()}
