"""
A first fit
===========

Digits of 8 × 8 pixels, ten classes. The coefficients of a softmax regression have the shape of
its input, so that they can be looked at as images.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from admm_softmax import SoftmaxRegression

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
clf = SoftmaxRegression(alpha=1e-3).fit(X_train, y_train)
print(f"{clf.status_} after {clf.n_iter_[0]} iterations")
print(f"accuracy on rows held out: {clf.score(X_test, y_test):.3f}")

# %%
# Blue pixels speak for a digit, red ones against it.
fig, axes = plt.subplots(2, 5, figsize=(8, 3.6), layout="constrained")
limit = abs(clf.coef_).max()
for digit, axis in enumerate(axes.flat):
    axis.imshow(clf.coef_[digit].reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
    axis.set_title(f"digit {digit}", fontsize=10)
    axis.set_xticks([])
    axis.set_yticks([])

# %%
# The history has one record per iteration. It draws itself.
clf.history_.plot()
