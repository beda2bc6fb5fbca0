"""Multinomial logistic regression with an L2 penalty, the intercept free."""

import numpy as np
from benchopt import BaseObjective
from scipy.special import logsumexp

BLOCK = 4096


class Objective(BaseObjective):
    """F(W, b) = mean of logsumexp(xW + b) − (xW + b)_label, plus (alpha/2) ‖W‖²."""

    name = "Multinomial logistic regression"
    min_benchopt_version = "1.9"
    parameters = {"alpha": [1e-3]}
    test_config = {"alpha": 1e-2}

    def set_data(self, X, y):
        self.X, self.y = X, y
        self.n_classes = int(y.max()) + 1

    def get_objective(self):
        return {"X": self.X, "y": self.y, "n_classes": self.n_classes, "alpha": self.alpha}

    def evaluate_result(self, W, b, threads):
        """The objective in double precision, by plain NumPy and none of the competitors.

        `threads`, with which the solver ran, goes to the table as it is.
        """
        W, b = np.asarray(W, np.float64), np.asarray(b, np.float64)
        W_data = W.astype(self.X.dtype)
        loss, hits = 0.0, 0
        for i in range(0, self.X.shape[0], BLOCK):
            rows = slice(i, i + BLOCK)
            scores = np.asarray(self.X[rows] @ W_data, np.float64) + b
            y = self.y[rows]
            loss += (logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]).sum()
            hits += (scores.argmax(axis=1) == y).sum()
        n = self.X.shape[0]
        value = loss / n + self.alpha / 2 * (W**2).sum()
        return {"value": value, "accuracy": hits / n, "threads": threads}

    def get_one_result(self):
        W = np.zeros((self.X.shape[1], self.n_classes))
        return {"W": W, "b": np.zeros(self.n_classes), "threads": 1}
