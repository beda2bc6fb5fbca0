"""
How certain are the coefficients? Two hundred fits at once
==========================================================

``fit_subsets`` fits one model to each of many samples of the rows, in shared passes over X. With
bootstrap samples, the spread of a coefficient says how much it depends on which rows happened to be
there.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from admm_softmax import MultiOutputSoftmaxRegression

X, y = load_digits(return_X_y=True)
X = X / 16
random = np.random.default_rng(0)
samples = [random.integers(0, len(X), len(X)) for _ in range(200)]
clf = MultiOutputSoftmaxRegression(alpha=1e-3).fit_subsets(X, y, samples)
coefs = np.array(clf.coef_)
print(f"{len(coefs)} fits of {coefs.shape[1]} × {coefs.shape[2]} coefficients")

# %%
# Mean, spread, and their ratio, for the digits 3 and 8.
mean, spread = coefs.mean(axis=0), coefs.std(axis=0)
fig, axes = plt.subplots(2, 3, figsize=(7, 4.6), layout="constrained")
for row, digit in zip(axes, (3, 8), strict=True):
    certain = np.divide(mean, spread, out=np.zeros_like(mean), where=spread > 1e-6)
    for axis, (name, values) in zip(
        row, {"mean": mean, "spread": spread, "mean / spread": certain}.items(), strict=True
    ):
        limit, is_spread = abs(values).max(), name == "spread"
        image = axis.imshow(
            values[digit].reshape(8, 8),
            cmap="Greys" if is_spread else "RdBu",
            vmin=0 if is_spread else -limit,
            vmax=limit,
        )
        fig.colorbar(image, ax=axis, shrink=0.8)
        axis.set_title(name, fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
    row[0].set_ylabel(f"digit {digit}")
