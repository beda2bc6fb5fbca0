"""A penalty of one's own: the elastic net."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from admm_softmax.penalty import Penalty, Quadratic


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """α (ratio ‖W‖₁ + (1 − ratio)/2 ‖W‖²): kinks from its first term, q is its second."""

    ratio: float = 0.5
    alpha: float = 1.0
    penalised: tuple = ()  # 1 or 0 for each row of W

    is_smooth = False

    def over(self, n_features, alpha, *, intercept, penalize_intercept, reference):
        """The penalty of W with so many features and, perhaps, an intercept."""
        if reference is not None:
            raise ValueError("ElasticNet takes no reference")
        last = (float(penalize_intercept),) if intercept else ()
        return replace(self, alpha=alpha, penalised=(1.0,) * n_features + last)

    def with_alpha(self, alpha):
        """The same penalty with another strength."""
        return replace(self, alpha=alpha)

    @property
    def quadratic(self):
        """α (1 − ratio)/2 ‖W‖²."""
        return Quadratic((1 - self.ratio) * self.alpha, sp.diags_array(self.penalised).tocsr())

    @property
    def thresholds(self):
        """α ratio, or 0 where a row is free."""
        return self.alpha * self.ratio * np.array(self.penalised)[:, None]

    def rough_value(self, W):
        """α ratio ‖W‖₁."""
        return float((self.thresholds * np.abs(W)).sum())

    def prox(self, V, step):
        """Shrink every entry towards zero."""
        return np.sign(V) * np.maximum(np.abs(V) - step * self.thresholds, 0.0)

    def optimality(self, W, loss_gradient):
        """The subdifferential is one number where W ≠ 0 and an interval around 0 elsewhere."""
        G = loss_gradient + self.gradient(W)
        return np.where(W != 0, G + self.thresholds * np.sign(W), self._beyond(G))

    def _beyond(self, G):
        return np.sign(G) * np.maximum(np.abs(G) - self.thresholds, 0.0)

    def alpha_max(self, loss_gradient):
        """W = 0 is the solution where no entry of ∇loss is beyond α ratio."""
        return float(np.abs(loss_gradient).max() / self.ratio) if self.ratio else np.inf
