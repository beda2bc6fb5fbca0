"""cyanure: accelerated incremental gradients (QNing, Catalyst, MISO; its own choice)."""

import io
from contextlib import redirect_stdout

import numpy as np
from benchmark_utils.peers import Restarted
from cyanure.estimators import Classifier


class Solver(Restarted):
    name = "cyanure"
    unit = "epochs"
    short = 5

    def fit(self, iterations):
        model = Classifier(
            loss="multiclass-logistic",
            penalty="l2",
            lambda_1=self.alpha,
            fit_intercept=True,
            max_iter=iterations,
            tol=self.tol,
            duality_gap_interval=10,
            verbose=False,
        )
        with redirect_stdout(io.StringIO()):
            model.fit(*self.data)
        coef = np.asarray(model.coef_)
        W = coef if coef.shape == self.shape else coef.T
        return W, np.asarray(model.intercept_).ravel(), iterations
