"""
A linear probe
==============

``probe`` does what evaluations of frozen features do: fit under every C, choose on validation
rows, refit, and measure on test rows with bootstrap intervals. Here the features are the pixels
themselves, in half precision, as a network would hand them over.
"""

import numpy as np
from sklearn.datasets import load_digits

from admm_softmax import probe

X, y = load_digits(return_X_y=True)
features = (X / 16).astype(np.float16)
train, test = (features[:1300], y[:1300]), (features[1300:], y[1300:])
Cs = np.logspace(-4, 3, 15)
found = probe(train, test=test, Cs=Cs, shots=(1, 2, 4, 8, 16), repeats=5, normalize="l2")
print(found)
found.plot()

# %%
# The draws of few rows, one row per draw.
draws = found.shots_to_frame()
print(draws.groupby("shots")["value"].agg(["mean", "std"]).round(3))
