"""
Starting from a model that exists: W_ref
========================================

``reference=`` puts W − W_ref in the place of W: the penalty measures the distance from a model
that is known already. Here that is a model of one camera's digits, and there are a few rows from
another camera, which sees everything half a pixel further to the right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from admm_softmax import SoftmaxRegression

images, y = load_digits(return_X_y=True)
X = images / 16
shifted = (X + np.roll(X.reshape(-1, 8, 8), 1, axis=2).reshape(-1, 64)) / 2
old = SoftmaxRegression(alpha=1e-3).fit(X[:900], y[:900])
X_new, y_new, X_test, y_test = shifted[900:1300], y[900:1300], shifted[1300:], y[1300:]

# %%
# With few rows the old model helps. With many the new rows know better, and a smaller alpha would
# let go of it.
sizes = [1, 2, 4, 8, 16, 32]
by_class = [np.flatnonzero(y_new == digit) for digit in range(10)]
scores = {"from zero": [], "from the old model": []}
for size in sizes:
    rows = np.concatenate([found[:size] for found in by_class])
    for name, reference in zip(scores, [None, (old.coef_, old.intercept_)], strict=True):
        clf = SoftmaxRegression(alpha=1e-2, reference=reference)
        scores[name].append(clf.fit(X_new[rows], y_new[rows]).score(X_test, y_test))

fig, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for name, values in scores.items():
    axis.semilogx(sizes, values, "o-", label=name)
axis.axhline(old.score(X_test, y_test), color="0.5", ls=":", label="the old model as it is")
axis.set_xticks(sizes, [str(size) for size in sizes])
axis.minorticks_off()
axis.set(xlabel="rows per class of the new kind", ylabel="accuracy")
axis.grid(alpha=0.25)
axis.legend()
