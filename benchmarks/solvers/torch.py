"""torch.optim.LBFGS on all rows, strong Wolfe line search, a point every ten iterations."""

import scipy.sparse as sp
import torch
from benchopt import BaseSolver
from benchopt.stopping_criterion import NoCriterion


class Solver(BaseSolver):
    name = "torch LBFGS"
    sampling_strategy = "callback"
    stopping_criterion = NoCriterion(strategy="callback")

    def skip(self, X, y, n_classes, alpha):
        if sp.issparse(X):
            return True, "dense tensors only"
        return False, None

    def set_objective(self, X, y, n_classes, alpha):
        self.X, self.y = torch.from_numpy(X), torch.from_numpy(y)
        self.n_classes, self.alpha = n_classes, alpha

    def get_next(self, stop_val):
        return stop_val + 1

    def run(self, callback):
        kind = {"dtype": self.X.dtype, "requires_grad": True}
        self.W = torch.zeros(self.X.shape[1], self.n_classes, **kind)
        self.b = torch.zeros(self.n_classes, **kind)
        optimiser = torch.optim.LBFGS(
            [self.W, self.b],
            max_iter=10,
            history_size=20,
            line_search_fn="strong_wolfe",
            tolerance_grad=1e-9,
            tolerance_change=0.0,
        )

        def closure():
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(self.X @ self.W + self.b, self.y)
            loss = loss + self.alpha / 2 * (self.W**2).sum()
            loss.backward()
            return loss

        while callback():
            before = self.W.detach().clone()
            optimiser.step(closure)
            if torch.equal(before, self.W):
                break

    def get_result(self):
        return {"W": self.W.detach().numpy(), "b": self.b.detach().numpy()}
