"""torch.optim.LBFGS on all rows, strong Wolfe line search, a point every ten iterations."""

import torch
from benchmark_utils.peers import Stepped


class Solver(Stepped):
    name = "torch LBFGS"
    dense_only = "dense tensors only"

    def steps(self, callback):
        X, y = (torch.from_numpy(array) for array in self.data)
        W = torch.zeros(self.shape, dtype=X.dtype, requires_grad=True)
        b = torch.zeros(self.shape[1], dtype=X.dtype, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [W, b],
            max_iter=10,
            history_size=20,
            line_search_fn="strong_wolfe",
            tolerance_grad=1e-9,
            tolerance_change=0.0,
        )

        def closure():
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(X @ W + b, y)
            loss = loss + self.alpha / 2 * (W**2).sum()
            loss.backward()
            return loss

        self.W, self.b, iterations = W.detach().numpy(), b.detach().numpy(), 0
        while callback():
            before = W.detach().clone()
            optimiser.step(closure)
            iterations += 10
            self.work = f"{iterations} iterations"
            if torch.equal(before, W):
                break
