"""admm-softmax: each solver, from nothing, with all it prepares on the clock."""

from benchopt import BaseSolver
from benchopt.stopping_criterion import NoCriterion

from admm_softmax import Problem
from admm_softmax.solvers.named import as_solver

#: Below this the objective no longer moves in the table's digits.
SMALLEST_GRADIENT = 1e-7


class Solver(BaseSolver):
    name = "admm-softmax"
    parameters = {"solver": ["auto", "admm", "newton-cg", "sgd"]}
    sampling_strategy = "callback"
    stopping_criterion = NoCriterion(strategy="callback")

    def set_objective(self, X, y, n_classes, alpha):
        self.data, self.alpha, self.n_classes = (X, y), alpha, n_classes

    def warm_up(self):
        """Load what was compiled before: the cache is warm, as in a second run."""
        self.run_once(2)

    def get_next(self, stop_val):
        return stop_val + 1

    def run(self, callback):
        X, y = self.data
        problem = Problem.of(X, y, self.alpha, n_classes=self.n_classes)
        solver = as_solver(self.solver, problem, tol=1e-4).solver
        for iterate in solver.iterates(problem, None):
            self.W = iterate.W
            if not callback() or iterate.stalled or iterate.gradient_norm <= SMALLEST_GRADIENT:
                break

    def get_result(self):
        return {"W": self.W[:-1], "b": self.W[-1]}
