"""Many targets on one X: every attribute of 500, each with its own penalty, and missing labels.

python examples/many_targets.py
"""

import time

import numpy as np

from admm_softmax import MultiOutputSoftmaxRegression, MultiOutputSoftmaxRegressionCV

random = np.random.default_rng(0)
X = random.standard_normal((5000, 50)).astype(np.float32)
directions = random.standard_normal((50, 500)) / np.sqrt(50)
attributes = (X @ directions + random.logistic(size=(5000, 500)) > 0).astype(int)
attributes[random.random(attributes.shape) < 0.2] = -1  # a fifth of the labels is unknown

begin = time.perf_counter()
clf = MultiOutputSoftmaxRegression(alpha=1e-3, missing=-1).fit(X[:4000], attributes[:4000])
print(f"500 fits in {time.perf_counter() - begin:.2f} s, {clf.n_iter_.mean():.1f} steps each")

known = attributes[4000:] >= 0
right = (clf.predict(X[4000:]) == attributes[4000:])[known].mean()
print(f"accuracy on the labels that are known: {right:.3f}")

some = attributes[:4000, :20]
chosen = MultiOutputSoftmaxRegressionCV(alphas=[1e-1, 1e-2, 1e-3], missing=-1).fit(X[:4000], some)
print("alpha of the first targets:", chosen.alpha_[:5])
