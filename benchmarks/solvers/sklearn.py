"""scikit-learn's solvers."""

from benchmark_utils.peers import WARM_UP, Logistic
from sklearn.linear_model import LogisticRegression

#: The rows of a Hessian. With 7,840 (MNIST's pixels) one step takes longer than others take to end.
LARGEST_HESSIAN = 5_000


class Solver(Logistic):
    name = "scikit-learn"
    parameters = {"solver": ["lbfgs", "newton-cg", "newton-cholesky", "saga"]}
    kind = LogisticRegression

    def skip(self, X, y, n_classes, alpha):
        if self.solver == "newton-cholesky" and X.shape[1] * n_classes > LARGEST_HESSIAN:
            return True, "a step with its Hessian of (d K)² entries takes too long"
        return super().skip(X, y, n_classes, alpha)

    @property
    def short(self):
        # An iteration of the others takes longer; short ones are doubled by the clock.
        return WARM_UP if self.solver == "lbfgs" else 3

    @property
    def settings(self):
        return {"solver": self.solver, "random_state": 0}
