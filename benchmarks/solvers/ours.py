"""admm-softmax: each solver, from nothing, with all it prepares on the clock."""

from benchmark_utils.peers import Stepped

from admm_softmax import Problem, run
from admm_softmax._parallel import cpu_count
from admm_softmax.solvers.auto import as_solver

#: Below this the objective no longer moves in the table's digits.
SMALLEST_GRADIENT = 1e-7


class Solver(Stepped):
    name = "admm-softmax"
    parameters = {"solver": ["auto", "admm", "newton-cg", "sgd"]}

    def choose_threads(self):
        """Load what was compiled before: the cache is warm, as in a second run.

        The library sets its threads and BLAS's itself.
        """
        self.warm_up_with(cpu_count(), self.short)
        return self.threads

    def run(self, callback):
        """The library's own loop, its preconditioner chosen for the default tol."""
        problem = Problem.of(*self.data, self.alpha, n_classes=self.shape[1])
        solver = as_solver(self.solver, problem, tol=1e-4).solver

        def step(iterate):
            self.W, self.b = iterate.W[:-1], iterate.W[-1]
            self.work = f"{iterate.passes:.1f} passes"
            return not callback()

        run(problem, solver, max_iter=10**6, tol=SMALLEST_GRADIENT, callbacks=step)
