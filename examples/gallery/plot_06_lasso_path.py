"""
Zeros: the path of the lasso, and groups
========================================

Under ‖W‖₁ many coefficients are exactly zero. A path begins at the strongest penalty that matters,
where all of them are, and pixels enter one by one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from admm_softmax import SoftmaxRegression, penalties, softmax_path

X, y = load_digits(return_X_y=True)
X = X / 16
path = softmax_path(X, y, 40, penalty=penalties.Lasso())
print(f"alpha_max = {path.alphas[0]:.3f}")
path.plot_coefs(names=[f"pixel ({j // 8}, {j % 8})" for j in range(64)])

# %%
# What leaves together is a matter of the penalty: single entries, pixels in all classes, or whole
# lines of the image.
lines = np.arange(64) // 8
kinds = {
    "lasso": (penalties.Lasso(), 5e-3),
    "pixels": (penalties.GroupLasso(), 1.5e-2),
    "lines": (penalties.GroupLasso(lines), 2e-2),
}
fig, axes = plt.subplots(3, 5, figsize=(8, 5), layout="constrained")
for row, (name, (penalty, alpha)) in zip(axes, kinds.items(), strict=True):
    clf = SoftmaxRegression(alpha=alpha, penalty=penalty).fit(X, y)
    print(f"{name}: {clf.n_nonzero_} of {clf.coef_.size}, accuracy {clf.score(X, y):.3f}")
    limit = abs(clf.coef_).max()
    for digit, axis in enumerate(row):
        axis.imshow(clf.coef_[digit].reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
        axis.set_xticks([])
        axis.set_yticks([])
    row[0].set_ylabel(name)
