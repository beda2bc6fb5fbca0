"""
Smooth coefficients by an operator
==================================

The penalty is ½α‖LW‖². With L the identity, every coefficient is drawn to zero; with L a Laplacian
over the image, it is drawn to the mean of its neighbours. Where images are finer than what they
show, and noisy, that is the better guess: neighbouring pixels average the noise out.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from admm_softmax import SoftmaxRegression, operators, softmax_path

# %%
# Digits as a noisy camera of 24 × 24 pixels sees them.
X, y = load_digits(return_X_y=True)
fine = np.kron(X.reshape(-1, 8, 8) / 16, np.ones((3, 3))).reshape(-1, 24 * 24)
fine += 1.2 * np.random.default_rng(0).standard_normal(fine.shape)
X_train, X_test, y_train, y_test = train_test_split(
    fine, y, train_size=300, stratify=y, random_state=0
)
fig, axes = plt.subplots(1, 5, figsize=(8, 1.9), layout="constrained")
for axis, row, digit in zip(axes, X_train[:5], y_train[:5], strict=True):
    axis.imshow(row.reshape(24, 24), cmap="gray_r")
    axis.set_title(f"digit {digit}", fontsize=10)
    axis.set_xticks([])
    axis.set_yticks([])

# %%
# Operators are SciPy matrices: scale and stack them. One path of penalties for each.
laplacian = operators.laplacian((24, 24))
kinds = {
    "identity": operators.identity(24 * 24),
    "Laplacian": laplacian,
    "both": sp.vstack([0.3 * operators.identity(24 * 24), laplacian]),
}
fig, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
best = {}
for name, operator in kinds.items():
    path = softmax_path(
        X_train, y_train, np.logspace(2, -4, 13), operator=operator, X_val=X_test, y_val=y_test
    )
    axis.semilogx(path.alphas, path.val_accuracy, "o-", ms=3, label=name)
    best[name] = path.alphas[np.argmax(path.val_accuracy)]
    print(f"{name}: {path.val_accuracy.max():.3f} at alpha = {best[name]:.1e}")
axis.set(xlabel="alpha", ylabel="accuracy on other rows", title="trained on 300 digits")
axis.grid(alpha=0.25)
axis.legend()

# %%
# The coefficients of each, for the digits 0 to 4.
fig, axes = plt.subplots(3, 5, figsize=(8, 5), layout="constrained")
for row, (name, operator) in zip(axes, kinds.items(), strict=True):
    coef = SoftmaxRegression(alpha=best[name], operator=operator).fit(X_train, y_train).coef_
    limit = abs(coef).max()
    for digit, axis in enumerate(row):
        axis.imshow(coef[digit].reshape(24, 24), cmap="RdBu", vmin=-limit, vmax=limit)
        axis.set_xticks([])
        axis.set_yticks([])
    row[0].set_ylabel(name)
# sphinx_gallery_thumbnail_number = 3
