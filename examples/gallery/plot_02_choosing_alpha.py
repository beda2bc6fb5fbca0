"""
Choosing alpha
==============

``SoftmaxRegressionCV`` tries many penalties in every fold. They share one Gram matrix and the
reads of X, and each fit starts where the last two point to, so that all of them together cost
little more than a few single fits.
"""

from sklearn.datasets import load_digits

from admm_softmax import SoftmaxRegressionCV

X, y = load_digits(return_X_y=True)
cv = SoftmaxRegressionCV(alphas=20, cv=5).fit(X / 16, y)
print(f"alpha = {cv.alpha_:.2e}, which scikit-learn calls C = {cv.C_:.3g}")

# %%
# The score here is the log loss with its sign turned, so that more is better. Where the curve is
# flat the choice hardly matters. To the right the penalty holds the model back; to the left it fits
# noise.
cv.plot()
